//! The one task that owns the state of the cluster, and performs what that decides: watches, orders and
//! answers go in; facts and requests come out. It never waits for the API server: requests run beside it.

use std::sync::Arc;

use cluster::{
    Change, ClusterEvent, ClusterIncident, ClusterState, ClusterWrite, Failure, KindWatch, Moment, News,
    SeatNumber, Tone, WriteAnswer,
};
use orchestration::PlatformFact;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vocabulary::ReplicaName;

use crate::clocks;
use crate::cluster_inbox::{ClusterInbox, NewSeat, ShownDecision};
use crate::requests::Requests;
use crate::watches::Watches;

/// The number of news that are taken in before facts and requests follow from them.
const NEWS_PER_TURN_MAX: usize = 256;

/// The seat of the one autoscaler of this process, and the way to it.
struct FactChannel {
    seat: SeatNumber,
    facts: mpsc::Sender<PlatformFact>,
}

pub(crate) struct ClusterTask {
    name: ReplicaName,
    inbox: Arc<ClusterInbox>,
    requests: Requests,
    watches: Watches,
    state: ClusterState,
    channel: Option<FactChannel>,
    answers: JoinSet<WriteAnswer>,
}

impl ClusterTask {
    pub(crate) fn new(
        name: ReplicaName,
        state: ClusterState,
        requests: Requests,
        watches: Watches,
        inbox: Arc<ClusterInbox>,
    ) -> Self {
        Self { name, inbox, requests, watches, state, channel: None, answers: JoinSet::new() }
    }

    /// Turns until the watches end, which they do not.
    pub(crate) async fn run(mut self, mut news: mpsc::Receiver<News>) {
        loop {
            self.settle();
            let deadline = self.state.next_deadline(self.requests.clock.now());
            let is_full = self.channel.as_ref().is_some_and(|channel| channel.facts.capacity() == 0);
            // Every arm is cancel-safe: what was not taken stays in its channel, slot or set.
            tokio::select! {
                Some(first) = news.recv() => {
                    let moment = self.moment();
                    self.take_news(first, moment);
                    for _ in 1..NEWS_PER_TURN_MAX {
                        let Ok(more) = news.try_recv() else { break };
                        self.take_news(more, moment);
                    }
                }
                () = self.inbox.updated.notified() => self.take_inbox(),
                Some(answer) = self.answers.join_next() => match answer {
                    Ok(answer) => self.take_answer(answer),
                    // After a panic the write would count as under way for ever. Requests are stopped only
                    // with this task.
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_stopped) => {}
                },
                // Only while it is full: with room to spare this is ready at once, and the loop would never
                // rest.
                () = room_in(self.channel.as_ref()), if is_full => {}
                () = self.requests.clock.sleep_until(deadline.unwrap_or_default()), if deadline.is_some() => {}
            }
        }
    }

    fn moment(&self) -> Moment {
        clocks::moment(self.requests.clock)
    }

    /// Sends the facts and begins the requests that follow from everything that was taken in.
    fn settle(&mut self) {
        let moment = self.moment();
        self.state.settle(moment);
        self.write_log();
        for watch in self.state.take_kind_watches() {
            match watch {
                KindWatch::Begin(kind) => self.watches.watch_kind(kind),
                KindWatch::End(kind) => self.watches.leave_kind(&kind),
            }
        }
        // Before the requests, each of which looks at its right.
        *self.requests.rights.lock() = self.state.rights(moment.axis);
        while let Some(write) = self.state.next_write() {
            let (requests, instance) = (self.requests.clone(), self.name.as_str().to_owned());
            // A panic in it is ours; see where answers are taken.
            self.answers.spawn(async move { requests.perform(write, &instance).await });
        }
        self.send_facts(moment);
        if self.state.has_left() {
            self.inbox.given_up.notify_one();
        }
    }

    /// Sends as many facts as the channel has room for.
    fn send_facts(&mut self, moment: Moment) {
        let Some(channel) = &self.channel else { return };
        while let Ok(room) = channel.facts.clone().try_reserve_owned() {
            let Some(fact) = self.state.next_fact(moment.axis) else { return };
            room.send(fact);
        }
    }

    fn take_news(&mut self, news: News, moment: Moment) {
        let version = if let News::Pod(Change::Put(_, shown)) = &news { shown.version } else { None };
        self.state.handle(ClusterEvent::Shown(Box::new(news)), moment);
        if version.is_some() {
            self.requests.shown_pods.send_if_modified(|shown| {
                let is_newer = *shown < version;
                *shown = (*shown).max(version);
                is_newer
            });
        }
    }

    fn take_inbox(&mut self) {
        let moment = self.moment();
        let mut left = self.inbox.take();
        if let Some(seat) = left.departed {
            self.channel = self.channel.take().filter(|channel| channel.seat != seat);
            self.state.handle(ClusterEvent::SeatLeft(seat), moment);
        }
        if let Some(NewSeat { seat, facts }) = left.new_seat {
            self.channel = Some(FactChannel { seat, facts });
            self.state.handle(ClusterEvent::SeatTaken(seat), moment);
        }
        if let Some(seat) = left.renewed {
            self.state.handle(ClusterEvent::SeatRenewed(seat), moment);
        }
        // Before the orders, so that what is shown of a revision is as new as what is done.
        for (revision, ShownDecision { seat, intended, activators }) in left.decided {
            self.state.handle(ClusterEvent::Decided { seat, revision, intended, activators }, moment);
        }
        for (seat, order) in left.desk.take_replaced() {
            self.state.handle(ClusterEvent::OrderReplaced(seat, order), moment);
        }
        for (seat, order) in left.desk.into_orders() {
            self.state.handle(ClusterEvent::OrderGiven(seat, order), moment);
        }
        if let Some(kept) = left.histories {
            self.state.handle(ClusterEvent::HistoriesKept(kept), moment);
        }
        for (revision, reply) in left.target_queries {
            // The metric source may have stopped waiting for the reply.
            let _ = reply.send(self.state.target(&revision));
        }
    }

    fn take_answer(&mut self, answer: WriteAnswer) {
        log_failure(&answer);
        let moment = self.moment();
        self.state.handle(ClusterEvent::Answered(answer), moment);
    }

    fn write_log(&mut self) {
        for incident in self.state.take_incidents() {
            match incident {
                ClusterIncident::Noticed { about, reason, text, tone: Tone::Warning } => {
                    tracing::warn!(%about, reason, "{text}");
                }
                ClusterIncident::Noticed { about, reason, text, tone: Tone::Normal } => {
                    tracing::info!(%about, reason, "{text}");
                }
                ClusterIncident::StandsBy { owners } => tracing::info!(
                    owners,
                    "stands by: this autoscaler knows all revisions, and decides once a Lease of the owners is free"
                ),
                ClusterIncident::CustodyChanged { service, former, present } => {
                    let (namespace, service) = (service.namespace, service.name);
                    tracing::info!(namespace, service, %former, %present, "another program writes its endpoints");
                }
                ClusterIncident::BucketCountsDiffer { buckets, mismatch } => tracing::error!(
                    buckets,
                    "{mismatch} buckets; this autoscaler takes no bucket until that one has ended (change the number of buckets only with all autoscalers stopped)"
                ),
            }
        }
    }
}

