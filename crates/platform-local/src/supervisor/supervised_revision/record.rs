//! A revision as it is handed to another process, and made again there.

use std::collections::{BTreeMap, BTreeSet};

use orchestration::{PodFailure, PodKill, RouteInForce};
use scaling::RevisionOrigin;
use settings::RevisionSettings;
use vocabulary::{HopKey, PodCount, PodName, Timestamp};

use super::SupervisedRevision;
use crate::manifest::ManifestService;
use crate::supervisor::causes::StartCauses;
use crate::supervisor::handover::records::{FailureRecord, HandOverRevision, HandOverRoute, KillRecord};
use crate::supervisor::pod::SupervisedPod;
use crate::supervisor::queue_proxy_settings::QueueProxySettings;
use crate::supervisor::restarts::Restarts;

/// The progress deadline of a Service that is in no file any more: no pod of it is started, so its value has
/// no effect.
const NO_DEADLINE: std::time::Duration = std::time::Duration::from_secs(600);

impl SupervisedRevision {
    /// What another process needs to know of it and of its pods, as far as these have a process. Those that
    /// wait for theirs are made anew there.
    pub(crate) fn record(&self, with_process: &BTreeSet<PodName>, now: Timestamp) -> HandOverRevision {
        let pods = self.pods.values().filter(|pod| with_process.contains(&pod.name));
        HandOverRevision {
            name: self.service.name.clone(),
            host: self.service.host.clone(),
            wanted: self.wanted.value(),
            is_going: self.is_going,
            is_found: self.origin == RevisionOrigin::Found,
            route: self
                .route
                .as_ref()
                .map(|route| HandOverRoute { routing: route.routing, activators: route.activators.clone() }),
            hop_keys: self.hop_keys.iter().map(|key| key.expose().to_owned()).collect(),
            templates: self.templates.clone(),
            present: self.present,
            numbers_given: self.numbers_given,
            pods: pods.filter_map(|pod| pod.record(now)).collect(),
            last_failure: self.last_failure.as_ref().map(|failure| FailureRecord {
                pod: failure.pod.clone(),
                before: now.saturating_since(failure.at),
                reason: failure.reason.clone(),
                last_lines: failure.last_lines.clone(),
            }),
            last_kill: self.last_kill.as_ref().map(|kill| KillRecord {
                pod: kill.pod.clone(),
                before: now.saturating_since(kill.at),
                reason: kill.reason.clone(),
            }),
            restarts: self
                .restarts
                .iter()
                .map(|(template, restarts)| (*template, restarts.record(now)))
                .collect(),
        }
    }

    /// The revision of another process, as it was there; `service` is what the files say of it now, if they
    /// do. Any other difference in them is an edit, which is to follow.
    pub(crate) fn taken_over(
        record: HandOverRevision,
        service: Option<&ManifestService>,
        now: Timestamp,
    ) -> Self {
        let template = record.templates.get(&record.present).cloned().unwrap_or_default();
        let service = match service {
            Some(service) => ManifestService { template, ..service.clone() },
            None => ManifestService {
                name: record.name,
                host: record.host,
                own_hosts: Vec::new(),
                waiting_page: vocabulary::WaitingPage::Off,
                settings: RevisionSettings::default(),
                is_in_shadow: false,
                progress_deadline: NO_DEADLINE,
                template,
            },
        };
        let pods = record.pods.into_iter().map(|pod| (pod.name.clone(), SupervisedPod::taken_over(pod, now)));
        let pods: BTreeMap<PodName, SupervisedPod> = pods.collect();
        let restarts = record.restarts.into_iter();
        let restarts = restarts.map(|(template, record)| (template, Restarts::taken_over(record, now)));
        Self {
            former_template: None,
            wanted: PodCount::new(record.wanted),
            is_going: record.is_going,
            of_new_pods: QueueProxySettings::default(),
            origin: if record.is_found { RevisionOrigin::Found } else { RevisionOrigin::New },
            route: record
                .route
                .map(|route| RouteInForce { routing: route.routing, activators: route.activators }),
            hop_keys: record.hop_keys.into_iter().map(HopKey::new).collect(),
            is_rolling: pods.values().any(|pod| pod.is_wanted() && pod.template != record.present),
            templates: record.templates,
            present: record.present,
            numbers_given: record.numbers_given,
            service,
            more_hosts: Vec::new(),
            restarts: restarts.collect(),
            pods,
            end_first: Vec::new(),
            last_failure: record.last_failure.map(|failure| PodFailure {
                pod: failure.pod,
                at: now - failure.before,
                reason: failure.reason,
                last_lines: failure.last_lines,
            }),
            last_kill: record.last_kill.map(|kill| PodKill {
                pod: kill.pod,
                at: now - kill.before,
                reason: kill.reason,
            }),
            rolled_out: None,
            causes: StartCauses::new(format!("{} wanted when it was taken over", record.wanted)),
        }
    }
}
