//! The forecast of one revision: minutes that ended in, the floor of the minute that begins out.
//!
//! ```text
//! a minute ends ─► every rule is played against its demand ─► sums of seven days ─► the rule in force
//!               └► what every rule expects from the next minute on ──────────────────────┐ │
//! counts change ─► the floor of the rule in force, its cap, the budget ◄─────────────────┴─┘
//! ```

use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, Timestamp};

use crate::budget::{BudgetAnswer, BudgetShare, PredictionBudget};
use crate::capacity::{FloorCap, PodCapacity};
use crate::choice::{ChoiceTimes, RuleChoice};
use crate::expectations::{Expectations, RuleMemory};
use crate::forecast::ExpectedFloor;
use crate::local_time::ZoneOffsets;
use crate::look_ahead::{ForecastPace, LookAhead};
use crate::minute_view::MinuteView;
use crate::past_demand::PastDemand;
use crate::record::{ForecasterRecord, amount_of};
use crate::replay::{IN_FORCE, PLAYERS, PlayedMinute, RuleReplay};
use crate::rule::RuleNumber;
use crate::scorecard::Scorecard;

/// Expectations are told a few seconds after their minute has begun, and may be used a minute longer.
const LATE_MINUTES_MAX: u64 = 1;

/// What a person set, as far as a forecast goes by it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastSettings {
    /// How much one pod serves.
    pub capacity: PodCapacity,
    /// How much of class kpa's pod-seconds a forecast may add.
    pub budget: BudgetShare,
    /// How far a floor may lie above class kpa's count.
    pub cap: FloorCap,
    /// When the rule is chosen anew.
    pub choice: ChoiceTimes,
    /// How long the minutes of the forecast are.
    pub pace: ForecastPace,
}

/// A minute that has ended, and all that is known by then.
#[derive(Clone, Copy, Debug)]
pub struct EndedMinute<'a> {
    /// The minute since 1970, by UTC.
    pub minute: u64,
    /// What class kpa asked for at its end.
    pub reactive: PodCount,
    /// The demand until now. It is read and not kept.
    pub past: &'a dyn PastDemand,
    /// The local time of the revision.
    pub zone: &'a ZoneOffsets,
    /// How long before demand comes a pod for it has to be asked for.
    pub look_ahead: LookAhead,
}

/// The floor at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedFloor {
    /// The floor that binds; zero where the budget is spent.
    pub floor: PodCount,
    /// What the rule in force expects, with the floor that it asks for.
    pub expected: Option<ExpectedFloor>,
}

/// The forecast of one revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Forecaster {
    settings: ForecastSettings,
    memory: RuleMemory,
    replay: RuleReplay,
    choice: RuleChoice,
    /// The minute since 1970 since which the rule is in force; `None` before the first choice.
    rule_since: Option<u64>,
    budget: PredictionBudget,
    near: Option<NearMinute>,
    /// The floor that binds now.
    bound: PodCount,
    /// The count that a former owner left, until a minute has ended here.
    inherited: PodCount,
}

/// The minute that begins or runs, as every rule sees it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct NearMinute {
    minute: u64,
    look_ahead: LookAhead,
    expected: Expectations,
}

impl Forecaster {
    /// No minute has ended yet; prediction is switched on now.
    pub fn new(settings: ForecastSettings, now: Timestamp) -> Self {
        Self {
            settings,
            memory: RuleMemory::default(),
            replay: RuleReplay::default(),
            choice: RuleChoice::NONE,
            rule_since: None,
            budget: PredictionBudget::new(settings.budget, settings.pace, now),
            near: None,
            bound: PodCount::ZERO,
            inherited: PodCount::ZERO,
        }
    }

    /// Goes on by other settings. What was spent stays spent, and sums stay as they were.
    pub fn set_settings(&mut self, settings: ForecastSettings) {
        self.settings = settings;
        self.budget.set_share(settings.budget);
    }

    /// The past is another one now: it was read from a store, or a clock was put back.
    pub fn past_changed(&mut self) {
        self.memory.forget();
    }

    /// A minute has ended, and the demand in it is known. Each minute is told once and in its turn; after a
    /// gap, rules begin anew with the minutes before them.
    pub fn end_minute(&mut self, ended: &EndedMinute<'_>) {
        self.inherited = PodCount::ZERO;
        if let Some(near) = self.near.take().filter(|near| near.minute == ended.minute) {
            let played = self.played(&near, ended);
            self.replay.play(&played);
        } else {
            self.replay.leave_gap();
            self.memory.forget();
        }
        let begins = ended.minute.saturating_add(1);
        self.choose(ended, begins);
        let horizon = u64::try_from(ended.look_ahead.horizon()).unwrap_or(u64::MAX);
        let view = MinuteView { past: ended.past, zone: ended.zone, minute: begins, horizon };
        let expected = self.memory.expectations(&view);
        self.near = Some(NearMinute { minute: begins, look_ahead: ended.look_ahead, expected });
    }

    /// Class kpa asks for so many pods in this minute since 1970. The floor that is returned binds until the
    /// count changes, a minute ends, or [`Self::next_deadline`] is reached.
    pub fn decide(&mut self, now: Timestamp, minute: u64, reactive: PodCount) -> PredictedFloor {
        let expected = self.expected_floor(minute, reactive);
        // Until rules are known again, what a former owner asked for early is expected still.
        let floor = expected.map_or(self.inherited, |expected| expected.floor);
        self.bound = match self.budget.decide(now, reactive, floor) {
            BudgetAnswer::Within => floor,
            BudgetAnswer::Spent => {
                if expected.is_none() {
                    // They may stand until class kpa has decided, and cost as long.
                    self.budget.note_inherited(now, reactive, self.inherited);
                }
                PodCount::ZERO
            }
        };
        PredictedFloor { floor: self.bound, expected }
    }

