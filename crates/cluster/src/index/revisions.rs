//! Which revisions of an installed Knative are there, and what is known of the way to each?
//!
//! Beside the two objects of each revision, which [`KnativeRevisions`] has, stand the slices of its public
//! Service and what was decided about it. What follows for the control loop, the index works out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use orchestration::RouteInForce;
use settings::PROGRESS_DEADLINE_DEFAULT;
use vocabulary::{Bucket, PodCount, RevisionName, Routing, Timestamp};

use super::revision_keys::{key_of, name_of};
use crate::knative::{
    KnativeRevisions, PathEvidence, PathState, PodAutoscalerRecord, PublicSlice, QueueProxyEnvironment,
    RevisionFigures, RouteOrder, ServerlessMode, ServerlessRecord, path_state, proxied_since,
};
use crate::notice::Notice;
use crate::resources::ObjectKey;

/// The bounds of a revision that its status follows from, and what is wrong with its annotations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RevisionBounds {
    pub(super) min: PodCount,
    pub(super) initial: PodCount,
    pub(super) progress_deadline: Duration,
    pub(super) warnings: Vec<Notice>,
}

/// What was read and decided of one revision, beside its objects.
#[derive(Debug, Default)]
struct RevisionNotes {
    bounds: RevisionBounds,
    /// The count after bounds and the rules around zero, as it was decided last (`None`: Knative's -1).
    intended: Option<PodCount>,
    /// How many activators are to serve it; `None` before a decision.
    activators: Option<PodCount>,
    /// The route that was ordered last, or found.
    routing: Option<Routing>,
    /// The figures that the book was last given.
    figures: Option<RevisionFigures>,
    /// The route that the book was last given.
    route: Option<RouteOrder>,
}

/// All revisions that came by a `PodAutoscaler`.
#[derive(Debug)]
pub(super) struct Revisions {
    /// The cluster's domain; `None` in ebb's own installation, where there are no such revisions.
    domain: Option<String>,
    book: KnativeRevisions,
    notes: BTreeMap<ObjectKey, RevisionNotes>,
    /// The revision of each Deployment.
    by_deployment: BTreeMap<ObjectKey, RevisionName>,
    /// What each revision's Deployment says of its queue-proxies.
    environments: BTreeMap<ObjectKey, QueueProxyEnvironment>,
    slices: BTreeMap<ObjectKey, PublicSlice>,
    /// The slices of each public Service.
    slices_of: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Since when a revision's slices name activators alone.
    activators_alone_since: BTreeMap<ObjectKey, Timestamp>,
    /// The progress deadline that `config-deployment` sets.
    progress_deadline: Duration,
}

impl Default for Revisions {
    fn default() -> Self {
        Self {
            domain: None,
            book: KnativeRevisions::default(),
            notes: BTreeMap::new(),
            by_deployment: BTreeMap::new(),
            environments: BTreeMap::new(),
            slices: BTreeMap::new(),
            slices_of: BTreeMap::new(),
            activators_alone_since: BTreeMap::new(),
            progress_deadline: PROGRESS_DEADLINE_DEFAULT,
        }
    }
}

impl Revisions {
    /// No revision yet, in an installed Knative of this domain.
    pub(super) fn in_place_of_knatives(domain: String) -> Self {
        Self { domain: Some(domain), ..Self::default() }
    }

    /// The cluster's domain, where ebb stands in the place of Knative's autoscaler.
    pub(super) fn domain(&self) -> Option<&str> {
        self.domain.as_deref()
    }

    pub(super) fn book(&self) -> &KnativeRevisions {
        &self.book
    }

    pub(super) fn book_mut(&mut self) -> &mut KnativeRevisions {
        &mut self.book
    }

