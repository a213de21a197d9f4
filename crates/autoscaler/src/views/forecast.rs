//! The forecast of a revision, in the words of the API.

use std::time::Duration;

use forecasting::{OutlookHour, RuleChoice, RuleNumber, RulePeriod};
use orchestration::RevisionView;
use scaling::ForecastReport;
use vocabulary::{PodCount, RevisionName, Timestamp, format_duration};

use super::prediction_view;
use super::values::{age, owner_view, word};
use crate::api_types::{API_VERSION, ForecastHourView, ForecastView};
use crate::snapshot::Snapshot;

const MINUTE_MS: u64 = 60_000;
const HOUR_MINUTES: u64 = 60;

/// What is expected of a revision; `None` if there is no such revision.
pub(crate) fn forecast(snapshot: &Snapshot, name: &RevisionName, now: Timestamp) -> Option<ForecastView> {
    let view = snapshot.control.view(name, now)?;
    let (report, demand) = (view.forecast(), view.spec().demand());
    let known = view.demand_known_since();
    let known_minutes = known.map(|[first, minute]| minute.saturating_sub(first));
    let report = report.as_ref();
    Some(ForecastView {
        version: API_VERSION,
        name: name.clone(),
        owner: owner_view(&view, &snapshot.owner),
        mode: mode(report).to_owned(),
        metric: word(&demand.metric),
        target_per_pod: demand.target,
        known_ms: known_minutes.map(|minutes| minutes * MINUTE_MS),
        look_ahead_ms: report.map(|report| age(report.look_ahead)),
        rule_ms: report
            .and_then(|report| report.rule_since)
            .zip(known)
            .map(|(since, [_, minute])| minute.saturating_sub(since) * MINUTE_MS),
        prediction: report.map(|report| prediction_view(&report.scorecard)),
        saved_max: report.map(|report| report.scorecard.saved_max),
        cold_starts_avoided: report.map_or(0, |report| report.cold_starts_avoided),
        why_not: why_not(report, known_minutes),
        hours: known.map(|[_, minute]| hours(&view, report, minute)).unwrap_or_default(),
    })
}

fn mode(report: Option<&ForecastReport>) -> &'static str {
    match report {
        None => "off",
        Some(report) if report.observes_only => "observe",
        Some(_) => "auto",
    }
}

/// Why no rule asks for pods, after so many minutes of demand.
fn why_not(report: Option<&ForecastReport>, known_minutes: Option<u64>) -> Option<String> {
    let Some(report) = report else {
        return Some("prediction is off; ebb.dev/prediction: auto switches it on".to_owned());
    };
    if report.rule != RuleNumber::NONE {
        return None;
    }
    let known = known_minutes.unwrap_or(0);
    let [hours, days] =
        [RulePeriod::Hour, RulePeriod::Day].map(|period| remaining(period.minutes_needed(), known));
    if let Some(days) = days {
        return Some(match hours {
            Some(hours) => {
                format!("too little is known: the rule of hours in {hours}, rules of days in {days}")
            }
            None => format!("no rule of hours would help; rules of days in {days}"),
        });
    }
    let card = &report.scorecard;
    Some(format!(
        "the best of {} rules would save {:.0} % of {:.0} late request-seconds ({:.0} % must be saved)",
        RuleNumber::all().count(),
        100.0 * card.saved_max,
        card.late_without,
        100.0 * RuleChoice::SAVED_MIN
    ))
}

/// The time until so many minutes are known; `None` if they are.
fn remaining(needed: u64, known: u64) -> Option<String> {
    let minutes = needed.checked_sub(known).filter(|minutes| *minutes > 0)?;
    Some(format_duration(Duration::from_secs(minutes * 60)))
}

fn hours(view: &RevisionView<'_>, report: Option<&ForecastReport>, minute: u64) -> Vec<ForecastHourView> {
    let target = view.spec().demand().target;
    let hour = |hour: &OutlookHour| ForecastHourView {
        begins_in_ms: hour.minute.saturating_sub(minute) * MINUTE_MS,
        local_time: format!(
            "{:02}:{:02}",
            hour.minute_of_day / HOUR_MINUTES,
            hour.minute_of_day % HOUR_MINUTES
        ),
        usual: hour.usual,
        high: hour.high,
        pods: hour.high.filter(|_| target > 0.0).map(|high| PodCount::ceil_from(high / target)),
    };
    report.map(|report| report.hours.iter().map(hour).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_rules_still_need_is_told() {
        assert_eq!(remaining(180, 170).as_deref(), Some("10m"));
        assert_eq!((remaining(180, 180), remaining(180, 500)), (None, None));
        assert_eq!(
            why_not(None, None).as_deref(),
            Some("prediction is off; ebb.dev/prediction: auto switches it on")
        );
    }
}
