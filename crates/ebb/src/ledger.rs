//! `ebb ledger`: what the pods of each revision came to, and what another least count would have cost.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use autoscaler::api_types::{ColdStartsView, LedgerList, LedgerView, PodSecondsView};
use vocabulary::RevisionName;

use crate::autoscaler_api::AutoscalerApi;
use crate::cli::{LedgerOptions, OutputFormat};
use crate::get::choose_name;
use crate::output::{self, DAY_SECONDS, span};

pub(crate) fn run(options: &LedgerOptions) -> anyhow::Result<ExitCode> {
    let mut list = crate::up::runtime()?
        .block_on(async { AutoscalerApi::find(&options.target).await?.ledger(options.since).await })?;
    if let Some(wanted) = &options.revision {
        let names: Vec<&RevisionName> = list.revisions.iter().map(|ledger| &ledger.name).collect();
        let chosen = choose_name(&names, wanted)?.clone();
        list.revisions.retain(|ledger| ledger.name == chosen);
    }
    let width = match options.target.output {
        OutputFormat::Json => return output::print_json(&list).map(|()| ExitCode::SUCCESS),
        OutputFormat::Wide => usize::MAX,
        OutputFormat::Table => output::width(),
    };
    let text = match (&options.revision, list.revisions.first()) {
        (Some(_), Some(ledger)) => details(ledger, list.currency.as_deref()),
        (Some(_), None) | (None, _) => overview(&list),
    };
    let lines: Vec<String> = text.lines().map(|line| output::cut(line.trim_end(), width)).collect();
    output::print_shown(&lines.join("\n"))?;
    for name in &list.unanswered {
        output::print_warning(&format!("{name} does not answer; what it decides about may be missing here"));
    }
    Ok(ExitCode::SUCCESS)
}