    pub(super) fn names(&self) -> impl Iterator<Item = RevisionName> + '_ {
        self.notes.keys().filter_map(name_of)
    }

    /// Puts a `PodAutoscaler` in; returns whether it asks for something else than before.
    pub(super) fn put_autoscaler(&mut self, record: PodAutoscalerRecord) -> bool {
        let key = record.key.clone();
        let former = self.book.autoscaler(&key);
        let is_same_object = former.is_some_and(|former| former.uid == record.uid);
        let is_news = former.is_none_or(|former| !former.asks_for_the_same_as(&record));
        self.book.put_autoscaler(record);
        if !is_same_object {
            self.notes.insert(key, RevisionNotes::default());
        }
        is_news
    }

    /// A `PodAutoscaler` is gone; returns whether it was there.
    pub(super) fn remove_autoscaler(&mut self, key: &ObjectKey) -> bool {
        self.book.remove_autoscaler(key);
        self.notes.remove(key).is_some()
    }

    /// Whether a revision's `PodAutoscaler` is there.
    pub(super) fn has(&self, revision: &RevisionName) -> bool {
        key_of(revision).is_some_and(|key| self.notes.contains_key(&key))
    }

    pub(super) fn autoscaler(&self, key: &ObjectKey) -> Option<&PodAutoscalerRecord> {
        self.book.autoscaler(key)
    }

    /// A Deployment is a revision's, and says this of its queue-proxies; returns whether that is news.
    pub(super) fn put_deployment(
        &mut self,
        deployment: ObjectKey,
        revision: &RevisionName,
        environment: QueueProxyEnvironment,
    ) -> bool {
        self.by_deployment.insert(deployment, revision.clone());
        let Some(key) = key_of(revision) else { return false };
        self.environments.insert(key, environment) != Some(environment)
    }

    /// A Deployment is gone, or of no revision; returns the revision that it was of.
    pub(super) fn remove_deployment(&mut self, deployment: &ObjectKey) -> Option<RevisionName> {
        let revision = self.by_deployment.remove(deployment)?;
        if let Some(key) = key_of(&revision) {
            self.environments.remove(&key);
        }
        Some(revision)
    }

    /// The revision that a Deployment is of, as its labels said last.
    pub(super) fn revision_of_deployment(&self, deployment: &ObjectKey) -> Option<&RevisionName> {
        self.by_deployment.get(deployment)
    }

    /// What a revision's Deployment says of its queue-proxies; the default before that is known.
    pub(super) fn environment(&self, key: &ObjectKey) -> QueueProxyEnvironment {
        self.environments.get(key).copied().unwrap_or_default()
    }

    /// The progress deadline of revisions that name none; returns whether that is news.
    pub(super) fn put_progress_deadline(&mut self, deadline: Duration) -> bool {
        std::mem::replace(&mut self.progress_deadline, deadline) != deadline
    }

    pub(super) fn progress_deadline(&self) -> Duration {
        self.progress_deadline
    }

    pub(super) fn put_bounds(&mut self, key: &ObjectKey, bounds: RevisionBounds) {
        if let Some(notes) = self.notes.get_mut(key) {
            notes.bounds = bounds;
        }
    }

    /// What is wrong with a revision's annotations.
    pub(super) fn warnings(&self, key: &ObjectKey) -> &[Notice] {
        self.notes.get(key).map(|notes| notes.bounds.warnings.as_slice()).unwrap_or_default()
    }

    /// What was decided about a revision.
    pub(super) fn put_decision(&mut self, key: &ObjectKey, intended: Option<PodCount>, activators: PodCount) {
        let Some(notes) = self.notes.get_mut(key) else { return };
        (notes.intended, notes.activators) = (intended, Some(activators));
        self.tell_route(key);
    }

    /// The route of a revision, as it was ordered or found.
    pub(super) fn put_routing(&mut self, key: &ObjectKey, routing: Routing) {
        let Some(notes) = self.notes.get_mut(key) else { return };
        notes.routing = Some(routing);
        self.tell_route(key);
    }

    /// Gives the book a revision's route, once its routing and its number of activators are known.
    fn tell_route(&mut self, key: &ObjectKey) {
        let Some(notes) = self.notes.get_mut(key) else { return };
        let (Some(routing), Some(activators)) = (notes.routing, notes.activators) else { return };
        let route = RouteOrder { routing, activators: activators.value() };
        if notes.route.replace(route) != Some(route) {
            self.book.put_route(key, route);
        }
    }

    /// The pods that Kubernetes calls ready: with what was decided, the status follows from that.
    pub(super) fn put_ready(&mut self, key: &ObjectKey, ready: PodCount) {
        let Some(notes) = self.notes.get_mut(key) else { return };
        let RevisionBounds { min, initial, progress_deadline, .. } = notes.bounds;
        let figures = RevisionFigures { want: notes.intended, ready, min, initial, progress_deadline };
        if notes.figures.replace(figures) != Some(figures) {
            self.book.put_figures(key, figures);
        }
    }

    /// Other owners decide, or decided, about the revisions of these buckets, whose names are returned.
    pub(super) fn forget_decisions(
        &mut self,
        changed: &BTreeSet<Bucket>,
        bucket_of: impl Fn(&RevisionName) -> Bucket,
    ) -> Vec<RevisionName> {
        let is_theirs = |name: &RevisionName| changed.contains(&bucket_of(name));
        let mut theirs = Vec::new();
        for (key, notes) in &mut self.notes {
            let Some(name) = name_of(key).filter(is_theirs) else { continue };
            (notes.intended, notes.activators) = (None, None);
            (notes.routing, notes.route) = (None, None);
            self.book.forget_route(key);
            theirs.push(name);
        }
        self.book.owned_anew(|key| name_of(key).is_some_and(|name| is_theirs(&name)));
        theirs
    }

    /// The `ServerlessService` of a revision, if it is the revision's own.
    pub(super) fn service(&self, key: &ObjectKey) -> Option<&ServerlessRecord> {
        self.book.service(key)
    }

    /// The route that the `ServerlessService` says.
    pub(super) fn found_route(&self, key: &ObjectKey) -> Option<RouteInForce> {
        let routing = match self.service(key)?.spec.mode {
            ServerlessMode::Serve => Routing::Direct,
            ServerlessMode::Proxy => Routing::ThroughActivator,
        };
        Some(RouteInForce { routing, activators: Vec::new() })
    }

    /// Puts a slice in, or takes it out; returns the Services whose slices have changed.
    pub(super) fn put_slice(&mut self, key: &ObjectKey, slice: Option<PublicSlice>) -> Vec<ObjectKey> {
        let present = slice.as_ref().map(|slice| slice.service.clone());
        let former = match slice {
            Some(slice) => self.slices.insert(key.clone(), slice),
            None => self.slices.remove(key),
        };
        let former = former.map(|former| former.service);
        if let Some(former) = &former
            && let Some(slices) = self.slices_of.get_mut(former)
        {
            slices.remove(key);
            if slices.is_empty() {
                self.slices_of.remove(former);
            }
        }
        if let Some(present) = &present {
            self.slices_of.entry(present.clone()).or_default().insert(key.clone());
        }
        former.into_iter().chain(present).collect()
    }

    /// The Services that have slices.
    pub(super) fn services_with_slices(&self) -> Vec<ObjectKey> {
        self.slices_of.keys().cloned().collect()
    }

    /// The addresses that clients of a revision get.
    pub(super) fn named(&self, key: &ObjectKey) -> impl Iterator<Item = IpAddr> {
        let slices = self.slices_of.get(key).into_iter().flatten().filter_map(|slice| self.slices.get(slice));
        slices.flat_map(|slice| slice.addresses.iter().copied())
    }

    /// Looks anew whether a revision's slices name these activators alone.
    pub(super) fn review_path(&mut self, key: &ObjectKey, activators: &BTreeSet<IpAddr>, now: Timestamp) {
        let named: BTreeSet<IpAddr> = self.named(key).collect();
        if !named.is_empty() && named.is_subset(activators) {
            self.activators_alone_since.entry(key.clone()).or_insert(now);
        } else {
            self.activators_alone_since.remove(key);
        }
    }

    /// Whether every address that clients of a revision get is an activator's, and the controller says so
    /// too. Which activators of ebb's have acknowledged that they serve it, the control loop knows.
    pub(super) fn is_path_confirmed(&self, key: &ObjectKey) -> bool {
        let named: BTreeSet<IpAddr> = self.named(key).collect();
        let populated = self.service(key).and_then(proxied_since);
        let evidence = PathEvidence {
            unlinked: named.clone(),
            named,
            activators_alone_since: self.activators_alone_since.get(key).copied(),
            // The grace period begins with the end of the order of the route, which is later than both.
            populated_since: populated.map(|_| Timestamp::ZERO),
            ..PathEvidence::default()
        };
        matches!(path_state(&evidence), PathState::Confirmed(_))
    }

    /// Whether the route that was ordered last is in force: the `ServerlessService` says it, the controller
    /// has carried it out, and clients get no address `beside` it; activators' alone, where those are wanted.
    pub(super) fn is_route_in_force(&self, key: &ObjectKey, beside: &BTreeSet<IpAddr>) -> bool {
        if self.book.carried_out(key).is_none() || self.named(key).any(|address| beside.contains(&address)) {
            return false;
        }
        let routing = self.notes.get(key).and_then(|notes| notes.routing);
        routing == Some(Routing::Direct) || self.is_path_confirmed(key)
    }
}
