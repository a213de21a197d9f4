//! Links of the owner to pods and to the activator: dialled, standing, lost, slow.
//!
//! Nothing overtakes anything on a link, and the words that are under way on one that is lost are lost with
//! it. Its far end notices at once, and the owner dials again until it can be had.

use std::sync::Arc;
use std::time::Duration;

use orchestration::{ControlEvent, LinkId, LinkNews, Peer};
use throttling::{ActivatorEvent, LinkNumber};
use vocabulary::{ActivatorWord, PodSettings, PodWord, Timestamp};

use super::World;
use crate::link_disturbance::{LinkDisturbance, LinkDisturbanceKind, LinkGroup};
use crate::world_event::{DialNumber, PodNumber, WorldEvent};
use crate::world_owner::{LinkFarEnd, LinkStanding};

/// The pause before a lost link is dialled again.
const DIAL_AGAIN: Duration = Duration::from_millis(50);

/// The direction of a word on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordDirection {
    ToOwner,
    ToFarEnd,
}

/// When a word arrives that leaves now, and on which dial.
#[derive(Clone, Copy, Debug)]
struct WordOnTheWay {
    dial: DialNumber,
    at: Timestamp,
}

impl World {
    pub(super) fn open_link(&mut self, link: LinkId, peer: Peer) {
        let (far_end, first) = match peer {
            Peer::Pod { name, settings } => {
                let pod = self.platform.pod_named(&name).and_then(|number| self.platform.pod(number));
                let Some(pod) = pod else { return };
                (LinkFarEnd::Pod { pod: pod.number, service: pod.service }, Some(settings))
            }
            Peer::Activator { .. } => (LinkFarEnd::Activator, None),
        };
        self.owner.keep(link, far_end, first);
        // The dial is the first on the way to the far end: no word overtakes it.
        if let Some(WordOnTheWay { dial, at }) = self.way(link, WordDirection::ToFarEnd) {
            self.queue.push(at, WorldEvent::LinkStands(link, dial));
        }
    }

    pub(super) fn close_link(&mut self, link: LinkId) {
        let Some(kept) = self.owner.links.remove(&link) else { return };
        self.unlink_pod(link, kept.far_end);
    }

    fn unlink_pod(&mut self, link: LinkId, far_end: LinkFarEnd) {
        let LinkFarEnd::Pod { pod, .. } = far_end else { return };
        if let Some(pod) = self.platform.pod_mut(pod).filter(|pod| pod.link == Some(link)) {
            pod.link = None;
        }
    }

    pub(super) fn link_stands(&mut self, link: LinkId, dial: DialNumber) {
        // A link that was closed or dialled again meanwhile is of no use.
        let kept = self.owner.links.get_mut(&link).filter(|kept| kept.dial == dial);
        let Some(kept) = kept else { return };
        if let Some(until) = self.disturbances.lost_until(kept.far_end.group(), self.now) {
            let dial = self.owner.dial_in_vain(link);
            return self.queue.push(until, WorldEvent::LinkStands(link, dial));
        }
        kept.standing = LinkStanding::Stands;
        match (kept.far_end, kept.first.clone()) {
            (LinkFarEnd::Activator, _) => {
                self.tell_activator(ActivatorEvent::LinkOpened { link: LinkNumber(link.0) });
            }
            (LinkFarEnd::Pod { pod, .. }, Some(first)) => self.link_of_pod_stands(link, pod, &first),
            (LinkFarEnd::Pod { .. }, None) => {}
        }
    }

    fn link_of_pod_stands(&mut self, link: LinkId, number: PodNumber, first: &PodSettings) {
        let Some(pod) = self.platform.pod_mut(number) else { return };
        pod.link = Some(link);
        let hello = pod.hello();
        self.pod_says(number, PodWord::Hello(hello));
        self.pod_hears(number, first);
    }

    pub(super) fn pod_hears(&mut self, number: PodNumber, settings: &PodSettings) {
        let Some(pod) = self.platform.pod_mut(number) else { return };
        if pod.set(settings) {
            self.pod_says(number, PodWord::SettingsAcknowledged(settings.version));
            self.pod_changed(number);
        }
    }

