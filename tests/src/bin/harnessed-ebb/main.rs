//! `ebb`, but for what a test has put around its autoscalers: links lead through a relay if
//! [`relay::VARIABLE`] names one, and if [`grip::VARIABLE`] names a test, that holds them still and kills
//! them.
//!
//! A program of its own, so that the product has no way in that only tests need.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use autoscaler::{Autoscaler, AutoscalerConfig};
use platform::Platform;
use tests::grip::{self, GrippedAutoscalers};
use tests::relay::{self, RelayDialler};

static GRIPPED: OnceLock<Arc<GrippedAutoscalers>> = OnceLock::new();

fn main() -> ExitCode {
    ebb::main(std::env::args_os(), start)
}

fn start(mut config: AutoscalerConfig, platform: Arc<dyn Platform>) -> Autoscaler {
    if let Ok(address) = std::env::var(relay::VARIABLE) {
        let relay = address.parse().expect("the harness names an address");
        config.dialler = Arc::new(RelayDialler { relay });
    }
    match std::env::var(grip::VARIABLE) {
        Ok(address) => GRIPPED.get_or_init(|| GrippedAutoscalers::connect(&address)).start(config, platform),
        Err(_) => Autoscaler::start(config, platform),
    }
}
