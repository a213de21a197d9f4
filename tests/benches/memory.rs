//! What do the proxies hold of the memory: idle, with requests in flight, and afterwards?
//!
//! `cargo bench -p tests --bench memory`. Five parts, by the names that `--only` takes: `queue-proxy of one
//! machine`, `queue-proxy of the image` and `HAProxy`, each before the same app; `pod`, the processes of an
//! idle pod of `ebb up`; and `activator`, in which requests wait for their answers.
//!
//! The queue-proxy of the image is `$EBB_QUEUE_PROXY_EXECUTABLE`, else what `cargo xtask images` has left in
//! cargo's folder. Where there is none, that part is left out, and a note says so.
//!
//! Resident memory has the pages of the executable that all processes of a machine share; private memory has
//! only those that no other process has. Both are what `smaps_rollup` says, in MB of 10^6 bytes.

mod memory {
    pub(super) mod held_requests;
    pub(super) mod one_machine;
    pub(super) mod proxies;
}

use tests::bench::{Options, Report, machine};

use memory::{one_machine, proxies};

fn main() -> anyhow::Result<()> {
    let options = Options::read();
    machine::require(&[("wrk", "wrk"), ("haproxy", "haproxy")])?;
    machine::raise_open_files()?;
    // Memory does not differ from turn to turn as times do: each has one.
    let mut report = Report::new("memory", options.quick, 1);
    proxies::measure(&options, &mut report)?;
    if options.includes("pod") {
        one_machine::measure_pod(&options, &mut report)?;
    }
    if options.includes("activator") {
        one_machine::measure_activator(&options, &mut report)?;
    }
    report.finish(options.json.as_deref())
}
