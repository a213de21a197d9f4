//! What happens to the requests of one revision, and what has to be done about it.

use vocabulary::Timestamp;

use crate::throttler::{DirectPick, Dispatch};
use crate::ticket::Ticket;

/// A fact about one request. Requests that wait are known by a ticket, those that run by their dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEvent {
    /// A request arrived that goes through the queue. It is part of the load until it ends or is refused.
    Arrived {
        /// A ticket that was drawn for this request.
        ticket: Ticket,
    },
    /// A request that went past the queue was not started by its pod: it joins those that wait, and the load.
    Rejoined {
        /// A ticket that was drawn for this request.
        ticket: Ticket,
        /// When it arrived at the activator.
        arrived: Timestamp,
    },
    /// The rest of a request is over ([`RequestEvent::RestBegan`]): it waits again.
    RestEnded {
        /// A ticket that was drawn for this wait.
        ticket: Ticket,
        /// When it arrived at the activator.
        arrived: Timestamp,
    },
    /// The client left while its request rested.
    RestGivenUp,
    /// The activator had no place left for a request that has to wait ([`RevisionCommand::Wait`]).
    PlaceRefused {
        /// The ticket of the request that has to wait.
        ticket: Ticket,
    },
    /// A request left the queue: its client went away, or its time is over. Means nothing for a request that
    /// was refused or granted in the same instant.
    GaveUp {
        /// The ticket of the request that waited.
        ticket: Ticket,
    },
    /// A pod has started the request.
    Started {
        /// The grant of the request.
        dispatch: Dispatch,
    },
    /// A pod never started the request, which waits again ahead of those that came later.
    NotStarted {
        /// The grant that has ended with that.
        dispatch: Dispatch,
    },
    /// A pod had no room for the request because others have filled it: it waits again, at its former place.
    FoundNoRoom {
        /// The grant that has ended with that.
        dispatch: Dispatch,
    },
    /// The app refused the request: the slot is free again, and the request rests as a part of the load.
    RestBegan {
        /// The grant that has ended with that.
        dispatch: Dispatch,
    },
    /// The request is over, however it ended: its slot is free, and it is no part of the load.
    Ended {
        /// The grant that has ended with that.
        dispatch: Dispatch,
    },
    /// A pod has started a request that went past the queue.
    DirectStarted {
        /// The pod that took it.
        pick: DirectPick,
    },
    /// A pod never started a request that went past the queue. The request still holds the pod.
    DirectNotStarted {
        /// The pod that did not take it.
        pick: DirectPick,
    },
    /// A request that went past the queue is over.
    DirectEnded {
        /// The pod that took it.
        pick: DirectPick,
    },
}

/// What is to be done for the requests of one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisionCommand {
    /// Send the request to its pod.
    Grant {
        /// The request and the pod.
        dispatch: Dispatch,
    },
    /// Answer the request with a refusal. It is no part of queue and load any more.
    Refuse {
        /// The ticket of the request.
        ticket: Ticket,
        /// Why it is not served.
        refusal: RequestRefusal,
    },
    /// Make the request wait, if the activator has a place for it; else say [`RequestEvent::PlaceRefused`].
    Wait {
        /// The ticket of the request.
        ticket: Ticket,
    },
    /// Ask for the news of the revision (`take_news`), soon and by the thread of
    /// the links. Given once for all news until they are taken.
    TakeNews,
}

/// Why a revision does not take a request, or does not keep one waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRefusal {
    /// As many requests wait for the revision as may.
    RevisionQueueFull {
        /// The number of requests that may wait.
        limit: u32,
    },
    /// As many requests wait in the whole activator as may.
    ActivatorQueueFull,
    /// No pod is ready, and the assignment says that a wait would not help.
    Held,
    /// The revision was removed, or is not known here any more.
    Gone,
}

/// The pod for a request that is not measured, or why there is none now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmeasuredChoice {
    /// A ready pod takes the request.
    Pod(DirectPick),
    /// Each ready pod has just failed to start a request.
    AllRest {
        /// When the first of them may be tried again.
        until: Timestamp,
    },
    /// No pod of the revision is ready.
    NoPod,
}
