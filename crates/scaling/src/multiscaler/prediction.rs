//! The forecast of one revision, beside its decisions: minutes of its history in, floors and warm pods out.

use std::borrow::Cow;
use std::time::Duration;

use forecasting::{
    BudgetShare, ChoiceTimes, DemandMinutes, EndedMinute, FloorCap, ForecastPace, ForecastSettings,
    Forecaster, KeepWarm, LookAhead, OutlookHour, PastDemand, PodCapacity, PredictedFloor, PredictionRecord,
    Scorecard, WarmAnswer, WarmTerms, ZoneOffsets,
};
use serde::{Deserialize, Serialize};
use settings::{DemandMetric, PodDemand, PredictionSettings, ScalingSpec};
use vocabulary::{PodCount, ScaleUpForward, Timestamp};

use super::forecast_report::ForecastReport;
use super::start_book::StartBook;
use crate::history::{DemandBin, DemandDays};

/// The length of a minute of the clock in seconds.
pub(super) const MINUTE: u64 = 60;
/// So many seconds after its end the history has closed a minute.
const CLOSED_AFTER: u64 = 4;
const MINUTE_SECONDS: f64 = 60.0;

/// The forecast of one revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RevisionPrediction {
    /// How long the minutes are that are spoken of here.
    pace: ForecastPace,
    observes_only: bool,
    capacity: PodCapacity,
    forward: ScaleUpForward,
    /// The pod-minutes that one avoided cold start may cost.
    worth: f64,
    /// The minutes for which class kpa keeps the last pod anyway.
    kept_anyway: usize,
    forecaster: Forecaster,
    warm: KeepWarm,
    pub(super) starts: StartBook,
    /// The first minute since 1970 of which the forecaster was not told; `None` before the first look.
    next_minute: Option<u64>,
    /// As of the minute that was told last: thousands of sums are added up for it.
    scorecard: Scorecard,
}

/// What is expected of the near future at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ExpectedCount {
    pub(super) floor: PredictedFloor,
    pub(super) warm: WarmAnswer,
    pub(super) capacity: PodCapacity,
}

/// A minute of the past that has ended, beside what was asked for in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosedPast<'a> {
    /// The second since 1970 that runs.
    pub(super) second: u64,
    pub(super) demand: Option<&'a DemandDays>,
    pub(super) zone: &'a ZoneOffsets,
    pub(super) reactive: PodCount,
}

impl RevisionPrediction {
    /// Begins to expect; `None` for settings by which no number of pods follows from a demand.
    pub(super) fn new(spec: &ScalingSpec, asked: &PredictionSettings, now: Timestamp) -> Option<Self> {
        let settings = forecast_settings(spec, asked)?;
        let forecaster = Forecaster::new(settings, now);
        let pace = settings.pace;
        let mut prediction = Self {
            pace,
            observes_only: asked.observes_only,
            capacity: settings.capacity,
            forward: asked.scale_up_forward,
            worth: 0.0,
            kept_anyway: 0,
            scorecard: forecaster.scorecard(),
            forecaster,
            warm: KeepWarm::new(pace, now),
            starts: StartBook::default(),
            next_minute: None,
        };
        prediction.follow(spec, asked);
        Some(prediction)
    }

    /// Goes on by changed settings. What was spent stays spent.
    pub(super) fn follow(&mut self, spec: &ScalingSpec, asked: &PredictionSettings) {
        if let Some(settings) = forecast_settings(spec, asked) {
            self.forecaster.set_settings(settings);
            self.capacity = settings.capacity;
        }
        self.observes_only = asked.observes_only;
        self.forward = asked.scale_up_forward;
        // Gaps are those between requests, and of cpu no gap is known.
        let counts_requests = spec.demand().metric != DemandMetric::Cpu;
        let may_rest = spec.min_scale == PodCount::ZERO && spec.scale_to_zero && counts_requests;
        self.worth = if may_rest { asked.cold_start_worth.as_secs_f64() / MINUTE_SECONDS } else { 0.0 };
        let rest = spec.scale_to_zero_grace_period.max(spec.pod_retention);
        let kept = spec.stable_window.saturating_add(rest);
        self.kept_anyway = usize::try_from(self.pace.minute_at(kept)).unwrap_or(usize::MAX);
    }

    /// Whether the minutes are as long as these settings say; else prediction begins anew.
    pub(super) fn has_bin_of(&self, asked: &PredictionSettings) -> bool {
        self.pace == pace_of(asked)
    }

    /// The minute of the forecast that runs in a second since 1970.
    pub(super) fn minute_of(&self, second: u64) -> u64 {
        self.pace.minute_at(Duration::from_secs(second))
    }

