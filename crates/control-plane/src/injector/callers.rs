//! Who may be connected to the webhook at once?
//!
//! API servers keep a connection or two each, and kubelet comes by for a moment; anybody in the cluster may
//! call, too. There are so many places. When all are taken, whoever was silent for longest loses his: nothing
//! is under way for one who has been silent for a second, and an API server that finds its connection closed
//! makes another.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use runtime::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vocabulary::Timestamp;

use super::metrics::InjectorMetrics;

/// What the webhook keeps for its callers.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallerLimits {
    /// Callers at once.
    pub(super) places: usize,
    /// Nobody loses his place to another before he was silent for this long.
    pub(super) silence_min: Duration,
}

impl CallerLimits {
    /// Some dozen API servers with room for a hundred others. Each may ask as much as it likes: how many
    /// questions are held at once has a limit of its own.
    pub(super) const WEBHOOK: Self = Self { places: 256, silence_min: Duration::from_secs(1) };
}

/// The places, and who has one.
pub(super) struct CallerPlaces {
    limits: CallerLimits,
    clock: Clock,
    metrics: InjectorMetrics,
    free: Arc<Semaphore>,
    callers: Mutex<CallersByNumber>,
}

#[derive(Default)]
struct CallersByNumber {
    last: u64,
    callers: BTreeMap<u64, Arc<CallerRecord>>,
}

impl CallerPlaces {
    pub(super) fn new(limits: CallerLimits, clock: Clock, metrics: InjectorMetrics) -> Arc<Self> {
        metrics.has_places(limits.places);
        let free = Arc::new(Semaphore::new(limits.places));
        Arc::new(Self { limits, clock, metrics, free, callers: Mutex::default() })
    }

    /// Waits for a place. Whoever was silent for longest makes one if there is none.
    pub(super) async fn take(self: &Arc<Self>) -> CallerPlace {
        loop {
            let free = Arc::clone(&self.free);
            if free.available_permits() == 0 {
                self.send_the_most_silent_away();
            }
            // Nobody may have been silent for long enough; he may be by then.
            if let Ok(Ok(permit)) = tokio::time::timeout(self.limits.silence_min, free.acquire_owned()).await
            {
                return CallerPlace { places: Arc::clone(self), _permit: permit };
            }
        }
    }

    fn send_the_most_silent_away(&self) {
        let now = self.clock.now();
        let held = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let staying = held.callers.values().filter(|caller| !caller.must_go());
        let most_silent = staying.min_by_key(|caller| caller.heard_at());
        let silent_for = most_silent.map(|caller| now.saturating_since(caller.heard_at()));
        if let (Some(caller), Some(silent_for)) = (most_silent, silent_for)
            && silent_for >= self.limits.silence_min
        {
            self.metrics.crowded_out();
            caller.send_away();
        }
    }

    fn enter(&self, record: Arc<CallerRecord>) -> u64 {
        let mut held = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        held.last += 1;
        let number = held.last;
        held.callers.insert(number, record);
        self.metrics.connected(held.callers.len());
        number
    }

    fn leave(&self, number: u64) {
        let mut held = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        held.callers.remove(&number);
        self.metrics.connected(held.callers.len());
    }
}

/// A place for one caller, until it is dropped.
pub(super) struct CallerPlace {
    places: Arc<CallerPlaces>,
    _permit: OwnedSemaphorePermit,
}

impl CallerPlace {
    /// The caller speaks over this stream from now on.
    pub(super) fn seat<Stream>(self, stream: Stream) -> CallerStream<Stream> {
        let record = Arc::new(CallerRecord {
            heard_at: Mutex::new(self.places.clock.now()),
            must_go: AtomicBool::new(false),
            reader: AtomicWaker::new(),
        });
        let number = self.places.enter(Arc::clone(&record));
        CallerStream { stream, record, number, place: self }
    }
}

/// What others know of a caller.
struct CallerRecord {
    heard_at: Mutex<Timestamp>,
    must_go: AtomicBool,
    /// Who waits for the caller's next word.
    reader: AtomicWaker,
}

impl CallerRecord {
    fn heard_at(&self) -> Timestamp {
        *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, now: Timestamp) {
        *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn must_go(&self) -> bool {
        self.must_go.load(Ordering::Acquire)
    }

    fn send_away(&self) {
        self.must_go.store(true, Ordering::Release);
        self.reader.wake();
    }
}

/// A caller's stream. It ends, as if the caller had gone, when his place is needed.
pub(super) struct CallerStream<Stream> {
    stream: Stream,
    record: Arc<CallerRecord>,
    number: u64,
    place: CallerPlace,
}

impl<Stream> CallerStream<Stream> {
    fn hear(&self) {
        self.record.hear(self.place.places.clock.now());
    }
}

impl<Stream> Drop for CallerStream<Stream> {
    fn drop(&mut self) {
        self.place.places.leave(self.number);
    }
}

impl<Stream: AsyncRead + Unpin> AsyncRead for CallerStream<Stream> {
    fn poll_read(self: Pin<&mut Self>, at: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // First, so that a word between the look and the wait wakes it.
        this.record.reader.register(at.waker());
        if this.record.must_go() {
            return Poll::Ready(Ok(()));
        }
        let filled = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(at, into);
        if into.filled().len() > filled {
            this.hear();
        }
        read
    }
}

impl<Stream: AsyncWrite + Unpin> AsyncWrite for CallerStream<Stream> {
    fn poll_write(self: Pin<&mut Self>, at: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(at, bytes);
        if matches!(written, Poll::Ready(Ok(_))) {
            this.hear();
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
    use runtime::MetricsRegistry;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    /// Two places.
    fn places(registry: &MetricsRegistry) -> Arc<CallerPlaces> {
        let limits = CallerLimits { places: 2, silence_min: Duration::from_secs(1) };
        CallerPlaces::new(limits, Clock::start(), InjectorMetrics::register(registry))
    }

    async fn caller(places: &Arc<CallerPlaces>) -> (CallerStream<DuplexStream>, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(64);
        (places.take().await.seat(ours), theirs)
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_silent_for_longest_makes_room_and_who_speaks_stays() {
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
}
