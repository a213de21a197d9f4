//! The settings that the autoscaler sent to this queue-proxy over the link.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use http::HeaderMap;
use runtime::Clock;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use vocabulary::{
    AdoptionId, DRAIN_ACCEPTS_MAX, Departure, Epoch, HeadSizeLimit, HopKey, LateTimeout, PodSettings,
    RequestTimeouts, Routing, Timestamp, Version,
};

use dataplane::{HeadLimits, has_internal, names};

use crate::config::DRAIN_LINGER_MAX;

/// How long connections are accepted after the owner's word that no client is told of this pod any more: as
/// long as a node may take to hear of a change of addresses.
const RELEASED_LINGER: Duration = DRAIN_ACCEPTS_MAX.saturating_sub(DRAIN_LINGER_MAX);

/// How long the requests of our own hops wait for the owner's first settings, counted from the first request.
/// Activators go by the platform's word while the link is being dialled, and on a busy node that may be
/// first. Where no link is ever had, as behind a network policy, only the pod's first requests are held up,
/// and it is known after as many seconds that a pod is unheard.
const FIRST_SETTINGS_WITHIN: Duration = Duration::from_secs(3);

/// The latest settings of the owner. Before the first link no hop is trusted, and clients are not sent
/// elsewhere.
pub(crate) struct OwnerSettings {
    version: Cell<Option<Version>>,
    routing: Cell<Routing>,
    hop_keys: RefCell<Vec<HopKey>>,
    departure: Cell<Departure>,
    adoption: Cell<Option<AdoptionId>>,
    head_size: Cell<HeadSizeLimit>,
    late: Cell<LateTimeout>,
    changed: Notify,
    /// When the first request began to wait for the first settings.
    awaited_since: Cell<Option<Timestamp>>,
}

impl OwnerSettings {
    pub(crate) fn new() -> Self {
        Self {
            version: Cell::new(None),
            routing: Cell::new(Routing::Direct),
            hop_keys: RefCell::default(),
            departure: Cell::default(),
            adoption: Cell::default(),
            head_size: Cell::default(),
            late: Cell::default(),
            changed: Notify::new(),
            awaited_since: Cell::new(None),
        }
    }

    /// Takes over settings, unless newer ones are in force: those of an owner that does not know yet that it
    /// is none any more.
    pub(crate) fn set(&self, settings: &PodSettings) -> bool {
        if self.version.get().is_some_and(|in_force| settings.version < in_force) {
            return false;
        }
        self.version.set(Some(settings.version));
        self.routing.set(settings.routing);
        self.hop_keys.replace(settings.hop_keys.clone());
        self.departure.set(settings.departure);
        self.adoption.set(settings.adoption);
        self.head_size.set(settings.head_size_limit);
        self.late.set(settings.late);
        self.changed.notify_waiters();
        true
    }

