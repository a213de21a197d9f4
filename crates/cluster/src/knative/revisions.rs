//! Which revisions of Knative's are there, and which write comes next?
//!
//! A revision exists as long as its `PodAutoscaler` does; it is written by the owner of its bucket alone. A
//! turn looks at the revisions that something has happened to, however many there are: a thousand at rest
//! cost nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use vocabulary::Timestamp;

use super::pod_autoscaler::PodAutoscalerRecord;
use super::revision_desk::{DeskWrite, RevisionDesk, RevisionFigures, RouteOrder};
use super::serverless::ServerlessRecord;
use crate::moment::Moment;
use crate::resources::ObjectKey;

/// Which of a revision's two objects a write was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenObject {
    /// The `ServerlessService` of the revision.
    Service,
    /// The status of its `PodAutoscaler`.
    Status,
}

impl WrittenObject {
    /// What the log calls the object.
    pub fn word(self) -> &'static str {
        match self {
            Self::Service => "the ServerlessService",
            Self::Status => "the status of the PodAutoscaler",
        }
    }
}

impl DeskWrite {
    /// Which of a revision's two objects the write is of.
    pub fn object(&self) -> WrittenObject {
        match self {
            Self::Service(_) => WrittenObject::Service,
            Self::Status(_) => WrittenObject::Status,
        }
    }
}

/// How a write of an object ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEnd {
    /// The API server took the write.
    Done,
    /// Another client wrote the object meanwhile (409): the watch shows it.
    Conflict,
    /// The write failed, and is tried again, after the server's own wait if it named one.
    Failed(Option<Duration>),
}

/// All revisions that came by a `PodAutoscaler`.
#[derive(Debug, Default)]
pub struct KnativeRevisions {
    desks: BTreeMap<ObjectKey, RevisionDesk>,
    /// Services, also those whose `PodAutoscaler` the watch has not shown yet.
    services: BTreeMap<ObjectKey, ServerlessRecord>,
    /// Revisions that something has happened to since the last look.
    touched: BTreeSet<ObjectKey>,
    /// When a revision has to be looked at without any event.
    deadlines: BTreeMap<ObjectKey, Timestamp>,
}

impl KnativeRevisions {
    /// A `PodAutoscaler` as the watch shows it.
    pub fn put_autoscaler(&mut self, record: PodAutoscalerRecord) {
        let key = record.key.clone();
        if let Some(desk) = self.desks.get_mut(&key) {
            desk.put_autoscaler(record);
        } else {
            let mut desk = RevisionDesk::new(record);
            desk.put_service(self.services.get(&key).cloned());
            self.desks.insert(key.clone(), desk);
        }
        self.touched.insert(key);
    }

    /// A `PodAutoscaler` is gone: nothing of its revision is written any more. Its pods may end minutes
    /// later.
    pub fn remove_autoscaler(&mut self, key: &ObjectKey) {
        self.desks.remove(key);
        self.touched.remove(key);
        self.deadlines.remove(key);
    }

    /// A `ServerlessService` as the watch shows it.
    pub fn put_service(&mut self, record: ServerlessRecord) {
        let key = record.key.clone();
        self.services.insert(key.clone(), record.clone());
        self.with_desk(&key, |desk| desk.put_service(Some(record)));
    }

    /// A `ServerlessService` is gone; while its `PodAutoscaler` is there it is made again.
    pub fn remove_service(&mut self, key: &ObjectKey) {
        self.services.remove(key);
        self.with_desk(key, |desk| desk.put_service(None));
    }

    /// The figures of a revision from now on.
    pub fn put_figures(&mut self, key: &ObjectKey, figures: RevisionFigures) {
        self.with_desk(key, |desk| desk.put_figures(figures));
    }

    /// The route of a revision from now on.
    pub fn put_route(&mut self, key: &ObjectKey, route: RouteOrder) {
        self.with_desk(key, |desk| desk.put_route(route));
    }

    /// Another owner decides, or decided, about the route of a revision.
    pub(crate) fn forget_route(&mut self, key: &ObjectKey) {
        self.with_desk(key, RevisionDesk::forget_route);
    }

    /// The `PodAutoscaler` of a revision, as the watch showed it last.
    pub(crate) fn autoscaler(&self, key: &ObjectKey) -> Option<&PodAutoscalerRecord> {
        self.desks.get(key).map(RevisionDesk::autoscaler)
    }

    /// The `ServerlessService` of a revision, as the watch showed it last, if it is the revision's own.
    pub(crate) fn service(&self, key: &ObjectKey) -> Option<&ServerlessRecord> {
        self.desks.get(key).and_then(RevisionDesk::service)
    }

    /// The `ServerlessService` of a revision once it says all that was decided, and the controller has
    /// carried that out.
    pub(crate) fn carried_out(&self, key: &ObjectKey) -> Option<&ServerlessRecord> {
        self.desks.get(key).and_then(RevisionDesk::carried_out)
    }

    /// Whether [`KnativeRevisions::next_write`] has something to look at now.
    pub(crate) fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Buckets have come to this autoscaler: each of their revisions is looked at.
    pub fn owned_anew(&mut self, is_owned: impl Fn(&ObjectKey) -> bool) {
        self.touched.extend(self.desks.keys().filter(|key| is_owned(key)).cloned());
    }

    /// The next write to begin, of a revision for which `is_owned` holds. Ask until there is none.
    pub fn next_write(
        &mut self,
        moment: Moment,
        is_owned: impl Fn(&ObjectKey) -> bool,
    ) -> Option<(ObjectKey, DeskWrite)> {
        let due = self.deadlines.iter().filter(|(_, at)| **at <= moment.axis);
        self.touched.extend(due.map(|(key, _)| key.clone()));
        while let Some(key) = self.touched.pop_first() {
            self.deadlines.remove(&key);
            let Some(desk) = self.desks.get_mut(&key).filter(|_| is_owned(&key)) else { continue };
            if let Some(write) = desk.next_write(moment) {
                // Its other object may have to be written, too.
                self.touched.insert(key.clone());
                return Some((key, write));
            }
            if let Some(at) = desk.next_deadline(moment) {
                self.deadlines.insert(key, at);
            }
        }
        None
    }

    /// When [`KnativeRevisions::next_write`] may have something to say without any event.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.values().min().copied()
    }

    /// A write that was begun has ended. One of a revision that is gone means nothing.
    pub fn ended(&mut self, key: &ObjectKey, object: WrittenObject, end: WriteEnd, now: Timestamp) {
        self.with_desk(key, |desk| match (object, end) {
            (WrittenObject::Service, WriteEnd::Done | WriteEnd::Conflict) => desk.service_written(),
            (WrittenObject::Service, WriteEnd::Failed(wait)) => desk.service_failed(wait, now),
            (WrittenObject::Status, WriteEnd::Done) => desk.status_written(),
            (WrittenObject::Status, WriteEnd::Conflict) => desk.status_conflicted(),
            (WrittenObject::Status, WriteEnd::Failed(wait)) => desk.status_failed(wait, now),
        });
    }

    fn with_desk(&mut self, key: &ObjectKey, act: impl FnOnce(&mut RevisionDesk)) {
        if let Some(desk) = self.desks.get_mut(key) {
            act(desk);
            self.touched.insert(key.clone());
        }
    }
}

#[cfg(test)]
mod tests;
