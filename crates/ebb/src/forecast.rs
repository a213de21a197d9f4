//! `ebb forecast`: what is expected of a revision in the next 24 hours, which rule is in force, and what the
//! last seven days were with prediction and without; and the past that this follows from, as a file.

mod past_file;
mod transfer;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use autoscaler::api_types::{ForecastHourView, ForecastView, PredictionView};
use vocabulary::format_duration;

use self::transfer::CPU;
use crate::autoscaler_api::AutoscalerApi;
use crate::cli::{ForecastOptions, OutputFormat};
use crate::get::choose;
use crate::output::{self, span};

/// The length of the greatest bar, in characters.
const BAR: u32 = 40;

pub(crate) fn run(options: &ForecastOptions) -> anyhow::Result<ExitCode> {
    crate::up::runtime()?.block_on(async {
        let api = AutoscalerApi::find(&options.target).await?;
        let list = api.revisions().await?;
        let name = &choose(&list, &options.revision)?.name;
        if options.past.export {
            let file = transfer::export(&api, name, &options.past).await?;
            output::print_line(file.trim_end())
        } else if let Some(file) = &options.past.import {
            let minutes = transfer::import(&api, name, &options.past, file).await?;
            output::print_line(&format!(
                "{name} remembers {minutes} measured minutes more; a rule may be in force from the next hour on"
            ))
        } else {
            show(&api.get(&format!("/v1/revisions/{name}/forecast")).await?, options.target.output)
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn show(forecast: &ForecastView, format: OutputFormat) -> anyhow::Result<()> {
    match format {
        OutputFormat::Json => output::print_json(forecast),
        OutputFormat::Table | OutputFormat::Wide => output::print_shown(text(forecast).trim_end()),
    }
}

fn text(forecast: &ForecastView) -> String {
    let mut text = format!("{}\n", forecast.name);
    let mut line = |heading: &str, value: &str| {
        // A String takes whatever is written to it.
        let _ = writeln!(text, "  {heading:<10} {value}");
    };
    let known = forecast.known_ms.map_or_else(|| "no demand".to_owned(), |known| span(known / 1000));
    line("prediction", &format!("{}; {known} remembered of 15d", forecast.mode));
    if let Some(prediction) = &forecast.prediction {
        let since = forecast.rule_ms.map(|since| format!(", since {} ago", span(since / 1000)));
        let ahead = forecast.look_ahead_ms.map_or_else(String::new, |ahead| {
            format!("; a pod is asked for {} before demand", span(ahead / 1000))
        });
        line("rule", &format!("{}{}{ahead}", prediction.rule, since.unwrap_or_default()));
    }
    if let Some(why_not) = &forecast.why_not {
        line("waits", why_not);
    }
    if let Some(prediction) = &forecast.prediction {
        for (heading, value) in last_days(prediction, forecast.cold_starts_avoided) {
            line(heading, &value);
        }
    }
    text.push_str(&hours(forecast));
    text
}

/// The last seven days with prediction and without.
fn last_days(prediction: &PredictionView, cold_starts_avoided: u32) -> [(&'static str, String); 3] {
    let pods = |seconds: u64| format_duration(Duration::from_secs(seconds));
    let (extra, used) = (prediction.extra_pod_seconds, prediction.used_pod_seconds);
    [
        (
            "late",
            format!(
                "{:.0} request-seconds in 7 days with prediction, {:.0} without",
                prediction.late_request_seconds, prediction.late_without_request_seconds
            ),
        ),
        (
            "cost",
            format!(
                "{} of pods added in 7 days: {} needed, {} not; {} left of the budget",
                pods(extra),
                pods(used),
                pods(extra.saturating_sub(used)),
                pods(prediction.budget_left_pod_seconds)
            ),
        ),
        ("warm", format!("{cold_starts_avoided} cold starts avoided in 24h")),
    ]
}

/// The hours that come, as a table with bars.
fn hours(forecast: &ForecastView) -> String {
    let Some(greatest) = forecast.hours.iter().filter_map(|hour| hour.high).reduce(f64::max) else {
        return "  next 24h   too few days are known\n".to_owned();
    };
    let unit = match forecast.metric.as_str() {
        "rps" => "REQUESTS/S",
        CPU => "CORES",
        _ => "IN FLIGHT",
    };
    let mut table = output::table(&["FROM", "USUAL", "HIGH", "PODS", unit]);
    for ForecastHourView { local_time, usual, high, pods, .. } in &forecast.hours {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        table.add_row(vec![
            local_time.clone(),
            number(*usual),
            number(*high),
            pods.map_or_else(|| "-".to_owned(), |pods| pods.to_string()),
            bar(usual.unwrap_or(0.0), high.unwrap_or(0.0), greatest),
        ]);
    }
    let lines: Vec<String> = table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    format!("\n{}\n", lines.join("\n"))
}

/// A bar up to what is usual, and a thinner one up to what is high.
fn bar(usual: f64, high: f64, greatest: f64) -> String {
    if greatest <= 0.0 {
        return String::new();
    }
    let part = |value: f64| value / greatest * f64::from(BAR);
    let length = |value: f64| (0..BAR).take_while(|place| f64::from(*place) < part(value)).count();
    let usual = length(usual);
    "█".repeat(usual) + &"░".repeat(length(high).saturating_sub(usual))
}

#[cfg(test)]
mod tests {
    use vocabulary::{PodCount, RevisionName};

    use super::*;

    fn forecast() -> ForecastView {
        let hour = |local_time: &str, usual, high, pods| ForecastHourView {
            begins_in_ms: 0,
            local_time: local_time.to_owned(),
            usual: Some(usual),
            high: Some(high),
            pods: Some(PodCount::new(pods)),
        };
        ForecastView {
            version: 1,
            name: RevisionName::parse("default/service/hello").expect("a name"),
            owner: None,
            mode: "auto".to_owned(),
            metric: "concurrency".to_owned(),
            target_per_pod: 7.0,
            known_ms: Some(8 * 86_400_000 + 3 * 3_600_000),
            look_ahead_ms: Some(128_000),
            rule_ms: Some(2 * 86_400_000),
            prediction: Some(PredictionView {
                rule: "day-rise-0.8-total".to_owned(),
                late_request_seconds: 310.0,
                late_without_request_seconds: 2400.0,
                extra_pod_seconds: 7200,
                used_pod_seconds: 5400,
                budget_left_pod_seconds: 600,
            }),
            saved_max: Some(0.9),
            cold_starts_avoided: 4,
            why_not: None,
            hours: vec![hour("08:20", 3.0, 5.0, 1), hour("09:00", 10.0, 20.0, 3)],
        }
    }

    #[test]
    fn a_forecast_has_its_rule_its_days_and_its_hours() {
        let shown = text(&forecast());
        for expected in [
            "default/service/hello\n",
            "  prediction auto; 8d3h remembered of 15d",
            "  rule       day-rise-0.8-total, since 2d ago; a pod is asked for 2m8s before demand",
            "  late       310 request-seconds in 7 days with prediction, 2400 without",
            "  cost       2h of pods added in 7 days: 1h30m needed, 30m not; 10m left of the budget",
            "  warm       4 cold starts avoided in 24h",
            "FROM   USUAL  HIGH  PODS  IN FLIGHT",
            "08:20  3.0    5.0   1     ██████░░░░",
            "09:00  10.0   20.0  3     ████████████████████░░░░░░░░░░░░░░░░░░░░",
        ] {
            assert!(shown.contains(expected), "{expected:?} is missing in\n{shown}");
        }
    }

    #[test]
    fn a_forecast_of_processors_counts_cores() {
        let shown = text(&ForecastView { metric: CPU.to_owned(), ..forecast() });
        assert!(shown.contains("FROM   USUAL  HIGH  PODS  CORES\n"), "{shown}");
    }

    #[test]
    fn a_forecast_that_waits_says_for_what() {
        let why_not = Some("too little is known: the rule of hours in 10m, rules of days in 69h".to_owned());
        let shown = text(&ForecastView { why_not, hours: Vec::new(), ..forecast() });
        assert!(shown.contains("  waits      too little is known"), "{shown}");
        assert!(shown.contains("  next 24h   too few days are known"), "{shown}");
    }
}
