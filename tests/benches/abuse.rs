//! What hostile peers cost: memory, CPU time, and what honest clients beside them notice; before HAProxy
//! under the same attack.
//!
//! `cargo bench -p tests --bench abuse`. Each attack meets each contestant as a fresh process that has the
//! first core for itself. The attacker is this program once more, on the other cores and with the lowest
//! priority, so that honest clients and the app do not have to wait for it; every attack is limited in count
//! and ends by itself. `--only cancels` or `--only activator` measure a part. One queue-proxy more has the
//! memory of its container, and has to live. A goal that is missed fails the program, but in its short form.

mod abuse {
    pub(super) mod attacker;
    pub(super) mod attacks;
    pub(super) mod contestants;
    pub(super) mod frames;
    pub(super) mod heads;
    pub(super) mod hogs;
    pub(super) mod honest;
    pub(super) mod hostile;
    pub(super) mod pages;
    pub(super) mod texts;
    pub(super) mod turns;
}

use tests::bench::{Options, Report, machine};

use abuse::{attacker, turns};

fn main() -> anyhow::Result<()> {
    if attacker::carry_out_order()? {
        return Ok(());
    }
    let options = Options::read();
    machine::require(&[("haproxy", "haproxy"), ("nice", "coreutils")])?;
    machine::raise_open_files()?;
    let mut report = Report::new("abuse", options.quick, options.rounds(1, 1));
    turns::measure(&options, &mut report)?;
    report.finish(options.json.as_deref())?;
    report.require_goals()
}