    /// The way of a word that leaves now; `None` while the link is lost.
    fn way(&mut self, link: LinkId, direction: WordDirection) -> Option<WordOnTheWay> {
        let kept = self.owner.links.get_mut(&link)?;
        if kept.standing == LinkStanding::Lost {
            return None;
        }
        let delay = self.delays.link + self.disturbances.slowness(kept.far_end.group(), self.now);
        let way = match direction {
            WordDirection::ToOwner => &mut kept.to_owner,
            WordDirection::ToFarEnd => &mut kept.to_far_end,
        };
        Some(WordOnTheWay { dial: kept.dial, at: way.arrival(self.now, delay) })
    }

    /// A pod says something, if its link stands.
    pub(super) fn pod_says(&mut self, pod: PodNumber, word: PodWord) {
        if let Some(link) = self.platform.pod(pod).and_then(|pod| pod.link) {
            self.say_to_owner(link, ControlEvent::PodSpoke { link, word });
        }
    }

    pub(super) fn send_to_owner(&mut self, link: LinkNumber, word: ActivatorWord) {
        let link = LinkId(link.0);
        self.say_to_owner(link, ControlEvent::ActivatorSpoke { link, word });
    }

    fn say_to_owner(&mut self, link: LinkId, word: ControlEvent) {
        if let Some(WordOnTheWay { dial, at }) = self.way(link, WordDirection::ToOwner) {
            self.queue.push(at, WorldEvent::OwnerHearsWord(dial, Box::new(word)));
        }
    }

    /// The owner hears news of a link.
    pub(super) fn owner_hears(&mut self, event: ControlEvent) {
        self.queue.push(self.now + self.delays.link, WorldEvent::OwnerHears(Box::new(event)));
    }

    pub(super) fn send_to_activator(&mut self, link: LinkId, event: ActivatorEvent) {
        if let Some(WordOnTheWay { dial, at }) = self.way(link, WordDirection::ToFarEnd) {
            self.queue.push(at, WorldEvent::ActivatorHearsOwner(dial, Box::new(event)));
        }
    }

    pub(super) fn tell_pod(&mut self, link: LinkId, settings: Arc<PodSettings>) {
        let Some(kept) = self.owner.links.get_mut(&link) else { return };
        let LinkFarEnd::Pod { pod, .. } = kept.far_end else { return };
        kept.tell(Arc::clone(&settings));
        if let Some(WordOnTheWay { dial, at }) = self.way(link, WordDirection::ToFarEnd) {
            self.queue.push(at, WorldEvent::PodHears(dial, pod, settings));
        }
    }

    /// Links of a group are lost or slow for a while.
    pub(super) fn disturb_links(&mut self, group: LinkGroup, kind: LinkDisturbanceKind, length: Duration) {
        let until = self.now + length;
        self.disturbances.add(LinkDisturbance { group, kind, until }, self.now);
        if kind != LinkDisturbanceKind::Lost {
            return;
        }
        for link in self.owner.standing_links(group) {
            self.disconnect(link);
            self.owner_hears(ControlEvent::LinkChanged { link, news: LinkNews::Lost });
            let dial = self.owner.dial_again(link);
            self.queue.push(self.now + DIAL_AGAIN, WorldEvent::LinkStands(link, dial));
        }
    }

    /// All links of the owner end, as its process does.
    pub(super) fn end_links(&mut self) {
        let links: Vec<LinkId> = self.owner.links.keys().copied().collect();
        for link in links {
            self.disconnect(link);
        }
    }

    fn disconnect(&mut self, link: LinkId) {
        let Some(far_end) = self.owner.lose(link) else { return };
        self.unlink_pod(link, far_end);
        if far_end == LinkFarEnd::Activator {
            let closed = ActivatorEvent::LinkClosed { link: LinkNumber(link.0) };
            self.queue.push(self.now + self.delays.link, WorldEvent::ActivatorHears(Box::new(closed)));
        }
    }
}
