//! Links of autoscalers that are lost, or slow, for a while.

use std::time::Duration;

use vocabulary::Timestamp;

use crate::world_event::ServiceNumber;

/// The links of the autoscaler that a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkGroup {
    PodsOf(ServiceNumber),
    Activator,
}

/// How a link is disturbed for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkDisturbanceKind {
    /// The link does not stand, and cannot be had.
    Lost,
    /// Each word takes so much longer.
    Slow(Duration),
}

/// A fault of links, and when it is over. Each world groups its links in its own way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkDisturbance<Group> {
    pub(crate) group: Group,
    pub(crate) kind: LinkDisturbanceKind,
    pub(crate) until: Timestamp,
}

/// The faults of links that are not known to be over.
#[derive(Debug)]
pub(crate) struct LinkDisturbances<Group>(Vec<LinkDisturbance<Group>>);

impl<Group> Default for LinkDisturbances<Group> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<Group: Copy + PartialEq> LinkDisturbances<Group> {
    pub(crate) fn add(&mut self, disturbance: LinkDisturbance<Group>, now: Timestamp) {
        self.0.retain(|known| known.until > now);
        self.0.push(disturbance);
    }

    /// How much longer a word takes that leaves now; the longest of several times.
    pub(crate) fn slowness(&self, group: Group, now: Timestamp) -> Duration {
        let delays = self.of(group, now).map(|disturbance| match disturbance.kind {
            LinkDisturbanceKind::Lost => Duration::ZERO,
            LinkDisturbanceKind::Slow(delay) => delay,
        });
        delays.max().unwrap_or_default()
    }

    /// Until when no link of the group stands; `None` if links can stand now.
    pub(crate) fn lost_until(&self, group: Group, now: Timestamp) -> Option<Timestamp> {
        let lost = self.of(group, now).filter(|disturbance| disturbance.kind == LinkDisturbanceKind::Lost);
        lost.map(|disturbance| disturbance.until).max()
    }

    fn of(&self, group: Group, now: Timestamp) -> impl Iterator<Item = &LinkDisturbance<Group>> {
        self.0.iter().filter(move |known| known.group == group && known.until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_disturbed_in_their_group_alone_and_until_it_is_over() {
        let at = Timestamp::from_secs;
        let (hello, other) = (LinkGroup::PodsOf(ServiceNumber(0)), LinkGroup::PodsOf(ServiceNumber(1)));
        let mut all = LinkDisturbances::default();
        let slow = LinkDisturbanceKind::Slow(Duration::from_secs(2));
        all.add(LinkDisturbance { group: hello, kind: slow, until: at(20) }, at(10));
        all.add(LinkDisturbance { group: other, kind: LinkDisturbanceKind::Lost, until: at(30) }, at(10));
        assert_eq!(all.slowness(hello, at(19)), Duration::from_secs(2));
        assert_eq!(all.slowness(hello, at(20)), Duration::ZERO);
        assert_eq!((all.slowness(other, at(15)), all.lost_until(hello, at(15))), (Duration::ZERO, None));
        assert_eq!(all.lost_until(other, at(29)), Some(at(30)));
        assert_eq!(all.lost_until(LinkGroup::Activator, at(15)), None);
    }
}
