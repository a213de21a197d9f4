//! The control loop: how many pods, which addresses serve, which activators.
//!
//! One task owns an [`orchestration::Orchestrator`], which knows and decides. Facts reach it from the
//! platform and from links; what it decides leaves as orders to the platform, assignments to activators and
//! settings to queue-proxies. No other part decides anything, and nothing that a pod sends can stop it: every
//! link has a task of its own, which is cut off when it misbehaves.
//!
//! It knows neither Kubernetes nor processes: [`Autoscaler::start`] takes an `Arc<dyn Platform>`.

mod api;
pub mod api_types;
mod caller_memory;
mod config;
mod demand_series;
mod event_loop;
mod history_keeper;
mod history_store;
mod history_write;
mod http_exchange;
mod links;
mod metric_sources;
mod metrics;
mod pages;
mod recorder;
mod run_record;
mod shelf_import;
mod shelf_keeper;
mod shelf_write;
mod snapshot;
mod stat_desk;
mod stat_server;
mod views;
mod wall_second;
mod zones;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
pub use orchestration::ActivatorChoice;
use platform::Platform;
use runtime::vital;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::ApiHandle;
pub use crate::api::{page_kind, refusal};
pub use crate::config::{AutoscalerConfig, HistorySource, RecordChoice, RecordTarget};
use crate::event_loop::EventLoop;
pub use crate::history_store::{HistoryStore, UnclaimedHistories};
pub use crate::metrics::AutoscalerMetrics;
pub use crate::pages::{PageServer, metrics_router, only_port_forwards, refuse_foreign};
use crate::snapshot::snapshots;
pub use crate::stat_desk::StatDesk;
pub use crate::stat_server::StatServer;

/// How long an autoscaler may take to end: its links are closed in milliseconds.
const STOP_MAX: Duration = Duration::from_secs(5);

/// A running autoscaler. Dropping it without [`Autoscaler::stop`] stops it too, but waits for nothing.
#[derive(Debug)]
pub struct Autoscaler {
    api: ApiHandle,
    stop: CancellationToken,
    event_loop: JoinHandle<()>,
}

impl Autoscaler {
    /// Starts on the current tokio runtime and subscribes to the platform, which ends any earlier
    /// subscription of its name.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a caller that wraps the platform for an autoscaler keeps the wrapped one here"
    )]
    pub fn start(config: AutoscalerConfig, platform: Arc<dyn Platform>) -> Self {
        let stop = CancellationToken::new();
        let (writer, reader) = snapshots(config.name.clone(), config.clock);
        config.metrics.show(reader.clone());
        let name = config.name.clone();
        let event_loop = EventLoop::new(config, &*platform, writer, stop.clone());
        let (api, calls) = ApiHandle::new(name, reader, event_loop.record_folder());
        Self {
            api,
            stop,
            event_loop: tokio::spawn(vital("the autoscaler's event loop", event_loop.run(calls))),
        }
    }

    /// Its HTTP API, version 1; see [`api_types`]. Answers 503 once the autoscaler has stopped.
    pub fn router(&self) -> Router {
        Self::router_of([self])
    }

    /// The same for several of one platform, as if they were one.
    pub fn router_of<'a>(autoscalers: impl IntoIterator<Item = &'a Self>) -> Router {
        api::router(autoscalers.into_iter().map(|autoscaler| autoscaler.api.clone()).collect())
    }

    /// The page at which a person tells these autoscalers of a past that was measured elsewhere; see
    /// [`api_types::DemandView`]. For a program that asks each client who it is: the past raises counts.
    pub fn imports_of<'a>(autoscalers: impl IntoIterator<Item = &'a Self>) -> Router {
        api::imports(autoscalers.into_iter().map(|autoscaler| autoscaler.api.clone()).collect())
    }

    /// Ends all links, joins every task and gives up what it owns. Pods and activators go on with what they
    /// know. One that hangs is left to itself after a while: the next one takes its place at the
    /// platform.
    pub async fn stop(mut self) {
        self.stop.cancel();
        match tokio::time::timeout(STOP_MAX, &mut self.event_loop).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the task of the event loop failed before its end"
                );
            }
            Err(_) => {
                self.event_loop.abort();
                tracing::error!("the event loop did not end within {} s and was aborted", STOP_MAX.as_secs());
            }
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