    /// The epoch of the owner whose settings are in force.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.version.get().map(|version| version.epoch)
    }

    /// Waits until the version in force is another one than `known`.
    pub(crate) async fn other_than(&self, known: Option<Version>) -> Version {
        loop {
            let changed = self.changed.notified();
            match self.version.get() {
                Some(version) if Some(version) != known => return version,
                Some(_) | None => changed.await,
            }
        }
    }

    /// Whether the request shows a hop key while no settings have named the valid keys yet. Taken for a
    /// client's it would count twice, here and at its hop, and start pods that are not needed.
    pub(crate) fn hop_keys_still_pending(&self, headers: &HeaderMap) -> bool {
        // `has_internal` looks at each name once. It is cheaper than the search for the hop key, which only
        // requests with an internal header need.
        self.version.get().is_none() && has_internal(headers) && headers.contains_key(names::EBB_HOP_KEY)
    }

    /// Waits for the owner's first settings, at most [`FIRST_SETTINGS_WITHIN`] after the first such wait
    /// began.
    pub(crate) async fn await_first_settings(&self, clock: Clock) {
        let since = self.awaited_since.get().unwrap_or_else(|| clock.now());
        self.awaited_since.set(Some(since));
        // Cancelling loses nothing: the owner's word is a state, and the end is a time.
        tokio::select! {
            () = clock.sleep_until(since + FIRST_SETTINGS_WITHIN) => {}
            _version = self.other_than(None) => {}
        }
    }

    /// Waits until the owner says that the platform ends this pod.
    pub(crate) async fn leaving(&self) {
        loop {
            let changed = self.changed.notified();
            match self.departure.get() {
                Departure::NotPlanned => changed.await,
                Departure::Leaving { .. } | Departure::Released => return,
            }
        }
    }

    /// Waits until no client connects any more that was told of this pod: for the owner's word that no client
    /// is told of it, at most `at_most`, and then until that is known everywhere. Where that is no time at
    /// all, the owner's word makes it no longer.
    pub(crate) async fn unknown_to_clients(&self, at_most: Duration, clock: Clock) {
        if at_most.is_zero() {
            return;
        }
        // Cancelling loses nothing: the owner's word is a state.
        tokio::select! {
            () = clock.sleep_until(clock.now() + at_most) => {}
            () = self.released() => clock.sleep_until(clock.now() + RELEASED_LINGER).await,
        }
    }

    /// Waits for the owner's word that no client is told of this pod any more.
    async fn released(&self) {
        loop {
            let changed = self.changed.notified();
            match self.departure.get() {
                Departure::NotPlanned | Departure::Leaving { .. } => changed.await,
                Departure::Released => return,
            }
        }
    }

    /// Waits until the owner announces another departure of this pod than `known`.
    pub(crate) async fn departure_other_than(&self, known: Departure) -> Departure {
        loop {
            let changed = self.changed.notified();
            match self.departure.get() {
                departure if departure != known => return departure,
                _ => changed.await,
            }
        }
    }

    /// The latest adoption that the owner names.
    pub(crate) fn adoption(&self) -> Option<AdoptionId> {
        self.adoption.get()
    }

    /// Waits until the owner names a later adoption than that.
    pub(crate) async fn adoption_after(&self, known: Option<AdoptionId>) -> AdoptionId {
        loop {
            let changed = self.changed.notified();
            match self.adoption.get() {
                Some(adoption) if known.is_none_or(|known| adoption > known) => return adoption,
                Some(_) | None => changed.await,
            }
        }
    }

    /// Resolves when the owner sends other settings after this call.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    pub(crate) fn routing(&self) -> Routing {
        self.routing.get()
    }

    /// These timeouts, with the end that the owner wants of a response that has begun.
    pub(crate) fn timeouts(&self, limits: RequestTimeouts) -> RequestTimeouts {
        RequestTimeouts { late: self.late.get(), ..limits }
    }

    /// How large the head of a request with these headers may be. An activator adds to the head of its
    /// client. Before the owner's first word its key cannot be checked, and its request waits for that.
    pub(crate) fn head_limits(&self, headers: &HeaderMap) -> HeadLimits {
        let is_hop = self.has_valid_hop_key(headers) || self.hop_keys_still_pending(headers);
        if is_hop { self.head_limits_max() } else { HeadLimits::outer(self.head_size.get()) }
    }

    /// How large the head of any request may be.
    pub(crate) fn head_limits_max(&self) -> HeadLimits {
        HeadLimits::hop(self.head_size_at_most())
    }

    /// How large the head of the app's response may be.
    pub(crate) fn head_limits_of_app(&self) -> HeadLimits {
        HeadLimits::outer(self.head_size_at_most())
    }

    /// Before the owner's first word as much as any owner may allow: an activator hears of its settings
    /// first, and a head that it let through must not be refused here.
    fn head_size_at_most(&self) -> HeadSizeLimit {
        if self.version.get().is_none() { HeadSizeLimit::MAX } else { self.head_size.get() }
    }

    /// Whether the owner has named keys by which its hops prove themselves.
    pub(crate) fn has_hop_keys(&self) -> bool {
        !self.hop_keys.borrow().is_empty()
    }

    /// Whether a request proves that one of our own hops sent it.
    pub(crate) fn has_valid_hop_key(&self, headers: &HeaderMap) -> bool {
        let Some(given) = headers.get(names::EBB_HOP_KEY) else { return false };
        self.hop_keys.borrow().iter().any(|key| is_same(key.expose().as_bytes(), given.as_bytes()))
    }
}

/// Takes the same time wherever the first difference is, so that a key cannot be guessed byte by byte.
fn is_same(key: &[u8], given: &[u8]) -> bool {
    key.len() == given.len() && key.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests;