    /// The local time by which days go; `None` while that of the revision's zone is not known. Days of
    /// shorter minutes are those of no clock.
    pub(super) fn zone<'a>(&self, of_revision: Option<&'a ZoneOffsets>) -> Option<Cow<'a, ZoneOffsets>> {
        if self.pace.minute() == ForecastPace::USUAL.minute() {
            of_revision.map(Cow::Borrowed)
        } else {
            Some(Cow::Owned(ZoneOffsets::default()))
        }
    }

    /// Whether what is expected changes nothing.
    pub(super) fn observes_only(&self) -> bool {
        self.observes_only
    }

    /// Whether a minute has ended of which the forecaster was not told.
    pub(super) fn is_minute_due(&self, second: u64) -> bool {
        self.next_minute != Some(self.first_open_minute(second))
    }

    /// The second since 1970 at which the next minute is due; `None` before the first look.
    pub(super) fn next_minute_due(&self) -> Option<u64> {
        self.next_minute.map(|next| (next + 1) * self.pace.minute().as_secs() + CLOSED_AFTER)
    }

    /// Tells of the minute that ended last, and of as many before it as are told late. Of others that were
    /// missed nothing is told, and a clock that was put back repeats none.
    pub(super) fn tell_minutes(&mut self, past: ClosedPast<'_>) {
        let open = self.first_open_minute(past.second);
        let told_before = self.next_minute.replace(open);
        let Some(minute) = open.checked_sub(1) else { return };
        if told_before.is_some_and(|next| next > minute) {
            self.forecaster.past_changed();
            return;
        }
        let nothing = DemandMinutes::default();
        let demand: &dyn PastDemand = match past.demand {
            Some(days) => days,
            None => &nothing,
        };
        let look_ahead = self.look_ahead();
        let (reactive, zone) = (past.reactive, past.zone);
        let oldest = minute.saturating_sub(self.pace.told_late().into());
        for minute in told_before.unwrap_or(minute).max(oldest)..=minute {
            self.forecaster.end_minute(&EndedMinute { minute, reactive, past: demand, zone, look_ahead });
        }
        self.scorecard = self.forecaster.scorecard();
    }

    /// The past is another one now: a store had it.
    pub(super) fn past_changed(&mut self) {
        self.forecaster.past_changed();
        self.next_minute = None;
    }

    /// What is kept beside the demand of the past, as it is written down.
    pub(super) fn record(&self) -> PredictionRecord {
        PredictionRecord {
            reactive: 0,
            forecaster: Some(self.forecaster.record()),
            warm: self.warm.record(),
            starts_ms: self.starts.millis(),
        }
    }

    /// Goes on from what a former owner wrote down so many seconds ago.
    pub(super) fn restore(&mut self, record: &PredictionRecord, seconds_ago: u64) {
        let minutes_ago = self.pace.minute_at(Duration::from_secs(seconds_ago));
        if let Some(forecaster) = &record.forecaster {
            self.forecaster.restore(forecaster, minutes_ago);
        }
        self.starts.restore(&record.starts_ms);
        let terms = self.terms();
        self.warm.restore(&record.warm, minutes_ago, &terms);
        self.scorecard = self.forecaster.scorecard();
    }

    /// Pods of a former owner stand above the count of the class.
    pub(super) fn note_inherited(&mut self, now: Timestamp, reactive: PodCount, count: PodCount) {
        self.forecaster.note_inherited(now, reactive, count);
    }

    /// The forecast for people, with the hours that come.
    pub(super) fn report(&self, hours: Vec<OutlookHour>) -> ForecastReport {
        ForecastReport {
            rule: self.forecaster.choice().rule,
            rule_since: self.forecaster.rule_since(),
            scorecard: self.scorecard,
            cold_starts_avoided: self.warm.avoided(),
            observes_only: self.observes_only,
            look_ahead: self.look_ahead().time,
            hours,
        }
    }

    /// The class asks for so many pods by itself, in this minute since 1970.
    pub(super) fn decide(&mut self, minute: u64, reactive: PodCount, now: Timestamp) -> ExpectedCount {
        let terms = self.terms();
        ExpectedCount {
            floor: self.forecaster.decide(now, minute, reactive),
            warm: self.warm.decide(now, reactive, &terms),
            capacity: self.capacity,
        }
    }

    /// What prediction brought and cost in the last seven days, as of the last minute.
    pub(super) fn scorecard(&self) -> Scorecard {
        self.scorecard
    }

    /// A request has come, so that a rest has ended if there was one.
    pub(super) fn note_request(&mut self, now: Timestamp) {
        let terms = self.terms();
        self.warm.note_request(now, &terms);
    }

    /// No request is in flight and none waits.
    pub(super) fn note_idle(&mut self, now: Timestamp) {
        self.warm.note_idle(now);
    }

    /// When the limits ask for the next decision.
    pub(super) fn next_deadline(&self) -> Timestamp {
        self.forecaster.next_deadline().min(self.warm.next_deadline())
    }

    fn look_ahead(&self) -> LookAhead {
        self.starts.look_ahead(self.forward, self.pace)
    }

    /// The first minute that may still get demand, when this second since 1970 runs.
    fn first_open_minute(&self, second: u64) -> u64 {
        self.minute_of(second.saturating_sub(CLOSED_AFTER))
    }

    fn terms(&self) -> WarmTerms {
        let look_ahead = self.look_ahead().minutes();
        WarmTerms { worth: self.worth, look_ahead, kept_anyway: self.kept_anyway }
    }
}

/// How long the minutes of a forecast are by these settings.
fn pace_of(asked: &PredictionSettings) -> ForecastPace {
    ForecastPace::with_minute(asked.bin).told_after(Duration::from_secs(CLOSED_AFTER))
}

/// The length of the minutes whose demand these settings need.
pub(super) fn demand_bin(asked: &PredictionSettings) -> DemandBin {
    if asked.bin == ForecastPace::USUAL.minute() { DemandBin::Minute } else { DemandBin::Second }
}

fn forecast_settings(spec: &ScalingSpec, asked: &PredictionSettings) -> Option<ForecastSettings> {
    let PodDemand { target, total, metric: _ } = spec.demand();
    Some(ForecastSettings {
        capacity: PodCapacity::new(target, total)?,
        budget: BudgetShare::of(asked.budget),
        cap: FloorCap::USUAL,
        choice: ChoiceTimes::EachHour,
        pace: pace_of(asked),
    })
}
