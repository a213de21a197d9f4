//! The queue of one revision at an activator: a request waits until a pod has room.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Pods of a revision, and the requests that this activator has in them.
#[derive(Debug)]
pub(super) struct RevisionThrottler {
    /// The most requests in a pod; 0 means no limit.
    limit: u32,
    pods: Mutex<AssignedPods>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct AssignedPods {
    assigned: Vec<IpAddr>,
    in_flight: BTreeMap<IpAddr, u32>,
}

impl RevisionThrottler {
    pub(super) fn new(limit: u32) -> Arc<Self> {
        Arc::new(Self { limit, pods: Mutex::default(), changed: Notify::new() })
    }

    /// The most requests in a pod; 0 means no limit.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// The pods that take requests of this activator from now on.
    pub(super) fn assign(&self, pods: Vec<IpAddr>) {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner).assigned = pods;
        self.changed.notify_waiters();
    }

    /// Waits until a pod has room, and takes it.
    pub(super) async fn reserve(self: &Arc<Self>) -> PodReservation {
        loop {
            // Made before the look, so that no change is missed.
            let changed = self.changed.notified();
            if let Some(pod) = self.take() {
                return PodReservation { pod, throttler: Arc::clone(self) };
            }
            changed.await;
        }
    }

    fn take(&self) -> Option<IpAddr> {
        let mut pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        let AssignedPods { assigned, in_flight } = &mut *pods;
        let held = |pod: &IpAddr| in_flight.get(pod).copied().unwrap_or_default();
        let free = assigned.iter().filter(|pod| self.limit == 0 || held(pod) < self.limit);
        let pod = *free.min_by_key(|pod| held(pod))?;
        *in_flight.entry(pod).or_default() += 1;
        Some(pod)
    }

    fn give_back(&self, pod: IpAddr) {
        let mut pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = pods.in_flight.get_mut(&pod) {
            *held -= 1;
            if *held == 0 {
                pods.in_flight.remove(&pod);
            }
        }
        drop(pods);
        self.changed.notify_waiters();
    }
}

/// Room in a pod, until it is dropped.
#[derive(Debug)]
pub(super) struct PodReservation {
    pub(super) pod: IpAddr,
    throttler: Arc<RevisionThrottler>,
}

impl Drop for PodReservation {
    fn drop(&mut self) {
        self.throttler.give_back(self.pod);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[tokio::test]
    async fn a_request_waits_for_room_and_takes_the_emptiest_pod() {
        let throttler = RevisionThrottler::new(1);
        throttler.assign(vec![pod(1), pod(2)]);
        let first = throttler.reserve().await;
        let second = throttler.reserve().await;
        assert_ne!(first.pod, second.pod);
        let waiting = tokio::spawn({
            let throttler = Arc::clone(&throttler);
            async move { throttler.reserve().await.pod }
        });
        let freed = first.pod;
        drop(first);
        assert_eq!(waiting.await.expect("no panic"), freed);
    }

    #[tokio::test]
    async fn a_request_at_zero_waits_for_a_pod() {
        let throttler = RevisionThrottler::new(0);
        let waiting = tokio::spawn({
            let throttler = Arc::clone(&throttler);
            async move { throttler.reserve().await.pod }
        });
        throttler.assign(vec![pod(3)]);
        assert_eq!(waiting.await.expect("no panic"), pod(3));
    }
}
