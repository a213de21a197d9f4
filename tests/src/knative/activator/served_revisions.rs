//! The revisions that an activator knows, each with the pods that take its requests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::knative::revision_throttler::RevisionThrottler;
use crate::knative::subset::assigned;

/// A revision by its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RevisionKey {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl RevisionKey {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// What the Endpoints of a revision say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RevisionAddresses {
    /// All pods, ready or not: probes find those that answer.
    pub(super) pods: BTreeSet<IpAddr>,
    /// The number of activators in the path, and this one's place among them, once they name it.
    pub(super) place: Option<(usize, usize)>,
}

/// A revision for which requests are taken.
#[derive(Debug)]
pub(super) struct ServedRevision {
    pub(super) key: RevisionKey,
    pub(super) port: u16,
    pub(super) timeout: Duration,
    pub(super) throttler: Arc<RevisionThrottler>,
    pub(super) addresses: watch::Sender<RevisionAddresses>,
}

impl ServedRevision {
    /// Pods that answer probes: those of them that are this activator's take requests from now on.
    pub(super) fn assign(&self, healthy: &BTreeSet<IpAddr>) {
        let place = self.addresses.borrow().place;
        // In the order of addresses as texts.
        let mut pods: Vec<IpAddr> = healthy.iter().copied().collect();
        pods.sort_by_key(ToString::to_string);
        if self.throttler.limit() > 0 {
            let (activators, own) = place.map_or((0, None), |(activators, own)| (activators, Some(own)));
            pods = assigned(&pods, own, activators);
        }
        self.throttler.assign(pods);
    }
}

/// All revisions that the API server shows.
#[derive(Debug)]
pub(super) struct ServedRevisions {
    own: IpAddr,
    revisions: Mutex<BTreeMap<RevisionKey, Arc<ServedRevision>>>,
    /// Addresses of revisions that are not known yet, too.
    addresses: Mutex<BTreeMap<RevisionKey, RevisionAddresses>>,
}

impl ServedRevisions {
    pub(super) fn new(own: IpAddr) -> Arc<Self> {
        Arc::new(Self { own, revisions: Mutex::default(), addresses: Mutex::default() })
    }

    pub(super) fn get(&self, key: &RevisionKey) -> Option<Arc<ServedRevision>> {
        self.revisions.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// A revision that the API server shows; the returned one is new.
    pub(super) fn add(
        &self,
        key: RevisionKey,
        port: u16,
        timeout: Duration,
        limit: u32,
    ) -> Option<Arc<ServedRevision>> {
        let mut revisions = self.revisions.lock().unwrap_or_else(PoisonError::into_inner);
        if revisions.contains_key(&key) {
            return None;
        }
        let known = self.addresses.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let (addresses, _) = watch::channel(known.unwrap_or_default());
        let throttler = RevisionThrottler::new(limit);
        let revision = Arc::new(ServedRevision { key: key.clone(), port, timeout, throttler, addresses });
        revisions.insert(key, Arc::clone(&revision));
        Some(revision)
    }

    pub(super) fn remove(&self, key: &RevisionKey) {
        self.revisions.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Whether this is still the revision of that name.
    pub(super) fn is_present(&self, revision: &Arc<ServedRevision>) -> bool {
        self.get(&revision.key).is_some_and(|present| Arc::ptr_eq(&present, revision))
    }

    /// The pods of a revision, from the Endpoints of its private Service.
    pub(super) fn put_pods(&self, key: &RevisionKey, pods: BTreeSet<IpAddr>) {
        self.change(key, |addresses| addresses.pods = pods);
    }

    /// The ready addresses of the public Endpoints. Where they do not name this activator, the former place
    /// holds.
    pub(super) fn put_public(&self, key: &RevisionKey, ready: &BTreeSet<IpAddr>) {
        let mut texts: Vec<String> = ready.iter().map(ToString::to_string).collect();
        texts.sort();
        if let Some(place) = texts.iter().position(|text| *text == self.own.to_string()) {
            self.change(key, |addresses| addresses.place = Some((texts.len(), place)));
        }
    }

    fn change(&self, key: &RevisionKey, act: impl FnOnce(&mut RevisionAddresses)) {
        let present = {
            let mut all = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            let addresses = all.entry(key.clone()).or_default();
            act(addresses);
            addresses.clone()
        };
        if let Some(revision) = self.get(key) {
            revision.addresses.send_if_modified(|shown| {
                let is_new = *shown != present;
                *shown = present;
                is_new
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[tokio::test]
    async fn the_own_place_is_kept_while_the_endpoints_name_pods() {
        let revisions = ServedRevisions::new(address(10));
        let key = RevisionKey::new("default", "hello-00001");
        // Before the revision is known; in the order of texts, .10 comes before .9.
        revisions.put_public(&key, &[address(9), address(10)].into());
        let revision = revisions.add(key.clone(), 8012, Duration::from_secs(1), 1).expect("it is new");
        assert_eq!(revision.addresses.borrow().place, Some((2, 0)));
        revisions.put_public(&key, &[address(200)].into());
        assert_eq!(revision.addresses.borrow().place, Some((2, 0)));
        revision.assign(&[address(1), address(2)].into());
        assert_eq!(revision.throttler.reserve().await.pod, address(1), "one of two pods is its own");
        assert!(revisions.add(key.clone(), 8012, Duration::from_secs(1), 1).is_none());
        revisions.remove(&key);
        assert!(!revisions.is_present(&revision));
    }
}
