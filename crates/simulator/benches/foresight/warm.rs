//! A revision that never rests: what each way to foresee makes of late demand and of pod-hours.

use std::ops::Range;
use std::time::Duration;

use forecasting::ChoiceTimes;
use simulator::LoadFile;
use vocabulary::PodCount;

use crate::contestant::Contestant;
use crate::foreseen::{ForeseenDemand, TARGET, TOTAL};
use crate::ready_pods::{ReadyPods, counts_by_second};
use crate::rows::{RowFile, RowNumbers, Rows};
use crate::rule_choice::RuleTerms;
use crate::series::DemandSeries;
use crate::simulated::SimulatedRevision;
use crate::traces::TraceFolder;
use crate::warm_table::{WarmSetting, WarmTable};
use crate::{goals, rule_choice, warm_table};

const SECONDS: usize = 60;
/// The service time of each request, in seconds.
const SERVICE_TIME: f64 = 0.1;
const QUICK_SERIES: usize = 3;
const QUICK_DAYS: usize = 11;

/// How many series and days are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// All series with all settings.
    Whole,
    /// Three series of eleven days, with the first setting.
    Quick,
}

const SETTINGS: [WarmSetting; 4] = [
    WarmSetting { start_up: 180, budget: 10, peak: 20, contestants: &Contestant::ALL },
    WarmSetting { start_up: 60, budget: 10, peak: 20, contestants: &Contestant::CLASSES },
    WarmSetting { start_up: 180, budget: 3, peak: 20, contestants: &Contestant::CLASSES },
    WarmSetting { start_up: 180, budget: 10, peak: 5, contestants: &Contestant::CLASSES },
];

/// A series at the scale of a setting.
struct WarmWorld<'a> {
    setting: &'a WarmSetting,
    demand: Vec<f64>,
    judged: Range<usize>,
}

/// Prints all tables. Returns whether the goals are met that say something of these series.
pub(crate) fn run(traces: &TraceFolder, length: Length, rows: &mut RowFile) -> bool {
    let mut series = traces.warm();
    let settings = match length {
        Length::Whole => &SETTINGS[..],
        Length::Quick => {
            series = series.into_iter().take(QUICK_SERIES).map(|one| one.first_days(QUICK_DAYS)).collect();
            &SETTINGS[..1]
        }
    };
    let mut tables = Vec::new();
    for setting in settings {
        let found = series.iter().map(|one| (one.name.clone(), rows_of(setting, one, rows))).collect();
        let table = WarmTable { setting: *setting, series: found };
        warm_table::print(&table);
        tables.push(table);
    }
    match length {
        Length::Whole => goals::print_warm(&tables) || !traces.are_real(),
        // The budget is a promise, whatever the demand.
        Length::Quick => goals::print_budget(&tables[0]),
    }
}

/// The rows of a series in the order of the contestants, measured unless they were before.
fn rows_of(setting: &WarmSetting, series: &DemandSeries, rows: &mut RowFile) -> Vec<RowNumbers> {
    let name = |contestant: &Contestant| {
        let WarmSetting { start_up, budget, peak, .. } = setting;
        format!("warm/{start_up}s/{budget}%/{peak} {} {}", series.name, contestant.name())
    };
    let names: Vec<String> = setting.contestants.iter().map(name).collect();
    if let Some(found) = names.iter().map(|name| rows.get(name)).collect::<Option<Vec<_>>>() {
        return found;
    }
    let peak = TARGET * f64::from(setting.peak);
    let world = WarmWorld { setting, demand: series.with_peak(peak), judged: series.judged() };
    let found = world.measure();
    rows.keep(names.into_iter().zip(found.iter().copied()).collect::<Rows>());
    found
}

impl WarmWorld<'_> {
    fn measure(&self) -> Vec<RowNumbers> {
        let [kpa, ahpa] = ["kpa", "ahpa"].map(|class| self.counts(class));
        let nothing = vec![0; self.demand.len()];
        let of_ahpa = self.play(&ahpa, &nothing);
        let foreseen = ForeseenDemand { demand: &self.demand, horizon: self.setting.horizon() };
        let numbers = |contestant: &Contestant| match contestant {
            Contestant::Ahpa => of_ahpa,
            Contestant::EachHour => self.play(&kpa, &self.rule_floors(&kpa, ChoiceTimes::EachHour)),
            Contestant::EachMidnight => self.play(&kpa, &self.rule_floors(&kpa, ChoiceTimes::EachMidnight)),
            Contestant::FixedMinScale => self.fixed(&kpa, of_ahpa.pod_seconds),
            Contestant::Kpa
            | Contestant::Yesterday
            | Contestant::SevenDays
            | Contestant::LastSlope
            | Contestant::Mstl
            | Contestant::Oracle => {
                let floors = contestant.floors(&foreseen);
                self.play(&kpa, floors.as_deref().unwrap_or(&nothing))
            }
        };
        self.setting.contestants.iter().map(numbers).collect()
    }

    /// The counts of the real control loop, second by second.
    fn counts(&self, class: &str) -> Vec<u32> {
        let requests = |demand: &f64| PodCount::floor_from(demand * 60.0 / SERVICE_TIME + 0.5).value();
        let counts: Vec<u32> = self.demand.iter().map(requests).collect();
        let minutes = u32::try_from(counts.len()).expect("a few hundred days");
        // Class kpa predicts nothing and ignores the budget.
        let annotations = [
            ("autoscaling.knative.dev/class", format!("{class}.autoscaling.knative.dev")),
            ("autoscaling.knative.dev/target", "10".to_owned()),
            ("autoscaling.knative.dev/min-scale", "1".to_owned()),
            ("ebb.dev/prediction-budget", format!("{}%", self.setting.budget)),
        ];
        let revision = SimulatedRevision {
            annotations: &annotations,
            load: LoadFile::Counts { bin: Duration::from_secs(60), counts: counts.into() },
            service_time: "100ms",
            start_up: self.setting.start_up,
            length: Duration::from_secs(60) * minutes,
        };
        counts_by_second(&revision.counts(), self.demand.len() * SECONDS)
    }

    fn rule_floors(&self, kpa: &[u32], choice: ChoiceTimes) -> Vec<u32> {
        let terms = RuleTerms { choice, budget: self.setting.budget, horizon: self.setting.horizon() };
        rule_choice::floors(&self.demand, kpa, &terms)
    }

    /// The row of the greatest fixed floor that costs at most so much; of none if each costs more.
    fn fixed(&self, kpa: &[u32], pod_seconds_max: f64) -> RowNumbers {
        let with_floor = |floor: u32| self.play(kpa, &vec![floor; self.demand.len()]);
        let within = |numbers: &RowNumbers| numbers.pod_seconds <= pod_seconds_max;
        let greatest = (1..=self.setting.peak).map(with_floor).take_while(within).last();
        greatest.unwrap_or_else(|| with_floor(0))
    }

    /// What is late and what it costs, if floors stand above these counts.
    fn play(&self, counts: &[u32], floors: &[u32]) -> RowNumbers {
        let mut ready_pods = ReadyPods::new(self.setting.start_up);
        let mut numbers = RowNumbers::default();
        for (minute, seconds) in counts.chunks(SECONDS).enumerate() {
            let is_judged = self.judged.contains(&minute);
            for count in seconds {
                let asked = (*count).max(floors[minute]);
                let ready = ready_pods.next(asked);
                if is_judged {
                    numbers.pod_seconds += f64::from(asked);
                    numbers.late += (self.demand[minute] - TOTAL * f64::from(ready)).max(0.0);
                }
            }
        }
        numbers
    }
}
