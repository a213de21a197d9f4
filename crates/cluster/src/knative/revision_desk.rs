//! What is to be written of one revision, from all that is known of it?
//!
//! The `ServerlessService` comes first: without it no request reaches the revision. Then the status, which
//! follows from what the controller has made of that.

use std::time::Duration;

use jiff::Timestamp as WallTime;
use vocabulary::{PodCount, Routing, Timestamp};

use super::handling::{HandledRevision, not_owned};
use super::pod_autoscaler::{AutoscalerClass, PodAutoscalerRecord};
use super::serverless::{ServerlessMode, ServerlessRecord, ServerlessSpec, ServerlessWrite, mode_for};
use super::status::{AutoscalerStatus, StatusWrite};
use super::status_pace::StatusPace;
use super::versioned_writes::VersionedWrites;
use crate::moment::Moment;

/// The figures of a revision that the control loop and Kubernetes know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionFigures {
    /// The count that is wanted, within its bounds; `None` while none is known.
    pub want: Option<PodCount>,
    /// The pods that Kubernetes calls ready, which may be others than a link calls so.
    pub ready: PodCount,
    /// The least count of the settings.
    pub min: PodCount,
    /// The count that a new revision has to reach once.
    pub initial: PodCount,
    /// How long a start may take; [`settings::ACTIVATION_TIMEOUT_BUFFER`] later the revision counts as
    /// failed.
    pub progress_deadline: Duration,
}

/// The route that was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteOrder {
    /// Whether pods or activators take the requests.
    pub routing: Routing,
    /// How many activators serve the revision; zero for all.
    pub activators: u32,
}

/// A write that a revision needs.
#[derive(Clone, Debug, PartialEq)]
pub enum DeskWrite {
    /// The `ServerlessService` of the revision.
    Service(ServerlessWrite),
    /// The status of its `PodAutoscaler`.
    Status(StatusWrite),
}

/// One revision: its two objects, what is known of it, and its writes under way.
#[derive(Debug)]
pub struct RevisionDesk {
    autoscaler: PodAutoscalerRecord,
    service: Option<ServerlessRecord>,
    figures: Option<RevisionFigures>,
    route: Option<RouteOrder>,
    service_writes: VersionedWrites,
    pace: StatusPace,
}

impl RevisionDesk {
    /// A revision as its `PodAutoscaler` shows it.
    pub fn new(autoscaler: PodAutoscalerRecord) -> Self {
        Self {
            autoscaler,
            service: None,
            figures: None,
            route: None,
            service_writes: VersionedWrites::default(),
            pace: StatusPace::default(),
        }
    }

    /// The `PodAutoscaler` as the watch shows it. Another object under the same name begins anew.
    pub fn put_autoscaler(&mut self, autoscaler: PodAutoscalerRecord) {
        if self.autoscaler.uid == autoscaler.uid {
            self.autoscaler = autoscaler;
        } else {
            let service = self.service.take();
            *self = Self { service, ..Self::new(autoscaler) };
        }
    }

    /// The `ServerlessService` as the watch shows it; `None` for none.
    pub fn put_service(&mut self, service: Option<ServerlessRecord>) {
        self.service = service;
        self.service_writes.shown(version_of(self.service.as_ref()));
    }

    /// The figures from now on.
    pub fn put_figures(&mut self, figures: RevisionFigures) {
        self.figures = Some(figures);
    }

    /// The route from now on.
    pub fn put_route(&mut self, route: RouteOrder) {
        self.route = Some(route);
    }

    /// Another owner decides, or decided, about the route: what was decided here says nothing any more.
    pub(crate) fn forget_route(&mut self) {
        self.route = None;
    }

    /// The next write to begin, if any; it is under way until its answer. Nothing is written of a revision
    /// that is another controller's.
    pub fn next_write(&mut self, moment: Moment) -> Option<DeskWrite> {
        if self.autoscaler.class != AutoscalerClass::Ours {
            return None;
        }
        if self.service_turn().is_some_and(|turn| turn <= moment.axis)
            && let Some(write) = self.service_write()
        {
            self.service_writes.begin(version_of(self.service.as_ref()), moment.axis);
            return Some(DeskWrite::Service(write));
        }
        let wanted = self.wanted_status(moment.wall)?;
        self.pace.begin(&self.autoscaler, &wanted, moment.axis).map(DeskWrite::Status)
    }

