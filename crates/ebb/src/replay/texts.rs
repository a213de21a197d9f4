//! The texts that `ebb replay` prints.

use std::time::Duration;

use orchestration::{ControlSnapshot, RevisionView};
use recording::{CountDivergence, RecordTime, ReplayReport, SettingsChanges};
use scaling::{Decision, Sentence, Trigger};
use time::OffsetDateTime;
use vocabulary::Timestamp;

/// How many decisions are shown, the last ones.
const DECISIONS_SHOWN: usize = 10;

/// What a reader has to know before the numbers.
pub(super) fn warnings(report: &ReplayReport, build: &str) -> Vec<String> {
    let mut warnings: Vec<String> = report.gaps.iter().map(ToString::to_string).collect();
    if report.is_cut_off {
        warnings.push("the record ends within a block: what is whole before that is replayed".to_owned());
    }
    if report.unknown_frames > 0 {
        warnings.push(format!(
            "{} parts of the record are of a later program, and are left out",
            report.unknown_frames
        ));
    }
    for other in report.builds.iter().filter(|other| *other != build) {
        warnings.push(format!(
            "the record was written by ebb {other}, and this is ebb {build}: they may decide differently"
        ));
    }
    warnings
}

/// The record in one line, and whether its decisions are the same.
pub(super) fn summary(report: &ReplayReport, changes: &SettingsChanges) -> String {
    let Some(begins) = report.begins else {
        return "nothing of the record can be replayed".to_owned();
    };
    let owner = report.owner.as_ref().map_or("autoscaler", |owner| owner.as_str());
    let mut lines = vec![format!("{owner}: {} to {} UTC", date_and_time(begins), date_and_time(report.ends))];
    if report.compared > 0 {
        lines.push(exact(report));
    }
    if (report.keyframes > 0 || report.is_anonymous) && changes.is_empty() {
        let since = if report.keyframes > 0 { "from a keyframe on, " } else { "the record is anonymous: " };
        let share = percentage(report.likeness.share());
        // Nothing is compared so where each keyframe has the whole state behind it.
        if !report.likeness.compared.is_zero() || report.exact_from.is_none() {
            lines.push(format!("{since}the counts that were recorded in {share} of the time"));
        }
        if let Some(exact_from) = report.exact_from {
            lines.push(format!("exact from {} on", time_of_day(exact_from)));
        }
    }
    if !changes.is_empty() {
        lines.extend(differences(report));
    }
    lines.join("\n")
}

fn exact(report: &ReplayReport) -> String {
    let decisions = grouped(report.decisions);
    match report.first_difference {
        None => format!("{decisions} decisions, all as recorded"),
        Some(first) => format!(
            "{decisions} decisions; other commands than recorded in {} of {} cases, first at {}",
            grouped(report.differing),
            grouped(report.compared),
            time_of_day(first)
        ),
    }
}

fn differences(report: &ReplayReport) -> Vec<String> {
    let settings = format!("{} decisions with the changed settings", grouped(report.decisions));
    if report.divergences.is_empty() {
        return vec![format!("{settings}: no count would have been another one")];
    }
    let mut lines = vec![format!("{settings}:")];
    lines.extend(report.divergences.iter().map(difference));
    lines.push(
        "after its first difference a count is what would have been decided upon the recorded measurements; other pods would have measured something else"
            .to_owned(),
    );
    lines
}

fn difference(first: &CountDivergence) -> String {
    format!(
        "  {}: {} in the place of {} at {}; the same count in {} of the time",
        first.revision,
        first.replayed,
        first.recorded,
        time_of_day(first.at),
        percentage(first.likeness.share())
    )
}

/// One line for each revision, with its count.
pub(super) fn revisions(known: &ControlSnapshot, now: RecordTime) -> String {
    let mut lines = vec![format!("at {} UTC:", time_of_day(now))];
    lines.extend(known.views(now.at).map(|view| {
        let (wanted, why) = match view.decisions().last() {
            Some(last) => (last.wanted, last.reasons.last().map(|reason| reason.text)),
            // Decisions before a recorded state of the control loop are not replayed; what they led to is
            // part of it.
            None => (Some(view.status.wanted), view.status.last_reason),
        };
        let wanted = wanted.map_or_else(|| "no count".to_owned(), |count| format!("{count} pods wanted"));
        format!("  {}: {wanted}; {}", view.facts().name, reason_text(why))
    }));
    lines.join("\n")
}

/// The last decisions about one revision, each with its reasons.
pub(super) fn decisions(view: &RevisionView<'_>, now: RecordTime) -> String {
    let all: Vec<&Decision> = view.decisions().collect();
    let mut lines = vec![format!("{} at {} UTC:", view.facts().name, time_of_day(now))];
    for decision in all.iter().rev().take(DECISIONS_SHOWN).rev() {
        lines.push(format!("  {}  {}", time_of_day(wall(decision.at, now)), headline(decision)));
        lines.extend(decision.reasons.iter().map(|reason| format!("            {}", reason.text)));
    }
    if all.is_empty() {
        let (wanted, why) = (view.status.wanted, reason_text(view.status.last_reason));
        lines.push(format!("  no decision was replayed; before, {wanted} pods were wanted: {why}"));
    }
    lines.join("\n")
}