/// One line for each revision.
fn overview(list: &LedgerList) -> String {
    if list.revisions.is_empty() {
        return "there is no revision".to_owned();
    }
    let mut table = output::table(&[
        "NAME",
        "MEASURED",
        "POD-HOURS",
        "BUSY",
        "COST",
        "COLD STARTS",
        "WAITED",
        "MIN-SCALE",
        "ADVICE",
    ]);
    for ledger in &list.revisions {
        let pods = pod_seconds(&ledger.pod_seconds);
        table.add_row(vec![
            ledger.name.to_string(),
            span(ledger.seconds),
            hours(pods),
            percent(ledger.pod_seconds.busy, pods),
            money(ledger.cost, list.currency.as_deref()),
            cold_starts(&ledger.cold_starts).to_string(),
            ledger.waited.to_string(),
            ledger.min_scale.to_string(),
            ledger.advice.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.to_string()
}

/// Everything that the ledger of one revision says.
fn details(ledger: &LedgerView, currency: Option<&str>) -> String {
    let LedgerView { name, seconds, first_ms_ago, .. } = ledger;
    if *seconds == 0 {
        return format!("{name} was not used in this time");
    }
    let mut text =
        format!("{name}, measured for {} since {} ago\n", span(*seconds), span(first_ms_ago / 1000));
    let PodSecondsView { starting, busy, idle, ending } = ledger.pod_seconds;
    let pods = hours(pod_seconds(&ledger.pod_seconds));
    let [starting, busy, idle, ending] = [starting, busy, idle, ending].map(hours);
    let mut line = |heading: &str, value: &str| {
        // A String takes whatever is written to it.
        let _ = writeln!(text, "{heading:<12} {value}");
    };
    line("pod-hours", &format!("{pods}: {starting} starting, {busy} busy, {idle} idle, {ending} ending"));
    if let Some(price) = ledger.pod_price {
        let (cost, price) = (money(ledger.cost, currency), money(Some(price), currency));
        line("cost", &format!("{cost}, at {price} for an hour of a pod"));
    }
    line("requests", &requests(ledger));
    line("cold starts", &starts(ledger));
    text.push_str(&alternatives(ledger, currency));
    if let Some(advice) = &ledger.advice {
        let _ = write!(text, "\n{advice}");
    }
    text
}

/// "1234, of which at least 5 waited, 9s together".
fn requests(ledger: &LedgerView) -> String {
    let LedgerView { requests, waited, waiting_seconds, .. } = ledger;
    match waited {
        0 => format!("{requests:.0}, of which none was seen to wait"),
        _ => format!("{requests:.0}, of which at least {waited} waited, {} together", span(*waiting_seconds)),
    }
}

/// "10: 4 from zero (1.9 s on average, 2.5 s at most), 3 growth, 2 rollout, 1 failed pod".
fn starts(ledger: &LedgerView) -> String {
    let ColdStartsView { from_zero, growth, rollout, failed_pod } = ledger.cold_starts;
    let mean = ledger.cold_start_wait_ms.checked_div(ledger.cold_starts_ended);
    let waits = mean.map(|mean| {
        let [mean, longest] = [mean, ledger.cold_start_wait_ms_max]
            .map(|milliseconds| Duration::from_millis(milliseconds).as_secs_f64());
        format!(" ({mean:.1} s on average, {longest:.1} s at most)")
    });
    format!(
        "{}: {from_zero} from zero{}, {growth} growth, {rollout} rollout, {failed_pod} failed pod",
        cold_starts(&ledger.cold_starts),
        waits.unwrap_or_default()
    )
}

/// What each other least count would have brought.
fn alternatives(ledger: &LedgerView, currency: Option<&str>) -> String {
    let mut table =
        output::table(&["MIN-SCALE", "POD-HOURS MORE", "A DAY", "COLD STARTS AVOIDED", "COST MORE"]);
    let greater = || ledger.what_if.iter().filter(|row| row.min_scale > ledger.min_scale);
    if greater().next().is_none() {
        return String::new();
    }
    for row in greater() {
        let a_day = u128::from(row.extra_pod_seconds) * u128::from(DAY_SECONDS) / u128::from(ledger.seconds);
        table.add_row(vec![
            row.min_scale.to_string(),
            hours(row.extra_pod_seconds),
            hours(u64::try_from(a_day).unwrap_or(u64::MAX)),
            row.avoided_cold_starts.to_string(),
            money(row.extra_cost, currency),
        ]);
    }
    table.to_string()
}

fn pod_seconds(seconds: &PodSecondsView) -> u64 {
    let PodSecondsView { starting, busy, idle, ending } = seconds;
    starting + busy + idle + ending
}

fn cold_starts(starts: &ColdStartsView) -> u64 {
    let ColdStartsView { from_zero, growth, rollout, failed_pod } = starts;
    from_zero + growth + rollout + failed_pod
}

/// Seconds as hours, to a tenth.
fn hours(seconds: u64) -> String {
    format!("{:.1}", Duration::from_secs(seconds).as_secs_f64() / 3600.0)
}

/// A part in whole percents, or a dash for a part of nothing.
fn percent(part: u64, whole: u64) -> String {
    let percent = part.saturating_mul(100).checked_div(whole);
    percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent}%"))
}

/// An amount of money in as many decimals as show what it is, or a dash for none.
fn money(amount: Option<f64>, currency: Option<&str>) -> String {
    match (amount, currency) {
        (Some(amount), Some(currency)) if amount >= 1.0 => format!("{amount:.2} {currency}"),
        (Some(amount), Some(currency)) => format!("{amount:.4} {currency}"),
        (Some(_), None) | (None, _) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use autoscaler::api_types::WhatIfView;
    use vocabulary::PodCount;

    use super::*;

    fn ledger() -> LedgerView {
        let row = |min_scale, extra_pod_seconds, avoided_cold_starts| WhatIfView {
            min_scale: PodCount::new(min_scale),
            extra_pod_seconds,
            avoided_cold_starts,
            extra_cost: Some(1.234),
        };
        LedgerView {
            name: RevisionName::parse("default/service/hello").expect("a name"),
            owner: None,
            min_scale: PodCount::ZERO,
            first_ms_ago: 604_000_000,
            seconds: 600_000,
            pod_seconds: PodSecondsView { starting: 360, busy: 3600, idle: 7200, ending: 36 },
            cold_starts: ColdStartsView { from_zero: 4, growth: 3, rollout: 2, failed_pod: 1 },
            cold_starts_ended: 4,
            cold_start_wait_ms: 7600,
            cold_start_wait_ms_max: 2500,
            requests: 1234.0,
            waited: 5,
            waiting_seconds: 9,
            pod_price: Some(0.03),
            cost: Some(0.0933),
            what_if: vec![row(0, 0, 0), row(1, 577_500, 4)],
            cold_start_worth_ms: 1_200_000,
            advised_min_scale: Some(PodCount::ZERO),
            advice: Some("min-scale 1 costs 23.1 pod-hours a day more: keep 0".to_owned()),
        }
    }

    #[test]
    fn the_ledger_of_one_revision_has_all_its_numbers() {
        let text = details(&ledger(), Some("USD"));
        for expected in [
            "default/service/hello, measured for 6d22h since 6d23h ago",
            "pod-hours    3.1: 0.1 starting, 1.0 busy, 2.0 idle, 0.0 ending",
            "cost         0.0933 USD, at 0.0300 USD for an hour of a pod",
            "requests     1234, of which at least 5 waited, 9s together",
            "cold starts  10: 4 from zero (1.9 s on average, 2.5 s at most), 3 growth, 2 rollout, 1 failed",
            "MIN-SCALE  POD-HOURS MORE  A DAY  COLD STARTS AVOIDED  COST MORE",
            "1          160.4           23.1   4                    1.23 USD",
            "\nmin-scale 1 costs 23.1 pod-hours a day more: keep 0",
        ] {
            assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
        }
        let unused = LedgerView { seconds: 0, ..ledger() };
        assert_eq!(details(&unused, None), "default/service/hello was not used in this time");
    }

    #[test]
    fn the_overview_has_a_line_for_each_revision() {
        let list = LedgerList { revisions: vec![ledger()], ..LedgerList::default() };
        let text = overview(&list);
        let line = text.lines().nth(1).expect("one revision");
        for expected in ["default/service/hello", "6d22h", " 3.1 ", " 32% ", " - ", " 10 ", " 5 ", "keep 0"] {
            assert!(line.contains(expected), "{expected:?} is missing in\n{text}");
        }
        assert_eq!(overview(&LedgerList::default()), "there is no revision");
    }
}
