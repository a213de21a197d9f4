//! How loaded this pod is: second by second for the autoscaler, and its present count for every task that
//! waits for a change.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use link::History;
use runtime::Clock;
use throttling::{LoadMeter, Origin, PresentLoad, ReporterSeconds};
use tokio::sync::Notify;
use vocabulary::{PresentCount, Sample, Timestamp};

/// What a request counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestLoad {
    /// Load, which came this way.
    Measured(Origin),
    /// Nothing: it is a health check or a scrape, of which the autoscaler is to hear nothing. A drain waits
    /// for it all the same.
    Unmeasured,
}

/// The load of this pod.
pub(crate) struct LoadBook {
    clock: Clock,
    started_at: Timestamp,
    seconds: ReporterSeconds,
    meter: RefCell<LoadMeter>,
    history: RefCell<History>,
    latest: Cell<Option<Sample>>,
    /// Requests of clients that wait for a slot, and those of activators.
    waiting: Cell<u32>,
    proxied_waiting: Cell<u32>,
    /// Requests that are no load, and those of them that wait for a slot.
    unmeasured: Cell<u32>,
    unmeasured_waiting: Cell<u32>,
    surge: Surge,
    second_closed: Notify,
    emptied: Notify,
}

/// When the autoscaler wants to hear of the present count before its second is over: from the threshold on
/// again and again, until it was told that the count is below it. Were it told of rises alone, clients that
/// go from here to an activator would count in both places for as long as it believes the old count.
#[derive(Default)]
struct Surge {
    threshold: Cell<Option<u32>>,
    /// The count that was last reported; 0 once one below the threshold was.
    reported: Cell<u32>,
    risen: Notify,
}

impl LoadBook {
    pub(crate) fn new(clock: Clock) -> Self {
        let started_at = clock.now();
        Self {
            clock,
            started_at,
            seconds: ReporterSeconds::since(started_at),
            meter: RefCell::new(LoadMeter::new(started_at)),
            history: RefCell::new(History::new()),
            latest: Cell::new(None),
            waiting: Cell::new(0),
            proxied_waiting: Cell::new(0),
            unmeasured: Cell::new(0),
            unmeasured_waiting: Cell::new(0),
            surge: Surge::default(),
            second_closed: Notify::new(),
            emptied: Notify::new(),
        }
    }

    /// A request arrived just now, at `arrived_at`; it counts until the returned value is dropped.
    pub(crate) fn arrive(self: &Rc<Self>, counts_as: RequestLoad, arrived_at: Timestamp) -> CountedRequest {
        match counts_as {
            RequestLoad::Measured(origin) => {
                self.meter.borrow_mut().arrived(origin, arrived_at);
                // What came through an activator is in that one's report already, which came first.
                if origin == Origin::Direct {
                    self.notify_if_risen();
                }
            }
            RequestLoad::Unmeasured => self.unmeasured.set(self.unmeasured.get() + 1),
        }
        CountedRequest { book: Rc::clone(self), counts_as, arrived_at, is_ended: false }
    }

    /// A request waits for a slot until the returned value is dropped.
    pub(crate) fn wait(self: &Rc<Self>, counts_as: RequestLoad) -> WaitingRequest {
        let count = self.waiting_of(counts_as);
        count.set(count.get() + 1);
        WaitingRequest { book: Rc::clone(self), counts_as }
    }

    /// The requests that are held now and are load.
    fn present(&self) -> PresentLoad {
        self.meter.borrow().present()
    }

    /// How many requests are held now, whatever they count as.
    pub(crate) fn held(&self) -> u32 {
        self.present().in_flight + self.unmeasured.get()
    }

    /// How many requests wait for a slot, whatever they count as.
    pub(crate) fn all_waiting(&self) -> u32 {
        self.waiting() + self.unmeasured_waiting.get()
    }

    /// How many requests wait, as far as they are load.
    fn waiting(&self) -> u32 {
        self.waiting.get() + self.proxied_waiting.get()
    }