fn reason_text(why: Option<Sentence>) -> String {
    why.map_or_else(|| "no reason".to_owned(), |why| why.to_string())
}

fn headline(decision: &Decision) -> String {
    let trigger = match decision.trigger {
        Trigger::Tick => "tick",
        Trigger::Sync => "sync",
        Trigger::Surge => "surge",
        Trigger::Change => "change",
    };
    match decision.wanted {
        Some(count) => format!("{count} pods wanted ({trigger})"),
        None => format!("the count is left alone ({trigger})"),
    }
}

/// The time of an earlier instant, by the clock that was read last.
fn wall(at: Timestamp, now: RecordTime) -> RecordTime {
    RecordTime { at, wall: now.wall.saturating_sub(now.at.saturating_since(at)) }
}

fn date_and_time(time: RecordTime) -> String {
    match utc(time.wall) {
        Some(date) => {
            let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
            format!("{year:04}-{month:02}-{day:02} {}", time_of_day(time))
        }
        None => "an unknown time".to_owned(),
    }
}

fn time_of_day(time: RecordTime) -> String {
    let seconds = time.wall.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

fn utc(wall: Duration) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(i64::try_from(wall.as_secs()).ok()?).ok()
}

fn percentage(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A number with a comma before each group of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use recording::CountLikeness;
    use vocabulary::{PodCount, ReplicaName, RevisionName};

    use super::*;

    fn time(seconds: u64) -> RecordTime {
        RecordTime { at: Timestamp::from_secs(seconds), wall: Duration::from_secs(1_795_737_600 + seconds) }
    }

    fn report() -> ReplayReport {
        ReplayReport {
            owner: Some(ReplicaName::new("autoscaler-1")),
            builds: ["0.1.0 (01234567)".to_owned()].into(),
            begins: Some(time(43_200)),
            ends: time(46_800),
            decisions: 48_211,
            compared: 90_000,
            ..ReplayReport::default()
        }
    }

    #[test]
    fn a_run_that_is_decided_again_says_so_in_two_lines() {
        let text = summary(&report(), &SettingsChanges::default());
        assert_eq!(
            text,
            "autoscaler-1: 2026-11-27 12:00:00 to 2026-11-27 13:00:00 UTC\n48,211 decisions, all as recorded"
        );
        assert_eq!(warnings(&report(), "0.1.0 (01234567)"), Vec::<String>::new());
        let [other] = warnings(&report(), "0.2.0 (00000000)").try_into().expect("one warning");
        assert!(other.contains("was written by ebb 0.1.0 (01234567), and this is ebb 0.2.0"), "{other}");
    }

    #[test]
    fn a_record_without_its_beginning_says_from_when_it_is_exact() {
        let report = ReplayReport { keyframes: 1, exact_from: Some(time(43_400)), ..report() };
        let text = summary(&report, &SettingsChanges::default());
        assert!(text.ends_with("\nexact from 12:03:20 on") && !text.contains("keyframe"), "{text}");
        let likeness = CountLikeness { compared: Duration::from_secs(100), equal: Duration::from_secs(99) };
        let text = summary(&ReplayReport { likeness, ..report.clone() }, &SettingsChanges::default());
        assert!(text.contains("\nfrom a keyframe on, the counts that were recorded in 99.0%"), "{text}");
        let text = summary(&ReplayReport { exact_from: None, ..report }, &SettingsChanges::default());
        assert!(!text.contains("exact from"), "{text}");
    }

    #[test]
    fn an_anonymous_record_is_compared_by_its_counts() {
        let likeness = CountLikeness { compared: Duration::from_secs(100), equal: Duration::from_secs(99) };
        let report = ReplayReport { compared: 0, is_anonymous: true, likeness, ..report() };
        let text = summary(&report, &SettingsChanges::default());
        let line = "\nthe record is anonymous: the counts that were recorded in 99.0% of the time";
        assert!(text.ends_with(line), "{text}");
    }

    #[test]
    fn the_first_difference_is_said_with_its_time() {
        let report = ReplayReport { differing: 12, first_difference: Some(time(43_400)), ..report() };
        let text = summary(&report, &SettingsChanges::default());
        assert!(
            text.contains("other commands than recorded in 12 of 90,000 cases, first at 12:03:20"),
            "{text}"
        );
    }

    #[test]
    fn changed_settings_name_each_revision_whose_count_differs() {
        let changes = SettingsChanges {
            annotations: [("autoscaling.knative.dev/window".to_owned(), "30s".to_owned())].into(),
            ..SettingsChanges::default()
        };
        let first = CountDivergence {
            revision: RevisionName::parse("default/service/hello").expect("three parts"),
            at: time(43_400),
            recorded: PodCount::new(3),
            replayed: PodCount::new(1),
            likeness: CountLikeness { compared: Duration::from_secs(100), equal: Duration::from_secs(75) },
        };
        let report = ReplayReport { compared: 0, divergences: vec![first], ..report() };
        let text = summary(&report, &changes);
        let line =
            "  default/service/hello: 1 in the place of 3 at 12:03:20; the same count in 75.0% of the time";
        assert!(text.contains(line), "{text}");
        let report = ReplayReport { divergences: Vec::new(), ..report };
        assert!(summary(&report, &changes).ends_with("no count would have been another one"));
    }

    #[test]
    fn numbers_are_written_in_groups_of_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
