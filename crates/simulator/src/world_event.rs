//! Which events happen in the world, each at its time?

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use orchestration::{ControlEvent, LinkId, PlatformOrder};
use throttling::{ActivatorEvent, DirectPick, Dispatch, Origin, Ticket};
use vocabulary::{PodSettings, Timestamp};

/// A Service by its place in the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceNumber(pub(crate) usize);

/// A pod by the order of its start, from 1, over all Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodNumber(pub(crate) u32);

impl PodNumber {
    /// The port of every pod; no two pods share an address.
    const PORT: u16 = 8012;

    pub(crate) fn address(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::from(self.0), Self::PORT))
    }

    /// The pod of an address that [`PodNumber::address`] gave.
    pub(crate) fn at(address: SocketAddr) -> Option<Self> {
        match address {
            SocketAddr::V4(address) => Some(Self(u32::from(*address.ip()))),
            SocketAddr::V6(_) => None,
        }
    }
}

/// A client of a closed load by its number within the load of its Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientNumber(pub(crate) usize);

/// One time that a link was dialled, never given to another: a word belongs to the dial on which it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DialNumber(pub(crate) u64);

/// One request, at the client, the activator or a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulatedRequest {
    pub(crate) service: ServiceNumber,
    /// The client that waits for the answer; `None` in an open load.
    pub(crate) client: Option<ClientNumber>,
    /// When it arrived at the activator.
    pub(crate) arrived: Timestamp,
    /// The work that its app does for it.
    pub(crate) service_time: Duration,
    /// Since when it is in the queue that it is in, or was in last.
    pub(crate) queued_since: Timestamp,
    /// How long it has waited in queues that it has left.
    pub(crate) waited: Duration,
}

impl SimulatedRequest {
    pub(crate) fn joins_queue(&mut self, now: Timestamp) {
        self.queued_since = now;
    }

    pub(crate) fn leaves_queue(&mut self, now: Timestamp) {
        self.waited += now.saturating_since(self.queued_since);
    }
}

/// By which right a request is in a pod, as the activator has given it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SimulatedSeat {
    /// A slot of the pod, after the activator's queue.
    Queue(Dispatch),
    /// No slot: the request went past the queue.
    Direct(DirectPick),
}

/// A request and its place in a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeatedRequest {
    pub(crate) request: SimulatedRequest,
    pub(crate) seat: SimulatedSeat,
}

impl SeatedRequest {
    /// The pod that takes the request.
    pub(crate) fn pod(&self) -> Option<PodNumber> {
        PodNumber::at(match self.seat {
            SimulatedSeat::Queue(dispatch) => dispatch.address,
            SimulatedSeat::Direct(pick) => pick.address,
        })
    }

    /// The way by which the pod counts the request.
    pub(crate) fn origin(&self) -> Origin {
        match self.seat {
            SimulatedSeat::Queue(_) => Origin::Proxied,
            SimulatedSeat::Direct(_) => Origin::Direct,
        }
    }
}

/// What the activator holds at a moment, of a load whose requests are a fluid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FluidSurge {
    /// Seconds since the load began.
    pub(crate) at: f64,
    pub(crate) held: u32,
    pub(crate) waiting: u32,
    /// The ready pods when the second began: once there are others, the surge is another one.
    pub(crate) pods: u32,
}

/// The answer of a pod to the activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodAnswer {
    Served,
    /// The pod never started the request: its queue is full, or the pod is gone.
    NotStarted,
    /// The pod had no free slot for a request that must not wait there.
    NoRoom,
}

