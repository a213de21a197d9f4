//! Which callers may be connected to the webhook at once?
//!
//! API servers keep a connection or two each, and kubelet connects for a moment; any program in the cluster
//! may call, too. The number of places is fixed. When all are taken, one caller makes room for the next:
//!
//! | a caller that | goes |
//! |---|---|
//! | has not agreed on a channel | first, the oldest; those that have said nothing before those that have |
//! | has agreed, and asks nothing | when it was silent for longest: an API server whose connection is closed makes another |
//! | has sent a review lately | not for five minutes, if it is one of the last sixteen |
//! | has a review under way | never |

mod book;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use runtime::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use vocabulary::Timestamp;

use super::metrics::InjectorMetrics;
use book::{CallerBook, CallerRecord};

pub(super) use book::CallerLimits;

/// The places, and the callers that have them.
pub(super) struct CallerPlaces {
    limits: CallerLimits,
    clock: Clock,
    metrics: InjectorMetrics,
    book: Mutex<CallerBook>,
    /// Wakes waiting callers: a caller has left, or may be asked to leave from now on.
    changed: Notify,
}

impl CallerPlaces {
    pub(super) fn new(limits: CallerLimits, clock: Clock, metrics: InjectorMetrics) -> Arc<Self> {
        metrics.has_places(limits.places);
        Arc::new(Self { limits, clock, metrics, book: Mutex::default(), changed: Notify::new() })
    }

    /// Waits for a place. Another caller makes one if there is none. Cancel-safe.
    pub(super) async fn take(self: &Arc<Self>) -> CallerPlace {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on a change wakes us, also one between the look and the wait.
            changed.as_mut().enable();
            match self.try_take() {
                Ok(place) => return place,
                Err(None) => changed.await,
                Err(Some(again_at)) => {
                    // Cancelling loses nothing: a change is looked for in any case.
                    tokio::select! {
                        () = changed => {}
                        () = self.clock.sleep_until(again_at) => {}
                    }
                }
            }
        }
    }

    /// An error says when to try again, if that is known.
    fn try_take(self: &Arc<Self>) -> Result<CallerPlace, Option<Timestamp>> {
        let now = self.clock.now();
        let mut book = self.book();
        if book.callers.len() >= self.limits.places {
            let gone = book.make_room(self.limits, now)?;
            (0..gone).for_each(|_| self.metrics.crowded_out());
            return Err(None);
        }
        book.last += 1;
        let (number, task) = (book.last, Arc::<AtomicWaker>::default());
        let caller = CallerRecord {
            came_at: now,
            heard_at: None,
            has_agreed: false,
            reviews_under_way: 0,
            reviewed_at: None,
            must_go: false,
            task: Arc::clone(&task),
        };
        book.callers.insert(number, caller);
        self.metrics.connected(book.callers.len());
        Ok(CallerPlace(Arc::new(PlaceOwner { places: Arc::clone(self), number, task })))
    }

    fn book(&self) -> MutexGuard<'_, CallerBook> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place for one caller. Clones are the same place, which is free when the last of them is gone.
#[derive(Clone)]
pub(super) struct CallerPlace(Arc<PlaceOwner>);

struct PlaceOwner {
    places: Arc<CallerPlaces>,
    number: u64,
    task: Arc<AtomicWaker>,
}

impl Drop for PlaceOwner {
    fn drop(&mut self) {
        let mut book = self.places.book();
        book.callers.remove(&self.number);
        self.places.metrics.connected(book.callers.len());
        drop(book);
        self.places.changed.notify_waiters();
    }
}

impl CallerPlace {
    /// The caller speaks over this stream from now on.
    pub(super) fn seat<Stream>(&self, stream: Stream) -> CallerStream<Stream> {
        CallerStream { stream, place: self.clone() }
    }

    /// A channel is agreed on.
    pub(super) fn agree(&self) {
        self.note(|caller, now| {
            caller.has_agreed = true;
            caller.heard_at = Some(now);
        });
    }

