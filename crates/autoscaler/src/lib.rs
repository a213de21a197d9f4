//! The control loop: how many pods, who serves, which activators.
//!
//! One task owns an [`orchestration::Orchestrator`], which knows and decides. Facts reach it from the platform and from links; what it decides
//! leaves as orders to the platform, assignments to activators and settings to queue-proxies. Nobody else decides anything, and nothing
//! that a pod sends can stop it: every link has a task of its own, which is cut off when it misbehaves.
//!
//! It knows neither Kubernetes nor processes: [`Autoscaler::start`] takes an `Arc<dyn Platform>`.

mod api;
pub mod api_types;
mod event_loop;
mod links;
mod metrics;
mod views;

use std::sync::Arc;

use axum::Router;
use link::Dial;
pub use orchestration::ActivatorChoice;
use platform::Platform;
use runtime::{Clock, vital};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vocabulary::ReplicaName;

use crate::api::ApiHandle;
use crate::event_loop::EventLoop;
pub use crate::metrics::Metrics;

/// What an autoscaler needs to know before it knows anything.
#[derive(Clone, Debug)]
pub struct AutoscalerConfig {
    /// Its name among autoscalers: to activators a new link of the same name replaces its former one.
    pub name: ReplicaName,
    /// The process's clock.
    pub clock: Clock,
    /// Registered once per process; an autoscaler that is rebuilt goes on counting in the same.
    pub metrics: Metrics,
    /// What reaches the addresses that the platform names.
    pub dialler: Arc<dyn Dial>,
    /// Which activators serve a revision.
    pub choice: ActivatorChoice,
}

/// A running autoscaler. Dropping it without [`Autoscaler::stop`] stops it too, but waits for nothing.
#[derive(Debug)]
pub struct Autoscaler {
    api: ApiHandle,
    stop: CancellationToken,
    event_loop: JoinHandle<()>,
}

impl Autoscaler {
    /// Starts on the current tokio runtime and subscribes to the platform, which ends any earlier subscription.
    pub fn start(config: AutoscalerConfig, platform: Arc<dyn Platform>) -> Self {
        let stop = CancellationToken::new();
        let (api, queries) = ApiHandle::new();
        let event_loop = EventLoop::new(config, platform, stop.clone());
        Self {
            api,
            stop,
            event_loop: tokio::spawn(vital("the autoscaler's event loop", event_loop.run(queries))),
        }
    }

    /// Its HTTP API, version 1; see [`api_types`]. Answers 503 once the autoscaler has stopped.
    pub fn router(&self) -> Router {
        api::router(self.api.clone())
    }

    /// Ends all links and joins every task. Pods and activators go on with what they know.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Err(error) = (&mut self.event_loop).await {
            tracing::error!(error = &error as &dyn std::error::Error, "the event loop did not end well");
        }
    }
}

impl Drop for Autoscaler {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests;
