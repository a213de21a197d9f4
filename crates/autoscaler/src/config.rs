//! What an autoscaler is told at its start, by the program that it runs in.

use std::sync::Arc;

use link::Dial;
use orchestration::ActivatorChoice;
use runtime::Clock;
use vocabulary::ReplicaName;

use crate::metrics::AutoscalerMetrics;

/// What an autoscaler needs to know before it knows anything.
#[derive(Clone, Debug)]
pub struct AutoscalerConfig {
    /// Its name among autoscalers: to activators a new link of the same name replaces its former one.
    pub name: ReplicaName,
    /// The clock of the process, by which deadlines and ages count.
    pub clock: Clock,
    /// Registered once per process; an autoscaler that is rebuilt goes on counting in the same.
    pub metrics: AutoscalerMetrics,
    /// What reaches the addresses that the platform names.
    pub dialler: Arc<dyn Dial>,
    /// Which activators serve a revision.
    pub choice: ActivatorChoice,
}