/// Something that happens at one instant.
#[derive(Debug)]
pub(crate) enum WorldEvent {
    /// The next request of an open load arrives.
    RequestArrives(ServiceNumber),
    /// A client sends its next request, which arrives now.
    ClientSends(ServiceNumber, ClientNumber),
    /// The activator holds so many requests of a fluid that the owner is to hear of them.
    SurgeComes(ServiceNumber, FluidSurge),
    /// The time limit of a request is over that had to wait.
    WaitEnds(ServiceNumber, Ticket),
    RequestReachesPod(Box<SeatedRequest>),
    /// The app has done its work for a request.
    WorkEnds(PodNumber, Box<SeatedRequest>),
    /// A request may be done in a pod whose cores are shared.
    PodWorkIsDue(PodNumber),
    PodAnswers(PodAnswer, Box<SeatedRequest>),
    /// The deadline of a revision at the activator may have come.
    RevisionIsDue(ServiceNumber),
    /// A second of the activator is over.
    ActivatorSecondEnds,
    ActivatorHears(Box<ActivatorEvent>),
    /// A word of the owner.
    ActivatorHearsOwner(DialNumber, Box<ActivatorEvent>),
    /// The app of a pod passes its probe from now on.
    PodStarts(PodNumber),
    PodSecondEnds(PodNumber),
    /// The time of a pod's present count may have come.
    PresentIsDue(PodNumber),
    PodHears(DialNumber, PodNumber, Arc<PodSettings>),
    /// The deadline of the owner may have come.
    OwnerIsDue,
    /// A fact of the platform, or news of a link.
    OwnerHears(Box<ControlEvent>),
    /// A word of a pod or of the activator.
    OwnerHearsWord(DialNumber, Box<ControlEvent>),
    /// A process of the owner begins in place of one that was killed.
    OwnerBegins,
    /// A link of the owner that was dialled stands.
    LinkStands(LinkId, DialNumber),
    PlatformHears(Box<PlatformOrder>),
    /// The fault at this place of the scenario's faults begins.
    FaultBegins(usize),
}

/// One line for the record of a run. Structs of facts are left out: a field that is added to one of them
/// changes no run.
impl fmt::Display for WorldEvent {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RequestArrives(service) => write!(to, "arrival {}", service.0),
            Self::ClientSends(service, client) => write!(to, "client {} {}", service.0, client.0),
            Self::SurgeComes(service, surge) => write!(to, "surge {} {}", service.0, surge.held),
            Self::WaitEnds(service, _) => write!(to, "limit {}", service.0),
            Self::RequestReachesPod(seated) => {
                write!(to, "to-pod {:?} {:?}", seated.pod(), seated.request.service_time)
            }
            Self::WorkEnds(pod, seated) => write!(to, "done {} {:?}", pod.0, seated.request.waited),
            Self::PodWorkIsDue(pod) => write!(to, "work {}", pod.0),
            Self::PodAnswers(answer, seated) => write!(to, "answer {answer:?} {:?}", seated.request.waited),
            Self::RevisionIsDue(service) => write!(to, "look {}", service.0),
            Self::ActivatorSecondEnds => to.write_str("activator-second"),
            Self::ActivatorHears(event) | Self::ActivatorHearsOwner(_, event) => match &**event {
                ActivatorEvent::Assigned { assignment, .. } => {
                    write!(to, "assigned {} {:?}", assignment.version, assignment.routing)
                }
                ActivatorEvent::LinkOpened { .. }
                | ActivatorEvent::LinkClosed { .. }
                | ActivatorEvent::SyncBegan { .. }
                | ActivatorEvent::Removed { .. }
                | ActivatorEvent::ForgettingAllowed { .. }
                | ActivatorEvent::SyncEnded { .. }
                | ActivatorEvent::Released { .. }
                | ActivatorEvent::UpkeepEnded { .. }
                | ActivatorEvent::RevisionIsDue { .. }
                | ActivatorEvent::Request { .. }
                | ActivatorEvent::LeavingBegan
                | ActivatorEvent::TimePassed => to.write_str("told"),
            },
            Self::PodStarts(pod) => write!(to, "started {}", pod.0),
            Self::PodSecondEnds(pod) => write!(to, "second {}", pod.0),
            Self::PresentIsDue(pod) => write!(to, "present {}", pod.0),
            Self::PodHears(_, pod, settings) => write!(to, "settings {} {}", pod.0, settings.version),
            Self::OwnerIsDue => to.write_str("owner"),
            Self::OwnerHears(event) | Self::OwnerHearsWord(_, event) => match &**event {
                ControlEvent::PodSpoke { link, word } => write!(to, "pod-word {} {word:?}", link.0),
                ControlEvent::ActivatorSpoke { link, word } => {
                    write!(to, "activator-word {} {word:?}", link.0)
                }
                ControlEvent::Platform(_)
                | ControlEvent::MetricsAnswered { .. }
                | ControlEvent::LinkChanged { .. }
                | ControlEvent::WallClockRead { .. }
                | ControlEvent::ZoneRead { .. }
                | ControlEvent::HistoryRestored { .. }
                | ControlEvent::DemandImported { .. } => to.write_str("fact"),
            },
            Self::OwnerBegins => to.write_str("owner-begins"),
            Self::LinkStands(link, _) => write!(to, "link {}", link.0),
            Self::PlatformHears(order) => write!(to, "order {}", order.id.0),
            Self::FaultBegins(place) => write!(to, "fault {place}"),
        }
    }
}
