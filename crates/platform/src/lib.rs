//! Where pods live: the one seam that is chosen at start. A platform tells facts ([`PlatformFact`]) and takes orders ([`PlatformOrder`]); the
//! autoscaler holds an `Arc<dyn Platform>` and knows neither Kubernetes nor processes. Facts and orders are `orchestration`'s words: what it
//! must know, and what it wants done.

use tokio::sync::mpsc;

pub use orchestration::{PlatformFact, PlatformOrder};

/// What runs the pods.
pub trait Platform: Send + Sync + 'static {
    /// The facts: first everything that is, closed by [`PlatformFact::Synced`], then changes. A second call ends the former subscription (an autoscaler
    /// was rebuilt) and starts anew with everything that is; whatever the former subscriber still orders is refused.
    fn subscribe(&self) -> mpsc::Receiver<PlatformFact>;

    /// Gives an order. Never blocks. The latest about one subject wins; each ends in exactly one final [`PlatformFact::OrderEnded`], one that was replaced
    /// as superseded.
    fn execute(&self, order: PlatformOrder);
}
