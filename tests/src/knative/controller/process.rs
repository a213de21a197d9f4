//! The controller at a cluster: watches that keep the objects, and the writes that are due.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::mpsc;

use super::pace::ControllerPace;
use super::plan;
use super::planned_write::{PlannedWrite, WriteForm};
use crate::bench::clock;
use crate::knative::objects::{KnownObjects, ObjectId, PlayedKind};

/// Objects that wait for the controller; watches wait when it is full.
const NEWS_MAX: usize = 1024;
/// How long after a write that failed the controller looks again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// The system namespace where nothing else is said.
const SYSTEM: &str = "knative-serving";

/// A change that a watch shows.
enum ObjectNews {
    Begun(PlayedKind),
    Put(ObjectId, Value),
    Gone(ObjectId),
    /// All objects of the kind were shown.
    Listed(PlayedKind),
}

/// Plays the controller until the process ends.
pub async fn run() -> anyhow::Result<()> {
    let client = Client::try_default().await.context("the controller runs in a pod of a cluster")?;
    let system = std::env::var("SYSTEM_NAMESPACE").unwrap_or_else(|_| SYSTEM.to_owned());
    let (news, mut received) = mpsc::channel(NEWS_MAX);
    for kind in PlayedKind::ALL {
        // A panic of it leaves its kind silent, which tests notice; after a panic of all, `run` ends.
        tokio::spawn(watch(client.clone(), kind, news.clone()));
    }
    drop(news);
    let (mut known, mut pace) = (KnownObjects::default(), ControllerPace::default());
    let mut whole = BTreeSet::new();
    let mut next = None;
    loop {
        let wait = next.map_or(Duration::from_secs(3600), |next: Duration| next.saturating_sub(clock::now()));
        if let Ok(first) = tokio::time::timeout(wait, received.recv()).await {
            let mut one = Some(first.context("a watch has ended")?);
            while let Some(news) = one {
                note(&mut known, &mut whole, news);
                one = received.try_recv().ok();
            }
        }
        // With some kinds unknown the controller would make objects that are there already.
        if whole.len() < PlayedKind::ALL.len() {
            continue;
        }
        let due = pace.due(plan(&known, &system, &wall_time()), &known, &system, clock::now());
        next = due.next;
        for write in due.writes {
            let id = write.id.clone();
            match perform(&client, write).await {
                Ok(object) => known.put(id, object),
                Err(error) => {
                    eprintln!("{id:?}: {error}");
                    // A delayed write may be due before.
                    let again = clock::now() + AGAIN_AFTER;
                    next = Some(next.map_or(again, |soonest| soonest.min(again)));
                }
            }
        }
    }
}

/// Notes what a watch shows, and which kinds are whole.
fn note(known: &mut KnownObjects, whole: &mut BTreeSet<PlayedKind>, news: ObjectNews) {
    match news {
        ObjectNews::Begun(kind) => {
            known.forget_kind(kind);
            whole.remove(&kind);
        }
        ObjectNews::Put(id, object) => known.put(id, object),
        ObjectNews::Gone(id) => known.remove(&id),
        ObjectNews::Listed(kind) => {
            whole.insert(kind);
        }
    }
}

async fn watch(client: Client, kind: PlayedKind, news: mpsc::Sender<ObjectNews>) {
    let api: Api<DynamicObject> = Api::all_with(client, &kind.resource());
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let told = match event {
            Ok(Event::Init) => ObjectNews::Begun(kind),
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                let object = serde_json::to_value(object).expect("an object is JSON");
                ObjectNews::Put(ObjectId::of(kind, &object), object)
            }
            Ok(Event::InitDone) => ObjectNews::Listed(kind),
            Ok(Event::Delete(object)) => {
                let object = serde_json::to_value(object).expect("an object is JSON");
                ObjectNews::Gone(ObjectId::of(kind, &object))
            }
            Err(error) => {
                eprintln!("a watch over {kind:?} broke: {error}");
                continue;
            }
        };
        if news.send(told).await.is_err() {
            return;
        }
    }
}

/// Does a write; returns the object as it is afterwards.
async fn perform(client: &Client, write: PlannedWrite) -> Result<Value, kube::Error> {
    let id = &write.id;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &id.namespace, &id.kind.resource());
    let parameters = PatchParams::default();
    let written = match write.form {
        WriteForm::Create(object) => {
            let object = serde_json::from_value(object).expect("the plan makes whole objects");
            api.create(&PostParams::default(), &object).await?
        }
        WriteForm::Patch(patch) => api.patch(&id.name, &parameters, &Patch::Merge(patch)).await?,
        WriteForm::PatchStatus(patch) => {
            api.patch_status(&id.name, &parameters, &Patch::Merge(patch)).await?
        }
    };
    Ok(serde_json::to_value(written).expect("an object is JSON"))
}

/// The wall time as conditions have it, in whole seconds.
fn wall_time() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