    /// A review of this caller is read and answered from now on. Hold it until that is over.
    pub(super) fn begin_review(&self) -> RunningReview {
        self.note(|caller, _| {
            caller.reviews_under_way += 1;
            // It came before its caller heard that it should go.
            caller.must_go = false;
        });
        self.0.places.changed.notify_waiters();
        RunningReview(self.clone())
    }

    /// What it sent was a review.
    pub(super) fn note_reviewed(&self) {
        self.note(|caller, now| caller.reviewed_at = Some(now));
    }

    /// Returns when another one needs the place.
    pub(super) fn must_go(&self) -> impl Future<Output = ()> + use<> {
        let place = self.clone();
        poll_fn(move |context| {
            // First, so that a word between the look and the wait wakes it.
            place.0.task.register(context.waker());
            if place.is_to_go() { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    fn is_to_go(&self) -> bool {
        self.0.places.book().callers.get(&self.0.number).is_none_or(|caller| caller.must_go)
    }

    fn hear(&self) {
        self.note(|caller, now| caller.heard_at = Some(now));
    }

    fn note(&self, note: impl FnOnce(&mut CallerRecord, Timestamp)) {
        let now = self.0.places.clock.now();
        if let Some(caller) = self.0.places.book().callers.get_mut(&self.0.number) {
            note(caller, now);
        }
    }
}

/// A review that is under way: its caller stays.
pub(super) struct RunningReview(CallerPlace);

impl Drop for RunningReview {
    fn drop(&mut self) {
        self.0.note(|caller, now| {
            caller.reviews_under_way = caller.reviews_under_way.saturating_sub(1);
            caller.heard_at = Some(now);
        });
        self.0.0.places.changed.notify_waiters();
    }
}

/// A caller's stream. It ends, as if the caller had gone, when its place is needed.
pub(super) struct CallerStream<Stream> {
    stream: Stream,
    place: CallerPlace,
}

impl<Stream: AsyncRead + Unpin> AsyncRead for CallerStream<Stream> {
    fn poll_read(self: Pin<&mut Self>, at: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // First, so that a word between the look and the wait wakes it.
        this.place.0.task.register(at.waker());
        if this.place.is_to_go() {
            return Poll::Ready(Ok(()));
        }
        let filled = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(at, into);
        if into.filled().len() > filled {
            this.place.hear();
        }
        read
    }
}

impl<Stream: AsyncWrite + Unpin> AsyncWrite for CallerStream<Stream> {
    fn poll_write(self: Pin<&mut Self>, at: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(at, bytes);
        if matches!(written, Poll::Ready(Ok(_))) {
            this.place.hear();
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, at: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(at)
    }

    fn poll_shutdown(self: Pin<&mut Self>, at: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use runtime::MetricsRegistry;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    /// Places for two callers, one of whom may be known by reviews.
    fn places(registry: &MetricsRegistry) -> Arc<CallerPlaces> {
        let limits = CallerLimits { places: 2, known: 1, ..CallerLimits::WEBHOOK };
        CallerPlaces::new(limits, Clock::start(), InjectorMetrics::register(registry))
    }

    async fn caller(places: &Arc<CallerPlaces>) -> (CallerStream<DuplexStream>, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(64);
        let place = places.take().await;
        place.agree();
        (place.seat(ours), theirs)
    }

    /// One that has said nothing yet.
    async fn silent(places: &Arc<CallerPlaces>) -> CallerPlace {
        tokio::time::timeout(Duration::from_secs(3), places.take()).await.expect("one makes room")
    }

    fn is_to_go(place: &CallerPlace) -> bool {
        place.is_to_go()
    }

    #[tokio::test(start_paused = true)]
    async fn the_most_silent_caller_makes_room_and_one_that_speaks_stays() {
        let registry = MetricsRegistry::default();
        let places = places(&registry);
        let (mut first, mut first_there) = caller(&places).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let (mut second, _second_there) = caller(&places).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        // It came before the other one, and said something since.
        first_there.write_all(b"hello").await.expect("it is read");
        let mut word = [0; 5];
        first.read_exact(&mut word).await.expect("it was said");
        let evicted = tokio::spawn(async move { second.read(&mut [0; 1]).await });
        let (third, _third_there) = caller(&places).await;
        let read = evicted.await.expect("no panic").expect("it ends as if the caller had gone");
        assert_eq!(read, 0);
        let page = registry.encode();
        assert!(page.contains("injector_open_connections 2\n"), "{page}");
        assert!(page.contains("injector_closed_idle_connections_total 1\n"), "{page}");
        drop((first, third));
        assert!(registry.encode().contains("injector_open_connections 0\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn one_more_waits_while_all_speak() {
        let places = places(&MetricsRegistry::default());
        let (_first, _first_there) = caller(&places).await;
        let (second, _second_there) = caller(&places).await;
        // Both were heard of just now.
        let waiting = tokio::time::timeout(Duration::from_millis(900), places.take()).await;
        assert!(waiting.is_err(), "there is no third place");
        drop(second);
        assert!(tokio::time::timeout(Duration::from_millis(50), places.take()).await.is_ok());
    }

    /// A caller that gives up its place as soon as it is asked to.
    fn obedient(place: CallerPlace) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move { place.must_go().await })
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_has_not_agreed_makes_room_before_one_that_has() {
        let places = places(&MetricsRegistry::default());
        let (agreed, _there) = caller(&places).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let newcomer = obedient(silent(&places).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let _next = silent(&places).await;
        assert!(newcomer.is_finished() && !is_to_go(&agreed.place), "its age does not matter");
    }

    #[tokio::test(start_paused = true)]
    async fn handshakes_have_one_second_while_others_have_no_place() {
        let places = places(&MetricsRegistry::default());
        let handshakes = [silent(&places).await, silent(&places).await];
        for handshake in &handshakes {
            handshake.hear();
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(handshakes.iter().all(|place| !is_to_go(place)), "no caller waits");
        assert!(tokio::time::timeout(Duration::from_millis(10), places.take()).await.is_err());
        assert!(handshakes.iter().all(is_to_go));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_whose_review_is_under_way_stays() {
        let places = places(&MetricsRegistry::default());
        let [(first, _one), (second, _two)] = [caller(&places).await, caller(&places).await];
        let reviews = [first.place.begin_review(), second.place.begin_review()];
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(tokio::time::timeout(Duration::from_secs(60), places.take()).await.is_err());
        assert!(!is_to_go(&first.place) && !is_to_go(&second.place));
        drop(reviews);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(tokio::time::timeout(Duration::from_millis(10), places.take()).await.is_err());
        assert!(is_to_go(&first.place) != is_to_go(&second.place), "one makes room");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_has_sent_a_review_keeps_its_place_for_five_minutes_if_it_is_one_of_the_last() {
        let places = places(&MetricsRegistry::default());
        let [(first, _one), (second, _two)] = [caller(&places).await, caller(&places).await];
        first.place.note_reviewed();
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Only one is kept so here: the last one.
        second.place.note_reviewed();
        tokio::time::sleep(Duration::from_secs(290)).await;
        let (first, second) = (first.place.clone(), second.place.clone());
        assert!(tokio::time::timeout(Duration::from_millis(10), places.take()).await.is_err());
        assert!(is_to_go(&first) && !is_to_go(&second));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_sent_its_review_long_ago_makes_room_like_others() {
        let places = places(&MetricsRegistry::default());
        let [(first, _one), (second, _two)] = [caller(&places).await, caller(&places).await];
        second.place.note_reviewed();
        tokio::time::sleep(Duration::from_secs(299)).await;
        first.place.hear();
        assert!(tokio::time::timeout(Duration::from_millis(900), places.take()).await.is_err());
        assert!(!is_to_go(&second.place), "it is kept");
        tokio::time::sleep(Duration::from_secs(1)).await;
        first.place.hear();
        assert!(tokio::time::timeout(Duration::from_millis(10), places.take()).await.is_err());
        assert!(is_to_go(&second.place) && !is_to_go(&first.place), "five minutes are over");
    }
}
