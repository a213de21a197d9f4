//! The place of one connection, from its acceptance to its end.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use vocabulary::Timestamp;

use super::limits::{PageKind, PageLimits};
use super::seat_book::{Places, SeatRecord};

/// How long a probe waits for its turn while others are answered. Kubelet gives up after as long, and an
/// answer takes microseconds unless something hangs.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// The place of one connection. Clones are the same place, which is free when the last of them is gone.
#[derive(Clone, Debug)]
pub struct PageSeat(Arc<SeatOwner>);

struct SeatOwner {
    places: Arc<Places>,
    number: u64,
}

impl fmt::Debug for SeatOwner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SeatOwner").field(&self.number).finish()
    }
}

impl Drop for SeatOwner {
    fn drop(&mut self) {
        self.places.book().seats.remove(&self.number);
        self.places.change();
    }
}

/// Why a request is not answered: every place of its kind is taken. Its text is for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesBusy {
    kind: PageKind,
    limits: PageLimits,
}

impl fmt::Display for PagesBusy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PageLimits { connections, probes, .. } = self.limits;
        match self.kind {
            PageKind::Probe => write!(formatter, "{probes} probes are being answered; ask again in a moment"),
            PageKind::Ordinary => {
                write!(formatter, "{connections} requests are being answered; ask again in a moment")
            }
            PageKind::LongRead | PageKind::OwnLongRead => {
                let reads = self.limits.places_of(self.kind);
                write!(formatter, "{reads} long reads are under way, which is the limit; end one of them")
            }
        }
    }
}

impl std::error::Error for PagesBusy {}

/// A request that is being answered. Hold it until the answer is written, or is no longer wanted.
#[derive(Debug)]
pub struct PageTurn {
    seat: PageSeat,
    kind: PageKind,
    _probe: Option<OwnedSemaphorePermit>,
}

impl Drop for PageTurn {
    fn drop(&mut self) {
        let SeatOwner { places, number } = &*self.seat.0;
        let now = places.clock.now();
        let mut book = places.book();
        if let Some(seat) = book.seats.get_mut(number) {
            let under_way = seat.requests.of(self.kind);
            *under_way = under_way.saturating_sub(1);
            seat.resting_since = now;
            // It may have to go sooner now than when it had something to do.
            seat.task.wake();
        }
        drop(book);
        places.change();
    }
}

impl PageSeat {
    pub(super) fn new(places: Arc<Places>, number: u64) -> Self {
        Self(Arc::new(SeatOwner { places, number }))
    }

    /// A request has come. It is answered once this returns a turn.
    pub async fn begin(&self, kind: PageKind) -> Result<PageTurn, PagesBusy> {
        let SeatOwner { places, .. } = &*self.0;
        let limits = places.limits;
        let busy = PagesBusy { kind, limits };
        let probe = match kind {
            PageKind::Probe => {
                // While it waits its connection rests, as far as others are concerned: probes take no place
                // from a reader.
                let turn = Arc::clone(&places.probe_turns).acquire_owned();
                let turn = tokio::time::timeout(PROBE_PATIENCE, turn).await;
                Some(turn.ok().and_then(Result::ok).ok_or(busy)?)
            }
            PageKind::Ordinary | PageKind::LongRead | PageKind::OwnLongRead => None,
        };
        let mut book = places.book();
        if book.under_way(kind) >= limits.places_of(kind) {
            return Err(busy);
        }
        if let Some(seat) = book.seats.get_mut(&self.0.number) {
            *seat.requests.of(kind) += 1;
            seat.head_since = None;
            seat.is_dismissed = false;
        }
        drop(book);
        // One that waited for the place of this connection has to look for another one.
        places.change();
        Ok(PageTurn { seat: self.clone(), kind, _probe: probe })
    }

    /// Returns once the connection has to be closed: it has rested for too long, a head takes too long, its
    /// peer takes nothing of what is written, or another one needs the place. Poll it in the connection's
    /// task, behind what serves the connection: what has arrived by then counts.
    pub fn must_go(&self) -> impl Future<Output = ()> + use<> {
        let seat = self.clone();
        let mut timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        poll_fn(move |context| {
            let SeatOwner { places, number } = &*seat.0;
            let mut book = places.book();
            let Some(record) = book.seats.get_mut(number) else { return Poll::Ready(()) };
            // Before the look, so that a word between the two wakes us.
            record.task.register(context.waker());
            if record.is_dismissed {
                return Poll::Ready(());
            }
            let Some(goes_at) = goes_at(record, places.limits) else { return Poll::Pending };
            drop(book);
            let goes_at = places.clock.instant(goes_at);
            if timer.deadline() != goes_at {
                timer.as_mut().reset(goes_at);
            }
            timer.as_mut().poll(context)
        })
    }

    /// Bytes of a request came: the time of its head begins, unless it runs already.
    pub(super) fn note_read(&self) {
        self.note(|seat, now| {
            if seat.requests.is_resting() {
                seat.head_since.get_or_insert(now);
            }
        });
    }

    /// The peer took bytes of an answer: it rests from now on.
    pub(super) fn note_written(&self) {
        self.note(|seat, now| {
            seat.stalled_since = None;
            seat.resting_since = now;
        });
    }

    /// The peer takes nothing of an answer: the time of its stall begins, unless it runs already.
    pub(super) fn note_stalled(&self) {
        self.note(|seat, now| {
            seat.stalled_since.get_or_insert(now);
        });
    }

    fn note(&self, note: impl FnOnce(&mut SeatRecord, Timestamp)) {
        let SeatOwner { places, number } = &*self.0;
        let now = places.clock.now();
        if let Some(seat) = places.book().seats.get_mut(number) {
            note(seat, now);
        }
    }
}

/// When the connection has to go if nothing happens. `None` while it has something to do.
fn goes_at(seat: &SeatRecord, limits: PageLimits) -> Option<Timestamp> {
    let head = seat.head_since.map(|since| since + limits.head_time);
    let stalled = seat.stalled_since.map(|since| since + limits.stall_time);
    let resting = seat.requests.is_resting().then(|| seat.resting_since + limits.idle_time);
    [head, stalled, resting].into_iter().flatten().min()
}
