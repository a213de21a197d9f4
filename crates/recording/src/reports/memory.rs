//! What writer and reader of a segment know alike at each call, so that it need not be written.

use std::collections::BTreeMap;

use vocabulary::ResourceUsage;

const SECOND_NANOSECONDS: u64 = 1_000_000_000;

/// The calls of a segment so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportMemory {
    links: BTreeMap<u64, LinkMemory>,
    /// The link of the last report.
    pub(super) last_link: u64,
}

/// The last report of a link.
#[derive(Clone, Copy, Debug)]
struct LinkMemory {
    at: u64,
    second: u64,
    usage: Option<ResourceUsage>,
    /// The link whose report came next.
    follower: Option<u64>,
}

impl ReportMemory {
    /// The link that followed the last one before.
    pub(super) fn expected_link(&self) -> Option<u64> {
        self.links.get(&self.last_link)?.follower
    }

    /// The second behind the last one of a link.
    pub(super) fn expected_second(&self, link: u64) -> Option<u64> {
        self.links.get(&link).map(|last| last.second.wrapping_add(1))
    }

    /// The time at which a link that keeps its pace tells of a second, in nanoseconds.
    pub(super) fn expected_time(&self, link: u64, second: u64) -> Option<u64> {
        let last = self.links.get(&link)?;
        let passed = second.wrapping_sub(last.second).wrapping_mul(SECOND_NANOSECONDS);
        Some(last.at.wrapping_add(passed))
    }

    /// What the app of a pod used, as its link said last.
    pub(super) fn usage(&self, link: u64) -> Option<ResourceUsage> {
        self.links.get(&link)?.usage
    }

    /// A link told of a second. What it said of its usage before stays known.
    pub(super) fn note(&mut self, link: u64, second: u64, at: u64, usage: Option<ResourceUsage>) {
        if let Some(before) = self.links.get_mut(&self.last_link) {
            before.follower = Some(link);
        }
        self.last_link = link;
        let last = self.links.entry(link).or_insert(LinkMemory { at, second, usage: None, follower: None });
        (last.at, last.second) = (at, second);
        last.usage = usage.or(last.usage);
    }
}
