//! Metrics that only the platform can be asked for: what pods use where they do not say so themselves, and
//! numbers that others serve there.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use scaling::hpa::{MetricSamples, TargetPods};
use settings::hpa::HpaScaling;
use vocabulary::RevisionName;

/// What a platform is asked at one sync of a revision.
#[derive(Clone, Debug)]
pub struct MetricQuestion {
    /// The one whose metrics are asked for.
    pub revision: RevisionName,
    /// The checked document of class hpa, with the metrics that are asked for.
    pub settings: Arc<HpaScaling>,
    /// The places of the metrics that are wanted; there may be none, and only the pods matter.
    pub metrics: Vec<usize>,
    /// How long answers are waited for. A metric that is not answered by then has failed, and no other with
    /// it.
    pub within: Duration,
}

/// The answer to one [`MetricQuestion`].
#[derive(Clone, Debug, Default)]
pub struct MetricReply {
    /// The pods to which the samples belong; `None` if the platform does not know the revision any more.
    pub target: Option<TargetPods>,
    /// One for each metric that was wanted.
    pub answers: Vec<MetricAnswer>,
}

/// What came of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricAnswer {
    /// The metric's place in the document's list of metrics, from 0.
    pub metric: usize,
    /// What is known of it.
    pub samples: MetricSamples,
    /// How it was asked for; `None` if there was no way to ask.
    pub query: Option<String>,
    /// A number, or why there is none, for people.
    pub shown: String,
}

/// An answer that takes a while.
pub type MetricFuture<'a> = Pin<Box<dyn Future<Output = MetricReply> + Send + 'a>>;

/// A platform that answers questions about metrics.
pub trait MetricSource: Send + Sync {
    /// Asks; takes no longer than the question allows.
    fn ask(&self, question: MetricQuestion) -> MetricFuture<'_>;
}
