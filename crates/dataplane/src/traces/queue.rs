//! Which spans wait to be sent? A bounded queue of one thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use tokio::sync::Notify;

use super::otlp::SpanRecord;

/// How many spans wait at most; OpenTelemetry's number. With the texts that a span keeps they take a few
/// megabytes.
pub(super) const SPANS_MAX: usize = 2048;
/// How many are sent together; OpenTelemetry's number.
const BATCH_MAX: usize = 512;

#[derive(Default)]
pub(super) struct SpanQueue {
    spans: RefCell<VecDeque<SpanRecord>>,
    /// How many spans were taken out and are on their way.
    on_their_way: Cell<usize>,
    /// There is something to send.
    pub(super) begun: Notify,
    /// There is a whole batch, or a flush waits for the rest.
    pub(super) full: Notify,
    /// No span waits and none is on its way.
    pub(super) emptied: Notify,
}

impl SpanQueue {
    /// Adds a span. Returns `false` if the queue is full and the span is lost.
    pub(super) fn push(&self, span: SpanRecord) -> bool {
        let mut spans = self.spans.borrow_mut();
        if spans.len() >= SPANS_MAX {
            return false;
        }
        spans.push_back(span);
        match spans.len() {
            1 => self.begun.notify_one(),
            BATCH_MAX => self.full.notify_one(),
            _ => {}
        }
        true
    }

    /// The oldest, as many as are sent together.
    pub(super) fn take_batch(&self) -> Option<Vec<SpanRecord>> {
        let mut spans = self.spans.borrow_mut();
        let count = spans.len().min(BATCH_MAX);
        self.on_their_way.set(count);
        (count > 0).then(|| spans.drain(..count).collect())
    }

    /// Notes that `count` spans have arrived, or were given up.
    pub(super) fn delivered(&self, count: usize) {
        self.on_their_way.set(self.on_their_way.get().saturating_sub(count));
        if self.is_empty() {
            self.emptied.notify_one();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.on_their_way.get() == 0 && self.spans.borrow().is_empty()
    }
}
