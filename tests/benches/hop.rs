//! What the queue-proxy costs as a hop, beside HAProxy, nginx and the smallest proxy of hyper: CPU time per
//! request, latency.
//!
//! `cargo bench -p tests --bench hop`. In each round each contestant forwards the same load to the same app;
//! HAProxy takes part twice. `--only h2c` or `--only 64x12B` measure a part. An executable of another version
//! in `$EBB_FORMER_EXECUTABLE` takes part too, and this one may cost no more than that. What the proxies hold
//! of the memory is the benchmark `memory`.

mod hop {
    pub(super) mod cells;
}

use tests::bench::{Options, Report, machine};

use hop::cells;

fn main() -> anyhow::Result<()> {
    let options = Options::read();
    machine::require(&[
        ("wrk", "wrk"),
        ("h2load", "nghttp2-client"),
        ("haproxy", "haproxy"),
        ("nginx", "nginx"),
    ])?;
    machine::raise_open_files()?;
    let mut report = Report::new("hop", options.quick, options.rounds(10, 1));
    let bars = cells::measure(&options, &mut report)?;
    if let Some(path) = &options.svg {
        tests::bench::plot::bars(path, "CPU time per request, HAProxy = 1", &bars, Some(1.0))?;
    }
    report.finish(options.json.as_deref())
}
