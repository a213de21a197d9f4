//! What happens in a made-up world, each at its time.

use std::sync::Arc;

use orchestration::{ControlEvent, Errand, LinkId, OrderId, PlatformOrder};
use throttling::ActivatorEvent;
use vocabulary::{ActivatorWord, PodSettings, PodWord};

use super::fault::{ActivatorNumber, OwnerNumber};
use crate::world_event::{PodNumber, SeatedRequest, ServiceNumber};

/// A connection of a link, never given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionNumber(pub(crate) u64);

/// A request by the order of arrival, over all Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestNumber(pub(crate) usize);

/// One process of an owner: what is meant for it is lost with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnerProcess {
    pub(crate) owner: OwnerNumber,
    pub(crate) life: u64,
}

/// One process of an activator, by the number that its hello says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActivatorProcess {
    pub(crate) activator: ActivatorNumber,
    pub(crate) boot: u64,
}

/// A word on a link to an owner.
#[derive(Debug)]
pub(crate) enum WordToOwner {
    OfPod(PodWord),
    OfActivator(ActivatorWord),
}

/// What an activator learns of a request that it sent to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodReply {
    Served,
    /// The pod never started the request.
    NotStarted,
    /// The pod had no free slot for a request that must not wait there.
    NoRoom,
    /// The pod was killed while it had the request.
    Broken,
}

/// Something that happens at one instant.
#[derive(Debug)]
pub(crate) enum TrialEvent {
    /// A fault of the plan begins, by its place.
    FaultBegins(usize),
    /// No fault begins or lasts from now on.
    QuietBegins,
    OwnerStarts(OwnerNumber),
    OwnerResumes(OwnerProcess),
    /// The lease of an owner has run out, unless the owner is there again.
    LeaseEnds(OwnerNumber),
    /// A fact of the platform, or news of a link.
    OwnerHears(OwnerProcess, Box<ControlEvent>),
    OwnerHearsWord(ConnectionNumber, Box<WordToOwner>),
    OwnerLooks(OwnerProcess),
    LinkIsDialled(OwnerProcess, LinkId),
    ActivatorStarts(ActivatorNumber),
    ActivatorResumes(ActivatorProcess),
    /// An activator that was told to end is killed, whatever it holds.
    ActivatorMustEnd(ActivatorProcess),
    ActivatorHears(ActivatorProcess, Box<ActivatorEvent>),
    /// A word of an owner, on a connection that still stands.
    ActivatorHearsOrder(ConnectionNumber, Box<ActivatorEvent>),
    ActivatorLooks(ActivatorProcess, ServiceNumber),
    ActivatorSecondEnds(ActivatorProcess),
    RequestArrives(ServiceNumber),
    /// The client of a request looks for an activator.
    RequestIsSent(RequestNumber),
    RequestReachesActivator(ActivatorProcess, RequestNumber),
    /// The time limit of a request is over.
    WaitEnds(ActivatorProcess, RequestNumber),
    RequestReachesPod(Box<SeatedRequest>),
    WorkEnds(PodNumber, Box<SeatedRequest>),
    AnswerReachesActivator(PodReply, Box<SeatedRequest>),
    PodStarts(PodNumber),
    PodStartFails(PodNumber),
    ProbePasses(PodNumber),
    PodSecondEnds(PodNumber),
    PresentIsDue(PodNumber),
    PodHears(ConnectionNumber, Arc<PodSettings>),
    /// The platform starts pods in place of those that are gone.
    PodsAreReplaced(ServiceNumber),
    PlatformHears(OwnerProcess, Box<PlatformOrder>),
    /// The platform tries an order again that it could not carry out.
    OrderIsTried(Box<Errand>, OwnerProcess, OrderId),
}

impl TrialEvent {
    /// A number for the hash of a run: the kind of the event, and the entity that the event is about.
    pub(crate) fn code(&self) -> u64 {
        let (kind, entity) = match self {
            Self::FaultBegins(place) => (1, wide(*place)),
            Self::QuietBegins => (2, 0),
            Self::OwnerStarts(owner) => (3, wide(owner.0)),
            Self::OwnerResumes(process) => (4, process.life),
            Self::LeaseEnds(owner) => (5, wide(owner.0)),
            Self::OwnerHears(process, _) => (6, process.life),
            Self::OwnerHearsWord(connection, _) => (7, connection.0),
            Self::OwnerLooks(process) => (8, process.life),
            Self::LinkIsDialled(_, link) => (9, link.0),
            Self::ActivatorStarts(activator) => (10, wide(activator.0)),
            Self::ActivatorResumes(process) => (11, process.boot),
            Self::ActivatorMustEnd(process) => (12, process.boot),
            Self::ActivatorHears(process, _) => (13, process.boot),
            Self::ActivatorHearsOrder(connection, _) => (14, connection.0),
            Self::ActivatorLooks(process, _) => (15, process.boot),
            Self::ActivatorSecondEnds(process) => (16, process.boot),
            Self::RequestArrives(service) => (17, wide(service.0)),
            Self::RequestIsSent(request) => (18, wide(request.0)),
            Self::RequestReachesActivator(_, request) => (19, wide(request.0)),
            Self::WaitEnds(_, request) => (20, wide(request.0)),
            Self::RequestReachesPod(seated) => (21, pod_code(seated)),
            Self::WorkEnds(pod, _) => (22, u64::from(pod.0)),
            Self::AnswerReachesActivator(_, seated) => (23, pod_code(seated)),
            Self::PodStarts(pod) => (24, u64::from(pod.0)),
            Self::PodStartFails(pod) => (25, u64::from(pod.0)),
            Self::ProbePasses(pod) => (26, u64::from(pod.0)),
            Self::PodSecondEnds(pod) => (27, u64::from(pod.0)),
            Self::PresentIsDue(pod) => (28, u64::from(pod.0)),
            Self::PodHears(connection, settings) => (29, connection.0 ^ settings.version.counter),
            Self::PodsAreReplaced(service) => (30, wide(service.0)),
            Self::PlatformHears(_, order) => (31, order.id.0),
            Self::OrderIsTried(_, _, order) => (32, order.0),
        };
        entity.wrapping_mul(64).wrapping_add(kind)
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn pod_code(seated: &SeatedRequest) -> u64 {
    seated.pod().map_or(0, |pod| u64::from(pod.0))
}