    /// The present count without requests that came through an activator: the activator reports those.
    pub(crate) fn present_count(&self) -> PresentCount {
        let present = self.present();
        PresentCount {
            in_flight: present.in_flight.saturating_sub(present.proxied),
            waiting: self.waiting.get(),
        }
    }

    /// The last completed second, for readers of one value such as Knative's stat. `None` during the first.
    pub(crate) fn latest(&self) -> Option<Sample> {
        self.latest.get()
    }

    /// The number of the second that runs now.
    pub(crate) fn current_second(&self) -> u64 {
        self.latest.get().map_or(0, |sample| sample.second + 1)
    }

    /// The completed seconds from number `second` on, as far as they are remembered.
    pub(crate) fn seconds_from(&self, second: u64) -> Vec<Sample> {
        let mut samples = self.history.borrow().to_vec();
        samples.retain(|sample| sample.second >= second);
        samples
    }

    /// Waits until second number `second` is completed.
    pub(crate) async fn completed(&self, second: u64) {
        // A loop, because several wait here for different seconds, and each end of one wakes them all.
        while self.latest.get().is_none_or(|sample| sample.second < second) {
            self.second_closed.notified().await;
        }
    }

    /// Waits until no request is held.
    pub(crate) async fn emptied(&self) {
        while self.held() > 0 {
            self.emptied.notified().await;
        }
    }

    /// How long this process has run.
    pub(crate) fn uptime(&self) -> Duration {
        self.clock.now().saturating_since(self.started_at)
    }

    /// From which count on the present count is to be reported at once; `None`: never.
    pub(crate) fn set_surge_threshold(&self, threshold: Option<u32>) {
        self.surge.threshold.set(threshold);
        self.surge.reported.set(0);
        self.notify_if_risen();
    }

    /// Waits until the present count is to be reported, and takes it as reported. From the threshold on that
    /// is at every call: the autoscaler decides by no count that is older than the caller's pace.
    pub(crate) async fn surge_count(&self) -> PresentCount {
        loop {
            let count = self.present_count();
            let is_surge = self.is_surge(count.in_flight);
            if is_surge || self.is_changed() {
                self.surge.reported.set(if is_surge { count.in_flight } else { 0 });
                return count;
            }
            self.surge.risen.notified().await;
        }
    }

    /// Closes one second after the other, for ever.
    pub(crate) async fn run(&self) {
        let mut open = 0;
        loop {
            self.clock.sleep_until(self.seconds.beginning_of(open + 1)).await;
            open = self.close(open, self.clock.now());
        }
    }

    /// Closes `open` and each further second that has passed. Says which second is open then.
    fn close(&self, open: u64, now: Timestamp) -> u64 {
        let ended = self.seconds.ended(open, now);
        let mut load = self.meter.borrow_mut().close_seconds(ended.count(), now);
        // Of the moment and not of the second: only requests that wait now can be helped by a decision.
        load.queued = self.waiting();
        // After a stall several seconds end at once, and it is not known which of them held which requests.
        // Each gets the average of all, so that their sum is right.
        for second in ended.latest(History::<Sample>::SECONDS_MAX) {
            let sample = Sample { second, load };
            self.history.borrow_mut().push(sample);
            self.latest.set(Some(sample));
        }
        self.second_closed.notify_waiters();
        ended.next()
    }

    /// Whether the present count is above what was last reported, from the threshold on, or below it.
    fn is_changed(&self) -> bool {
        let (present, reported) = (self.present_count().in_flight, self.surge.reported.get());
        present < reported || (present > reported && self.is_surge(present))
    }

    fn is_surge(&self, present: u32) -> bool {
        self.surge.threshold.get().is_some_and(|threshold| present >= threshold.max(1))
    }

    /// Wakes the link if the present count has risen to a new report. A count that falls was above the
    /// threshold when it was reported, and its next report is due in any case.
    fn notify_if_risen(&self) {
        if self.is_changed() {
            self.surge.risen.notify_one();
        }
    }

