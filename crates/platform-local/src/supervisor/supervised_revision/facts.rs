//! What a revision tells of itself: the facts that the autoscaler decides by.

use orchestration::{Entrance, PodFacts, RevisionFacts};
use settings::FloorCause;
use vocabulary::PodCount;

use super::SupervisedRevision;
use crate::front_door::FrontDoor;
use crate::supervisor::pod::SupervisedPod;
use crate::supervisor::restarts::Restarts;

impl SupervisedRevision {
    /// The revision as the platform's users see it.
    pub(crate) fn facts(&self, front_door: FrontDoor) -> RevisionFacts {
        let service = &self.service;
        let own = service.hosts().into_iter().chain(self.more_hosts.iter().cloned());
        RevisionFacts {
            name: service.name.clone(),
            settings: service.settings.clone(),
            container_concurrency: service.template.container_concurrency,
            timeouts: service.template.timeouts,
            progress_deadline: service.progress_deadline,
            // No new request finds it, while the requests that its pods hold go on to their end.
            entrances: if self.is_going { Vec::new() } else { own.map(Entrance::Host).collect() },
            url: Some(front_door.url(service)),
            hop_keys: self.hop_keys.clone(),
            wanted: if self.is_going { PodCount::ZERO } else { self.wanted },
            // `ebb up --shadow` is for each Service that does not say otherwise.
            may_write: !service.is_in_shadow || service.settings.shadow == Some(false),
            reachable: true,
            floor: PodCount::ZERO,
            floor_cause: FloorCause::default(),
            waiting_page: service.waiting_page.clone(),
            hold: None,
            origin: self.origin,
            template: self.template_name(self.present),
            other_autoscaler: None,
        }
    }

    /// Its pods as the platform's users see them.
    pub(crate) fn pod_facts(&self) -> Vec<PodFacts> {
        let hold = |pod: &SupervisedPod| self.restarts.get(&pod.template).and_then(Restarts::hold);
        self.pods.values().map(|pod| pod.facts(self.present, hold(pod))).collect()
    }
}
