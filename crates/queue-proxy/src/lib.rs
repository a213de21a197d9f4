//! The proxy beside each pod: may this request run now, and what is this pod's load?
//!
//! One process, one thread. It knows its app and nothing else: no Kubernetes, no autoscaler's address, no
//! other pod. The autoscaler calls it (`link`), requests come to it (`stack`), and it asks its app whether
//! that is well (`health`).

mod adopted;
mod app_life;
mod config;
mod gateways;
mod health;
mod link;
mod load;
mod metrics;
mod own_peers;
mod pages;
mod process;
mod settings;
mod stack;
mod stat;
mod usage;
#[cfg(test)]
mod vectors;

pub use config::{
    AppProbes, AppUsageSource, Config, PortAudience, Ports, QueueProxyPlace, ReadinessJudge, ShadowingHeaders,
};
pub use health::AppFailure;
pub use process::{BoundProxy, ProcessEnd, bind};
pub use stat::Stat;

use std::process::ExitCode;

use anyhow::Context;
use runtime::{
    Clock, Colours, EXIT_BAD_CONFIG, Environment, LogFormat, StopRequests, print_error,
    raise_descriptor_limit, start_logs,
};
use tokio::runtime::{Builder, LocalOptions};
use vocabulary::CheckedValue;

/// The app's liveness probe failed.
pub const EXIT_LIVENESS_FAILED: u8 = 71;
/// The app's startup probe did not pass in time.
pub const EXIT_STARTUP_FAILED: u8 = 72;
/// A second request to stop came during the drain, or something broke.
pub const EXIT_FAILED: u8 = 1;

/// What `ebb queue-proxy` and `ebb-queue-proxy` do: run with this process's environment until asked to stop.
pub fn main_from_env() -> ExitCode {
    let environment: Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    main(&environment)
}

/// Runs a queue-proxy, configured by `environment`, to its end.
pub fn main(environment: &Environment) -> ExitCode {
    let CheckedValue { value: config, warnings } = match Config::read(environment) {
        Ok(checked) => checked,
        Err(problems) => {
            problems.into_iter().for_each(print_error);
            return ExitCode::from(EXIT_BAD_CONFIG);
        }
    };
    if let Err(error) = start_logs(LogFormat::Text, &config.log, Colours::Off) {
        print_error(format_args!("{error:#}"));
        return ExitCode::from(EXIT_BAD_CONFIG);
    }
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    raise_descriptor_limit();
    match run(config) {
        Ok(ProcessEnd::Drained) => ExitCode::SUCCESS,
        Ok(ProcessEnd::Unhealthy(unhealthy @ AppFailure::Liveness { .. })) => {
            tracing::error!("{unhealthy}");
            ExitCode::from(EXIT_LIVENESS_FAILED)
        }
        Ok(ProcessEnd::Unhealthy(unhealthy @ AppFailure::Startup { .. })) => {
            tracing::error!("{unhealthy}");
            ExitCode::from(EXIT_STARTUP_FAILED)
        }
        Ok(ProcessEnd::Hurried) => ExitCode::from(EXIT_FAILED),
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn run(config: Config) -> anyhow::Result<ProcessEnd> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_io_events_per_tick(dataplane::IO_EVENTS_PER_TICK)
        .build_local(LocalOptions::default())
        .context("starting the runtime")?;
    runtime.block_on(async {
        let stop = StopRequests::listen()?;
        let bound = bind(config, Clock::start())?;
        bound.announce();
        Ok(bound.run(stop).await)
    })
}
