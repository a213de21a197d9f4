//! How is an Event written? As `events.k8s.io/v1` has them: one object for what happened first, and a series
//! for how often it happened since.

use cluster::{EventNote, EventWrite, Failure, Tone};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::Patch;
use serde_json::json;

use super::{Requests, patch_parameters, post_parameters, within};

/// The source of our Events, as `kubectl describe` shows it.
const CONTROLLER: &str = "ebb.dev/autoscaler";
/// The longest text that an Event may hold.
const TEXT_MAX: usize = 1024;

impl Requests {
    /// Writes an Event. It is not tried again: what is so stands in the problems.
    pub(crate) async fn write_event(&self, write: &EventWrite, instance: &str) -> Result<(), Failure> {
        let now = MicroTime(jiff::Timestamp::try_from(runtime::wall_time()).unwrap_or_default());
        match write {
            EventWrite::Create { name, note } => {
                let api: Api<Event> = Api::namespaced(self.client.clone(), &note.object.namespace);
                let parameters = post_parameters();
                let event = event(name.clone(), note, instance, now);
                within(api.create(&parameters, &event)).await.map(drop)
            }
            EventWrite::Count { name, object, count } => {
                let api: Api<Event> = Api::namespaced(self.client.clone(), &object.namespace);
                let series = json!({"series": {"count": count, "lastObservedTime": now}});
                let parameters = patch_parameters();
                within(api.patch(name, &parameters, &Patch::Merge(series))).await.map(drop)
            }
        }
    }
}

fn event(name: String, note: &EventNote, instance: &str, now: MicroTime) -> Event {
    let object = &note.object;
    let tone = match note.tone {
        Tone::Normal => "Normal",
        Tone::Warning => "Warning",
    };
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(object.namespace.clone()),
            ..ObjectMeta::default()
        },
        event_time: Some(now),
        action: Some(note.action.to_owned()),
        reason: Some(note.reason.to_owned()),
        note: Some(cut(&note.text.to_string())),
        type_: Some(tone.to_owned()),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(instance.to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some(object.api_version.clone()),
            kind: Some(object.kind.clone()),
            namespace: Some(object.namespace.clone()),
            name: Some(object.name.clone()),
            uid: Some(object.uid.clone()),
            ..ObjectReference::default()
        }),
        ..Event::default()
    }
}

fn cut(text: &str) -> String {
    let end = (0..=TEXT_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or_default()].to_owned()
}