/// A write that failed stands in the log; that it is tried again, and when, the state decides.
fn log_failure(answer: &WriteAnswer) {
    match answer {
        WriteAnswer::Count(revision, Err(failure)) => {
            tracing::warn!(%revision, failure = failure.words(), "the count could not be written");
        }
        WriteAnswer::Slices(revision, _, Err(failure)) | WriteAnswer::Takeover(revision, _, Err(failure)) => {
            tracing::warn!(%revision, failure = failure.words(), "EndpointSlices could not be written");
        }
        WriteAnswer::Event(Err(failure)) => {
            tracing::debug!(failure = failure.words(), "an Event could not be written");
        }
        // That another client wrote the object first is nothing: the watch shows it.
        WriteAnswer::Revision(revision, object, Err(failure)) if !matches!(failure, Failure::Conflict) => {
            let object = object.word();
            tracing::warn!(%revision, object, failure = failure.words(), "an object of Knative's could not be written");
        }
        WriteAnswer::Count(_, Ok(_))
        | WriteAnswer::Slices(_, _, Ok(()))
        | WriteAnswer::Takeover(_, _, Ok(_))
        | WriteAnswer::Revision(..)
        // It was logged where the name of its object is known.
        | WriteAnswer::Lease(_, _)
        | WriteAnswer::Event(Ok(())) => {}
    }
}

impl Requests {
    /// Performs a write, and returns its answer.
    async fn perform(&self, write: ClusterWrite, instance: &str) -> WriteAnswer {
        match write {
            ClusterWrite::Count { write, subject, hints } => {
                self.hint(write.fence, write.revision.namespace(), &hints).await;
                let answer = self.scale(&write, &subject).await;
                WriteAnswer::Count(write.revision, answer)
            }
            ClusterWrite::Slices { fence, revision, changes } => {
                let (written, how) = self.write_slices(fence, changes).await;
                WriteAnswer::Slices(revision, written, how)
            }
            ClusterWrite::Takeover { fence, revision, takeover } => {
                let how = self.take_over(fence, &takeover).await;
                WriteAnswer::Takeover(revision, takeover, how)
            }
            ClusterWrite::Revision { fence, revision, write } => {
                let how = self.write_revision(fence, &revision, &write).await;
                WriteAnswer::Revision(revision, write.object(), how)
            }
            ClusterWrite::Lease(which, name, write) => {
                let written = self.write_lease(&name, &write).await;
                if let Err(failure) = &written {
                    tracing::warn!(lease = name, failure = failure.words(), "a Lease could not be written");
                }
                WriteAnswer::Lease(which, written)
            }
            ClusterWrite::Event(write) => WriteAnswer::Event(self.write_event(&write, instance).await),
        }
    }
}

/// Returns when the channel has room again, or is closed.
async fn room_in(channel: Option<&FactChannel>) {
    match channel {
        Some(channel) => drop(channel.facts.reserve().await),
        None => std::future::pending().await,
    }
}