    /// Pods of a former owner stand above the count of class kpa, and cost from now on. They are a floor
    /// until the first minute has ended here.
    pub fn note_inherited(&mut self, now: Timestamp, reactive: PodCount, count: PodCount) {
        self.inherited = count;
        self.budget.note_inherited(now, reactive, count);
    }

    /// When a decision is due, if nothing happens before.
    pub const fn next_deadline(&self) -> Timestamp {
        self.budget.next_deadline()
    }

    /// What prediction brought and cost in the last seven days.
    pub fn scorecard(&self) -> Scorecard {
        let totals = self.replay.totals();
        Scorecard {
            rule: self.choice.rule,
            demand: totals.demand,
            late_with: totals.late[IN_FORCE],
            late_without: totals.late_without(),
            saved_max: self.choice.saved_max,
            reactive_pod_seconds: totals.reactive,
            extra_pod_seconds: totals.extra[IN_FORCE],
            // A pod counts as used a look-ahead after it was paid for, which may be in another hour.
            used_pod_seconds: totals.used.min(totals.extra[IN_FORCE]),
            budget_left_pod_seconds: self.budget.seconds_left(),
        }
    }

    /// The memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.memory.heap_bytes() + self.replay.heap_bytes() + self.budget.heap_bytes()
    }

    /// The rule in force since it was chosen last.
    pub const fn choice(&self) -> RuleChoice {
        self.choice
    }

    /// The minute since 1970 since which the rule is in force; `None` before the first choice.
    pub const fn rule_since(&self) -> Option<u64> {
        self.rule_since
    }

    /// What is kept beside the demand of the past, as it is written down.
    pub fn record(&self) -> ForecasterRecord {
        ForecasterRecord {
            rule: self.choice.rule.place(),
            rule_since: self.rule_since,
            late: self.choice.late.to_bits(),
            saved_max: self.choice.saved_max.to_bits(),
            hours: self.replay.hours(),
            open: self.replay.open(),
            budget: self.budget.record(),
        }
    }

    /// Goes on from what was written down so many minutes ago.
    pub fn restore(&mut self, record: &ForecasterRecord, minutes_ago: u64) {
        let rule = RuleNumber::all().find(|number| number.place() == record.rule);
        self.choice = RuleChoice {
            rule: rule.unwrap_or(RuleNumber::NONE),
            late: amount_of(record.late),
            saved_max: amount_of(record.saved_max),
        };
        self.rule_since = record.rule_since;
        self.replay.restore(&record.hours, record.open.as_ref());
        self.budget.restore(&record.budget, minutes_ago);
        self.near = None;
        self.memory.forget();
    }

    fn expected_floor(&self, minute: u64, reactive: PodCount) -> Option<ExpectedFloor> {
        let late_max = LATE_MINUTES_MAX.saturating_add(self.settings.pace.told_late().into());
        let near = self.near.as_ref().filter(|near| near.minute.abs_diff(minute) <= late_max)?;
        let rule = self.choice.rule;
        let expected = near.expected[rule.place()]?;
        let floor = self.settings.cap.limit(expected.floor(self.settings.capacity), reactive);
        Some(ExpectedFloor { rule, expected, floor, look_ahead: near.look_ahead })
    }

    fn played(&self, near: &NearMinute, ended: &EndedMinute<'_>) -> PlayedMinute {
        let ForecastSettings { capacity, cap, .. } = self.settings;
        let mut floors = [PodCount::ZERO; PLAYERS];
        for (floor, expected) in floors.iter_mut().zip(&near.expected) {
            let asked = expected.map_or(PodCount::ZERO, |expected| expected.floor(capacity));
            *floor = cap.limit(asked, ended.reactive);
        }
        floors[IN_FORCE] = self.bound;
        PlayedMinute {
            hour: ended.zone.local(ended.minute).hour(),
            demand: ended.past.minute(ended.minute).map(|demand| demand.mean),
            reactive: ended.reactive,
            floors,
            total_per_pod: capacity.total(),
            look_ahead: near.look_ahead.minutes(),
        }
    }

    /// Chooses the rule anew where an hour or a day of local time begins.
    fn choose(&mut self, ended: &EndedMinute<'_>, begins: u64) {
        let [before, now] = [ended.minute, begins].map(|minute| ended.zone.local(minute));
        let is_due = match self.settings.choice {
            ChoiceTimes::EachHour => before.hour() != now.hour(),
            ChoiceTimes::EachMidnight => before.day() != now.day(),
        };
        if is_due {
            self.replay.open_hour(now.hour());
            let former = self.choice.rule;
            self.choice = RuleChoice::of(&self.replay.totals(), self.settings.budget);
            if self.rule_since.is_none() || self.choice.rule != former {
                self.rule_since = Some(begins);
            }
        }
    }
}

impl PredictedFloor {
    /// The rule in force; the one that asks for nothing where nothing is expected.
    pub fn rule(&self) -> RuleNumber {
        self.expected.map_or(RuleNumber::NONE, |expected| expected.rule)
    }
}