    fn finish(&self, counts_as: RequestLoad, now: Timestamp) {
        match counts_as {
            RequestLoad::Measured(origin) => self.meter.borrow_mut().finished(origin, now),
            RequestLoad::Unmeasured => self.unmeasured.set(self.unmeasured.get().saturating_sub(1)),
        }
        // The tasks that are woken below read the book, on this thread and perhaps at once.
        if self.held() == 0 {
            self.emptied.notify_waiters();
        }
    }

    fn waiting_of(&self, counts_as: RequestLoad) -> &Cell<u32> {
        match counts_as {
            RequestLoad::Measured(Origin::Direct) => &self.waiting,
            RequestLoad::Measured(Origin::Proxied) => &self.proxied_waiting,
            RequestLoad::Unmeasured => &self.unmeasured_waiting,
        }
    }
}

/// One request that is held.
pub(crate) struct CountedRequest {
    book: Rc<LoadBook>,
    counts_as: RequestLoad,
    arrived_at: Timestamp,
    is_ended: bool,
}

impl CountedRequest {
    /// The request ended. Returns how long it took.
    pub(crate) fn end(mut self) -> Duration {
        self.finish()
    }

    fn finish(&mut self) -> Duration {
        self.is_ended = true;
        let now = self.book.clock.now();
        self.book.finish(self.counts_as, now);
        now.saturating_since(self.arrived_at)
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        if !self.is_ended {
            self.finish();
        }
    }
}

