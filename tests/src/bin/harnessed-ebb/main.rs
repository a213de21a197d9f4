//! `ebb`, but for what a test has put around its autoscaler: links lead through a relay if [`relay::VARIABLE`] names one.
//!
//! A program of its own, so that the product has no way in that only tests need.

use std::process::ExitCode;
use std::sync::Arc;

use autoscaler::{Autoscaler, AutoscalerConfig};
use platform::Platform;
use tests::relay::{self, RelayDialler};

fn main() -> ExitCode {
    ebb::main(std::env::args_os(), start)
}

fn start(config: AutoscalerConfig, platform: Arc<dyn Platform>) -> Autoscaler {
    match std::env::var(relay::VARIABLE) {
        Ok(address) => {
            let relay = address.parse().expect("the harness names an address");
            let dialler = Arc::new(RelayDialler { relay });
            Autoscaler::start(AutoscalerConfig { dialler, ..config }, platform)
        }
        Err(_) => Autoscaler::start(config, platform),
    }
}
