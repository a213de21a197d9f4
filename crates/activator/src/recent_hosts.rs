//! The revisions of the hosts that the requests of one thread named last.
//!
//! To find a revision, a host is brought into the form of its entry, hashed against collisions, and looked up
//! under a lock in a map that all threads share, several times where a wildcard stands for it. A thread is
//! asked for few hosts again and again, and clients write a host alike each time. So what was found for the
//! letters of a host is remembered until any host leads elsewhere.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use crate::host_search::NAME_BYTES_MAX;

/// How many hosts are remembered. Of two that share a slot the later one is.
const SLOTS: usize = 256;

/// A host that is written with more bytes is not remembered: as long as a name of DNS may be, and a port.
const HOST_BYTES_MAX: usize = NAME_BYTES_MAX + ":65535".len();

/// The hosts that were found last, each in the slot that its letters choose.
pub(crate) struct RecentHosts<Revision>(RefCell<Vec<Option<RecentHost<Revision>>>>);

struct RecentHost<Revision> {
    /// The host as requests write it.
    host: Box<str>,
    /// How many changes of hosts there were when it was looked up.
    changes: u64,
    /// No revision is kept for the sake of what was asked for once.
    revision: Weak<Revision>,
}

impl<Revision> Default for RecentHosts<Revision> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<Revision> RecentHosts<Revision> {
    /// The revision that was found for a host which is written like this; `None` if it is not remembered, or
    /// was found before the last of so many changes.
    pub(crate) fn find(&self, host: impl AsRef<[u8]>, changes: u64) -> Option<Arc<Revision>> {
        let (slots, host) = (self.0.borrow(), host.as_ref());
        let recent = slots.get(slot_of(host))?.as_ref()?;
        let is_found = recent.changes == changes && recent.host.as_bytes() == host;
        if is_found { recent.revision.upgrade() } else { None }
    }

    /// Remembers the revision that was found for a host. `changes` is their number before the look-up: what
    /// has changed during it makes this useless, and never wrong.
    pub(crate) fn note(&self, host: &str, changes: u64, revision: &Arc<Revision>) {
        if host.len() > HOST_BYTES_MAX {
            return;
        }
        let mut slots = self.0.borrow_mut();
        // Made with the first host: a thread has as many of these as it has ports.
        slots.resize_with(SLOTS, || None);
        slots[slot_of(host.as_bytes())] =
            Some(RecentHost { host: host.into(), changes, revision: Arc::downgrade(revision) });
    }
}

/// The slot of a host. Clients can choose hosts that share one; each of those is looked up each time, as all
/// would be without this.
fn slot_of(host: &[u8]) -> usize {
    // An odd number without a pattern: 2^64 divided by the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix =
        |mixed: u64, word: [u8; 8]| (mixed.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    let (words, rest) = host.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mixed = mix(words.iter().fold(0, |mixed, word| mix(mixed, *word)), last);
    // The uppermost bits depend on all others.
    usize::from(mixed.to_be_bytes()[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_remembered_as_it_was_written_until_any_host_leads_elsewhere() {
        let (hosts, revision) = (RecentHosts::<&str>::default(), Arc::new("revision"));
        assert_eq!(hosts.find("hello.example.com", 0), None);
        hosts.note("hello.example.com", 3, &revision);
        assert_eq!(hosts.find("hello.example.com", 3).as_ref(), Some(&revision));
        for (host, changes) in
            [("hello.example.com", 4), ("Hello.example.com", 3), ("hello.example.com:80", 3), ("", 3)]
        {
            assert_eq!(hosts.find(host, changes), None, "{host} after {changes}");
        }
        let other = Arc::new("other");
        hosts.note("hello.example.com", 4, &other);
        assert_eq!(hosts.find("hello.example.com", 4), Some(other));
        assert_eq!(hosts.find("hello.example.com", 4), None, "it keeps no revision alive");
    }

    #[test]
    fn a_host_that_is_found_is_the_one_that_was_noted() {
        let hosts = RecentHosts::default();
        let names: Vec<String> =
            (0..1000).map(|number| format!("app-{number}.default.example.com")).collect();
        let revisions: Vec<Arc<String>> = names.iter().cloned().map(Arc::new).collect();
        for (name, revision) in names.iter().zip(&revisions) {
            hosts.note(name, 0, revision);
        }
        let found: Vec<_> = names.iter().filter_map(|name| Some((name, hosts.find(name, 0)?))).collect();
        assert!(found.iter().all(|(name, revision)| **name == **revision));
        assert!(found.len() > SLOTS / 2, "{} of {SLOTS} slots are in use", found.len());
    }

    #[test]
    fn a_host_without_end_is_not_remembered() {
        let (hosts, revision) = (RecentHosts::default(), Arc::new(()));
        for (length, is_kept) in [(HOST_BYTES_MAX, true), (HOST_BYTES_MAX + 1, false)] {
            let host = "h".repeat(length);
            hosts.note(&host, 0, &revision);
            assert_eq!(hosts.find(&host, 0).is_some(), is_kept, "{length}");
        }
    }
}
