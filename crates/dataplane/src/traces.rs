//! What becomes of one request on its whole way, hop by hop: OpenTelemetry's traces.
//!
//! A trace is begun by the client or by our first hop; `traceparent` hands it on, to the app too. Each hop
//! that the request passes adds one [`Span`]. The first hop decides by the share that is asked for which
//! traces are kept, and says so in the header: later hops keep to that decision.
//!
//! Each thread has a [`Tracer`] of its own, with its own queue and its own connection to the collector:
//! nothing is locked, and a request never waits for its trace. What the queue has no room for, or the
//! collector does not take, is dropped and counted. Without settings, a request costs one branch.

mod context;
mod counts;
mod delivery;
mod otlp;
mod queue;
mod span;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use runtime::{Clock, SampleRate, TraceEndpoint, TracePlan, new_seed};
use tokio_util::sync::CancellationToken;
use vocabulary::Timestamp;

use crate::upstream::{UpstreamLimits, Upstreams};
use otlp::{AttributeValue, KeyValue, Resource, SpanRecord};
use queue::SpanQueue;

pub use counts::SpanCounts;
pub use span::{Attribute, Span};

/// How many connections one thread has to the collector: batches are sent one after another.
const CONNECTIONS_MAX: usize = 2;

/// Traces the requests of one thread. Clones share everything.
#[derive(Clone)]
pub struct Tracer(Rc<TracerState>);

struct TracerState {
    clock: Clock,
    /// `None` while there are no traces.
    sampling: Cell<Option<SampleRate>>,
    endpoint: RefCell<Option<Rc<TraceEndpoint>>>,
    random: RefCell<StdRng>,
    program: Resource,
    queue: SpanQueue,
    counts: SpanCounts,
    upstreams: Upstreams,
    is_failing: Cell<bool>,
    /// Cancelled when the process ends: a batch that fails then is not sent again.
    ending: CancellationToken,
}

impl Tracer {
    /// A tracer without settings. `program` is what OpenTelemetry calls the resource: attributes of
    /// everything that it tells, `service.name` among them.
    pub fn new(clock: Clock, program: &[(&str, &str)], counts: SpanCounts) -> Self {
        let said = program.iter().filter(|(_, value)| !value.is_empty());
        let attributes =
            said.map(|(key, value)| KeyValue::new(key, AttributeValue::Text((*value).to_owned())));
        let limits = UpstreamLimits { connections_per_address: CONNECTIONS_MAX, ..UpstreamLimits::default() };
        Self(Rc::new(TracerState {
            clock,
            sampling: Cell::default(),
            endpoint: RefCell::default(),
            random: RefCell::new(StdRng::from_seed(new_seed())),
            program: Resource { attributes: attributes.collect() },
            queue: SpanQueue::default(),
            counts,
            upstreams: Upstreams::new(clock, limits),
            is_failing: Cell::default(),
            ending: CancellationToken::new(),
        }))
    }

    /// Applies settings: from now on spans are sampled by the plan's rate and sent to its endpoint. `None`
    /// ends the traces.
    pub fn follow(&self, plan: Option<&TracePlan>) {
        self.0.sampling.set(plan.map(|plan| plan.sampling));
        *self.0.endpoint.borrow_mut() = plan.map(|plan| Rc::new(plan.endpoint.clone()));
    }

    fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Queues a span that has ended; counts the span as dropped if the queue is full.
    fn keep(&self, record: SpanRecord) {
        if !self.0.queue.push(record) {
            self.0.counts.without_room();
        }
    }
}

#[cfg(test)]
mod tests;
