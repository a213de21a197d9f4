//! When may a body that is held back flow?
//!
//! Two hops hold one back: the activator until a queue-proxy has a slot for its request, the queue-proxy
//! until the app asks for what its client keeps. Both wait for the same words, `100 Continue`, or for
//! a caller that knows better. Every order of opening and asking is tried by `tests/loom`.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::Extensions;

use crate::sync::{AtomicBool, AtomicWaker, Ordering};

/// Holds a body back until it is opened, for good. Clones are one gate. Atomic only because what travels with
/// a request must be sendable.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    is_open: AtomicBool,
    waker: AtomicWaker,
}

impl Gate {
    /// A gate that opens when an HTTP/1.1 peer sends `100 Continue` for the request with these extensions.
    /// HTTP/2 does not show us such answers.
    pub fn opened_by_continue(extensions: &mut Extensions) -> Self {
        let gate = Self::default();
        extensions.insert(gate.clone());
        gate
    }

    /// Opens the gate of the request with these extensions: the peer has sent `100 Continue` for it.
    pub(crate) fn open_of(extensions: &Extensions) {
        if let Some(gate) = extensions.get::<Self>() {
            gate.open();
        }
    }

    /// Lets the body flow, and wakes the task that waits for that.
    pub fn open(&self) {
        self.0.is_open.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Ready once it is open. The last task to ask is woken.
    pub fn poll_open(&self, context: &Context<'_>) -> Poll<()> {
        if self.0.is_open.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        self.0.waker.register(context.waker());
        // The gate may have opened between the look and the registration, and then no task was woken.
        if self.0.is_open.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::task::{ArcWake, waker};

    use super::*;

    #[derive(Default)]
    struct WakeFlag(AtomicBool);

    impl ArcWake for WakeFlag {
        fn wake_by_ref(woken: &Arc<Self>) {
            woken.0.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_gate_wakes_who_waits_and_stays_open() {
        let mut request = Extensions::new();
        let gate = Gate::opened_by_continue(&mut request);
        let woken = Arc::new(WakeFlag::default());
        let waker = waker(Arc::clone(&woken));
        let context = Context::from_waker(&waker);
        assert_eq!(gate.poll_open(&context), Poll::Pending);
        Gate::open_of(&Extensions::new());
        assert!(!woken.0.load(Ordering::SeqCst), "another request's peer said so");
        Gate::open_of(&request);
        assert!(woken.0.load(Ordering::SeqCst));
        assert_eq!(
            (gate.poll_open(&context), gate.clone().poll_open(&context)),
            (Poll::Ready(()), Poll::Ready(()))
        );
    }
}
