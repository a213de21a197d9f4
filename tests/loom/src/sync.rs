//! What `sync` is in the crates whose files are tried here, of loom.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use loom::sync::Mutex;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Loom's takes its wakers as they are, the other one by reference.
#[derive(Debug, Default)]
pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

impl AtomicWaker {
    pub(crate) fn register(&self, waker: &Waker) {
        self.0.register_by_ref(waker);
    }

    pub(crate) fn wake(&self) {
        self.0.wake();
    }
}

/// Tokio's as far as it is used: who asked before a call is woken by it, and sees what came before it. As
/// there, only the count of calls ties who asks to who called; the lock is for those who sleep.
#[derive(Debug)]
pub(crate) struct Notify {
    calls: AtomicUsize,
    asleep: Mutex<Vec<Waker>>,
}

impl Notify {
    pub(crate) fn new() -> Self {
        Self { calls: AtomicUsize::new(0), asleep: Mutex::new(Vec::new()) }
    }

    pub(crate) fn notified(&self) -> Notified<'_> {
        Notified { notify: self, calls: self.calls.load(Ordering::SeqCst) }
    }

    pub(crate) fn notify_waiters(&self) {
        let woken = {
            let mut asleep = self.asleep.lock().expect("nobody panics");
            self.calls.fetch_add(1, Ordering::SeqCst);
            std::mem::take(&mut *asleep)
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

#[derive(Debug)]
pub(crate) struct Notified<'n> {
    notify: &'n Notify,
    calls: usize,
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut asleep = self.notify.asleep.lock().expect("nobody panics");
        if self.notify.calls.load(Ordering::SeqCst) != self.calls {
            return Poll::Ready(());
        }
        asleep.push(context.waker().clone());
        Poll::Pending
    }
}