/// One request that waits for a slot.
pub(crate) struct WaitingRequest {
    book: Rc<LoadBook>,
    counts_as: RequestLoad,
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        let count = self.book.waiting_of(self.counts_as);
        count.set(count.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> Rc<LoadBook> {
        Rc::new(LoadBook::new(Clock::start()))
    }

    fn arrive(book: &Rc<LoadBook>, origin: Origin) -> CountedRequest {
        book.arrive(RequestLoad::Measured(origin), book.clock.now())
    }

    /// Each second's number, concurrency, its proxied part, and arrivals.
    fn seconds_of(book: &LoadBook) -> Vec<(u64, f64, f64, f64)> {
        let seconds = book.seconds_from(0).into_iter().map(|Sample { second, load }| {
            let (concurrency, proxied) = (load.concurrency.value(), load.proxied_concurrency.value());
            (second, concurrency, proxied, load.request_rate.value())
        });
        seconds.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn every_second_has_its_number_and_its_load() {
        let book = book();
        let running = book.run();
        let using = async {
            let _held = arrive(&book, Origin::Direct);
            book.completed(0).await;
            let proxied = arrive(&book, Origin::Proxied);
            book.completed(1).await;
            drop(proxied);
            book.completed(2).await;
        };
        tokio::select! {
            () = running => unreachable!("it keeps on"),
            () = using => {}
        }
        assert_eq!(seconds_of(&book), [(0, 1.0, 0.0, 1.0), (1, 2.0, 1.0, 1.0), (2, 1.0, 0.0, 0.0)]);
        assert_eq!(book.current_second(), 3);
    }

    /// The process had no core from 1.5 s to 4.5 s. Seconds 1, 2 and 3 passed meanwhile: none is missing, and
    /// the requests of all of them are not those of one.
    #[tokio::test(start_paused = true)]
    async fn a_stall_of_three_seconds_is_shared_out_over_them() {
        let book = book();
        let mut running = Box::pin(book.run());
        let _held = [arrive(&book, Origin::Direct), arrive(&book, Origin::Proxied)];
        let mut run_at = async |milliseconds| {
            let at = book.started_at + Duration::from_millis(milliseconds);
            tokio::time::advance(at.saturating_since(book.clock.now())).await;
            assert!(futures_util::poll!(&mut running).is_pending());
        };
        run_at(0).await;
        run_at(1_000).await;
        for milliseconds in [1_100, 1_200, 1_500] {
            run_at(milliseconds).await;
            drop([arrive(&book, Origin::Direct), arrive(&book, Origin::Direct)]);
        }
        run_at(4_500).await;
        run_at(5_000).await;
        let expected = [
            (0, 2.0, 1.0, 2.0),
            (1, 2.0, 1.0, 2.0),
            (2, 2.0, 1.0, 2.0),
            (3, 2.0, 1.0, 2.0),
            (4, 2.0, 1.0, 0.0),
        ];
        assert_eq!(seconds_of(&book), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rise_is_news_from_the_threshold_on_and_only_while_it_grows() {
        let book = book();
        book.set_surge_threshold(Some(2));
        let mut held = vec![arrive(&book, Origin::Direct), arrive(&book, Origin::Proxied)];
        assert!(!book.is_changed(), "what an activator reports is not ours to report");
        held.push(arrive(&book, Origin::Direct));
        let _waiting = book.wait(RequestLoad::Measured(Origin::Direct));
        assert_eq!(book.surge_count().await, PresentCount { in_flight: 2, waiting: 1 });
        assert!(!book.is_changed());
        held.push(arrive(&book, Origin::Direct));
        assert_eq!(book.surge_count().await.in_flight, 3);
        held.clear();
        held.extend([arrive(&book, Origin::Direct), arrive(&book, Origin::Direct)]);
        assert!(book.is_changed(), "it fell below the threshold in between");
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_above_the_threshold_is_repeated_until_one_below_it_was_reported() {
        let book = book();
        book.set_surge_threshold(Some(3));
        let mut held: Vec<_> = (0..5).map(|_| arrive(&book, Origin::Direct)).collect();
        let proxied = arrive(&book, Origin::Proxied);
        for _ in 0..2 {
            assert_eq!(book.surge_count().await.in_flight, 5);
        }
        drop(proxied);
        assert!(!book.is_changed(), "what came through an activator is not ours to report");
        for left in [4, 3] {
            held.truncate(left);
            assert!(book.is_changed());
            assert_eq!(book.surge_count().await.in_flight, u32::try_from(left).expect("few"));
        }
        held.truncate(1);
        assert_eq!(book.surge_count().await.in_flight, 1);
        held.clear();
        let mut next = Box::pin(book.surge_count());
        assert!(futures_util::poll!(&mut next).is_pending(), "one below the threshold was reported");
        held.extend((0..2).map(|_| arrive(&book, Origin::Direct)));
        assert!(futures_util::poll!(&mut next).is_pending());
        held.push(arrive(&book, Origin::Direct));
        assert_eq!(next.await.in_flight, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_no_held_requests_ends_with_the_last_one() {
        let book = book();
        for counts_as in [
            RequestLoad::Measured(Origin::Direct),
            RequestLoad::Measured(Origin::Proxied),
            RequestLoad::Unmeasured,
        ] {
            let held = book.arrive(counts_as, book.clock.now());
            let mut emptied = Box::pin(book.emptied());
            assert!(futures_util::poll!(&mut emptied).is_pending(), "{counts_as:?}");
            drop(held);
            emptied.await;
            assert_eq!((book.held(), book.present()), (0, PresentLoad::default()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unmeasured_requests_are_held_and_never_reported() {
        let book = book();
        book.set_surge_threshold(Some(1));
        let running = book.run();
        let using = async {
            let held = [(); 3].map(|()| book.arrive(RequestLoad::Unmeasured, book.clock.now()));
            let waiting = book.wait(RequestLoad::Unmeasured);
            assert_eq!((book.held(), book.all_waiting()), (3, 1));
            assert!(!book.is_changed());
            assert_eq!(book.present_count(), PresentCount::default());
            book.completed(1).await;
            drop((held, waiting));
            assert_eq!((book.held(), book.all_waiting()), (0, 0));
            book.completed(2).await;
        };
        // Cancelling loses nothing: the book is kept for ever.
        tokio::select! {
            () = running => unreachable!("it keeps on"),
            () = using => {}
        }
        let samples = book.seconds_from(0);
        assert!(samples.len() == 3 && samples.iter().all(|sample| sample.load.is_zero()), "{samples:?}");
    }
}
