//! Which pods may a workload's selector mean, and which workloads may a pod be of, without a look at all of
//! them?
//!
//! Selectors ask for labels with exactly one value, nearly always for one that no other workload has. So pods
//! are known by all their labels, and each workload by that one of its selector's which fewest others have.
//! What is found so is only a candidate: whose a pod is, selectors and owners say.

use std::collections::{BTreeMap, BTreeSet};

use vocabulary::{PodName, RevisionName};

use crate::resources::pod::PodObject;
use crate::resources::selector::Selector;
use crate::resources::workload::WorkloadRecord;

/// A namespace, and a label with its value.
type Label = (String, String, String);

/// As a Service selects: all of its labels, exactly.
pub(super) fn selects(wanted: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Pods by each of their labels, so that a selector reads few of them.
#[derive(Debug, Default)]
pub(super) struct PodLabels(BTreeMap<Label, BTreeSet<PodName>>);

impl PodLabels {
    pub(super) fn insert(&mut self, pod: &PodObject) {
        for label in labels_of(pod) {
            self.0.entry(label).or_default().insert(pod.pod_name());
        }
    }

    pub(super) fn remove(&mut self, pod: &PodObject) {
        for label in labels_of(pod) {
            let Some(pods) = self.0.get_mut(&label) else { continue };
            pods.remove(&pod.pod_name());
            if pods.is_empty() {
                self.0.remove(&label);
            }
        }
    }

    /// Those that have the rarest of the labels that a selector asks for; `None` if it asks for none, so that
    /// any pod may be meant.
    pub(super) fn candidates(
        &self,
        namespace: &str,
        selector: &Selector,
    ) -> Option<impl Iterator<Item = &PodName>> {
        let labels = selector.exact_labels().into_iter();
        let sets = labels.map(|(key, value)| self.0.get(&(namespace.to_owned(), key, value)));
        let rarest = sets.min_by_key(|pods| pods.map_or(0, BTreeSet::len))?;
        Some(rarest.into_iter().flatten())
    }
}

fn labels_of(pod: &PodObject) -> impl Iterator<Item = Label> {
    pod.labels.iter().map(|(key, value)| (pod.namespace.clone(), key.clone(), value.clone()))
}

/// Workloads by what they select, and by their uids.
#[derive(Debug, Default)]
pub(super) struct WorkloadLabels {
    by_label: BTreeMap<Label, BTreeSet<RevisionName>>,
    /// Those that ask for no label with exactly one value, by their namespaces.
    others: BTreeMap<String, BTreeSet<RevisionName>>,
    /// By which label each is known.
    known_by: BTreeMap<RevisionName, Label>,
    by_uid: BTreeMap<String, RevisionName>,
}

impl WorkloadLabels {
    pub(super) fn insert(&mut self, record: &WorkloadRecord) {
        let revision = &record.revision;
        let namespace = revision.namespace().to_owned();
        self.by_uid.insert(record.uid.clone(), revision.clone());
        let labels = record.selector.exact_labels().into_iter();
        let labels = labels.map(|(key, value)| (namespace.clone(), key, value));
        match labels.min_by_key(|label| self.by_label.get(label).map_or(0, BTreeSet::len)) {
            Some(label) => {
                self.by_label.entry(label.clone()).or_default().insert(revision.clone());
                self.known_by.insert(revision.clone(), label);
            }
            None => {
                self.others.entry(namespace).or_default().insert(revision.clone());
            }
        }
    }

    pub(super) fn remove(&mut self, record: &WorkloadRecord) {
        let revision = &record.revision;
        if self.by_uid.get(&record.uid) == Some(revision) {
            self.by_uid.remove(&record.uid);
        }
        match self.known_by.remove(revision) {
            Some(label) => without(&mut self.by_label, &label, revision),
            None => without(&mut self.others, &revision.namespace().to_owned(), revision),
        }
    }

    /// In the order of their names.
    pub(super) fn candidates(&self, pod: &PodObject) -> BTreeSet<&RevisionName> {
        let known = labels_of(pod).filter_map(|label| self.by_label.get(&label)).flatten();
        known.chain(self.others.get(&pod.namespace).into_iter().flatten()).collect()
    }

    pub(super) fn of_uid(&self, uid: &str) -> Option<&RevisionName> {
        self.by_uid.get(uid)
    }
}

fn without<Key: Ord>(sets: &mut BTreeMap<Key, BTreeSet<RevisionName>>, key: &Key, revision: &RevisionName) {
    let Some(set) = sets.get_mut(key) else { return };
    set.remove(revision);
    if set.is_empty() {
        sets.remove(key);
    }
}