    /// When [`RevisionDesk::next_write`] may have something to say without any event.
    pub fn next_deadline(&self, moment: Moment) -> Option<Timestamp> {
        if self.autoscaler.class != AutoscalerClass::Ours {
            return None;
        }
        let service = self.service_write().and_then(|_| self.service_turn());
        let wanted = self.wanted_status(moment.wall);
        let status = wanted.and_then(|wanted| self.pace.next_turn(&self.autoscaler, &wanted));
        let timeout = self
            .handling()
            .and_then(|handling| handling.start_times_out_at(self.pace.known(&self.autoscaler), moment.wall));
        let timeout = timeout.map(|at| moment.on_axis(at));
        [service, status, timeout].into_iter().flatten().min()
    }

    /// When the service may be written; `None` while an answer or the watch has to come first.
    fn service_turn(&self) -> Option<Timestamp> {
        self.service_writes.next_turn(version_of(self.service.as_ref()))
    }

    /// The `PodAutoscaler` as the watch showed it last.
    pub(crate) fn autoscaler(&self) -> &PodAutoscalerRecord {
        &self.autoscaler
    }

    /// The `ServerlessService` as the watch showed it last, if it is ours.
    pub(crate) fn service(&self) -> Option<&ServerlessRecord> {
        self.service.as_ref().filter(|service| service.is_of(&self.autoscaler))
    }

    /// Our `ServerlessService` once it says all that was decided, and the controller has carried that out.
    pub(crate) fn carried_out(&self) -> Option<&ServerlessRecord> {
        let is_decided = self.figures.is_some() && self.route.is_some();
        let is_written = self.service_turn().is_some() && self.service_write().is_none();
        self.service().filter(|service| is_decided && is_written && service.is_observed())
    }

    /// What the service lacks, if it is ours.
    fn service_write(&self) -> Option<ServerlessWrite> {
        if self.is_foreign() {
            return None;
        }
        ServerlessWrite::of(&self.autoscaler, self.service.as_ref(), &self.wanted_spec()?)
    }

    fn is_foreign(&self) -> bool {
        self.service.as_ref().is_some_and(|service| !service.is_of(&self.autoscaler))
    }

    /// The spec that follows from count and route; the first one until the controller has begun with it.
    /// `None` where nothing was decided yet: then the spec that is written stays.
    fn wanted_spec(&self) -> Option<ServerlessSpec> {
        let Some(service) = &self.service else { return Some(ServerlessSpec::first(&self.autoscaler)) };
        if service.private_service_name.is_empty() {
            return Some(ServerlessSpec::first(&self.autoscaler));
        }
        let (figures, route) = (self.figures?, self.route?);
        let mode = match figures.want {
            // A restart, of which nothing is known yet, leaves the path as it is.
            None if service.spec.mode == ServerlessMode::Serve && route.routing == Routing::Direct => {
                ServerlessMode::Serve
            }
            want => mode_for(want, route.routing),
        };
        Some(ServerlessSpec::new(&self.autoscaler, mode, route.activators))
    }

    /// The status that follows from all that is known; `None` before the figures are.
    fn wanted_status(&self, now: WallTime) -> Option<AutoscalerStatus> {
        let known = self.pace.known(&self.autoscaler);
        if self.is_foreign() {
            return Some(not_owned(known, self.autoscaler.generation, &self.autoscaler.key.name, now));
        }
        Some(self.handling()?.status(known, now))
    }

    /// The state from which the status follows; `None` before the figures are known.
    fn handling(&self) -> Option<HandledRevision<'_>> {
        let figures = self.figures?;
        Some(HandledRevision {
            generation: self.autoscaler.generation,
            service: self.service.as_ref(),
            want: figures.want,
            ready: figures.ready,
            min: figures.min,
            initial: figures.initial,
            is_reachable: self.autoscaler.is_reachable(),
            progress_deadline: figures.progress_deadline,
        })
    }

    /// The write of the service has ended: it went through, or met another version (409). Either way the
    /// watch shows a newer one.
    pub fn service_written(&mut self) {
        self.service_writes.ended(version_of(self.service.as_ref()));
    }

    /// The write of the service failed, as while Knative's webhook is away; deciding goes on meanwhile.
    pub fn service_failed(&mut self, at_least: Option<Duration>, now: Timestamp) {
        self.service_writes.failed(at_least, now);
    }

    /// The write of the status went through.
    pub fn status_written(&mut self) {
        self.pace.written(&self.autoscaler);
    }

    /// The write of the status met another version of the object (409): the watch shows it.
    pub fn status_conflicted(&mut self) {
        self.pace.conflicted(&self.autoscaler);
    }

    /// The write of the status failed, and may or may not have been done; `at_least` is the server's own
    /// wait.
    pub fn status_failed(&mut self, at_least: Option<Duration>, now: Timestamp) {
        self.pace.failed(at_least, now);
    }
}

/// The version of a service; empty for none.
fn version_of(service: Option<&ServerlessRecord>) -> &str {
    service.map_or("", |service| &service.resource_version)
}

#[cfg(test)]
mod tests;
