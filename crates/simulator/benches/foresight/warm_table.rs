//! How is a table of warm revisions printed, and which numbers of it are compared?

use crate::contestant::Contestant;
use crate::quantile;
use crate::rows::RowNumbers;

/// Demand without a period: nothing of it can be foreseen, and prediction must not cost much.
const WITHOUT_PERIOD: [&str; 4] = ["crane-05", "crane-06", "crane-07", "microsoft-mongo-04"];

/// What a look-ahead adds to the time of a start-up, in seconds.
const MARGIN: usize = 10;

/// What a person sets and what a pod takes to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarmSetting {
    pub(crate) start_up: usize,
    /// The budget of prediction, in percent.
    pub(crate) budget: u32,
    /// The pods that class kpa asks for at the greatest demand.
    pub(crate) peak: u32,
    pub(crate) contestants: &'static [Contestant],
}

/// A table: what the contestants did to each series.
#[derive(Debug)]
pub(crate) struct WarmTable {
    pub(crate) setting: WarmSetting,
    pub(crate) series: Vec<(String, Vec<RowNumbers>)>,
}

/// One number for each series, as a part of that of class kpa.
#[derive(Clone, Debug, Default)]
pub(crate) struct WarmShares {
    /// Of series with a period.
    pub(crate) late: Vec<f64>,
    pub(crate) pods: Vec<f64>,
    /// The pod-hours of series without a period.
    pub(crate) pods_without_period: Vec<f64>,
    /// The sums of series with a period.
    pub(crate) late_sum: f64,
    pub(crate) late_sum_of_kpa: f64,
}

impl WarmSetting {
    pub(crate) fn name(&self) -> String {
        format!("start-up {} s, budget {} %, peak {} pods", self.start_up, self.budget, self.peak)
    }

    /// The minutes that matter to a pod that is asked for now.
    pub(crate) fn horizon(&self) -> usize {
        (self.start_up + MARGIN).div_ceil(60) + 1
    }
}

impl WarmShares {
    pub(crate) fn late_median(&self) -> f64 {
        quantile::median(self.late.clone())
    }

    pub(crate) fn late_of_sum(&self) -> f64 {
        share(self.late_sum, self.late_sum_of_kpa)
    }

    pub(crate) fn pods_median(&self) -> f64 {
        quantile::median(self.all_pods())
    }

    pub(crate) fn pods_mean(&self) -> f64 {
        let pods = self.all_pods();
        pods.iter().sum::<f64>() / f64::from(u32::try_from(pods.len().max(1)).unwrap_or(u32::MAX))
    }

    pub(crate) fn pods_most(&self) -> f64 {
        self.all_pods().into_iter().fold(0.0, f64::max)
    }

    pub(crate) fn pods_most_without_period(&self) -> f64 {
        self.pods_without_period.iter().copied().fold(0.0, f64::max)
    }

    fn all_pods(&self) -> Vec<f64> {
        [self.pods.as_slice(), &self.pods_without_period].concat()
    }
}

impl WarmTable {
    /// What a contestant did, in parts of what class kpa did.
    pub(crate) fn shares(&self, contestant: Contestant) -> Option<WarmShares> {
        let [place, kpa] = [contestant, Contestant::Kpa].map(|one| self.place(one));
        let (place, kpa) = (place?, kpa?);
        let mut shares = WarmShares::default();
        for (name, numbers) in &self.series {
            let (found, base) = (numbers[place], numbers[kpa]);
            let pods = share(found.pod_seconds, base.pod_seconds);
            if WITHOUT_PERIOD.contains(&name.as_str()) {
                shares.pods_without_period.push(pods);
                continue;
            }
            shares.pods.push(pods);
            shares.late.push(share(found.late, base.late));
            shares.late_sum += found.late;
            shares.late_sum_of_kpa += base.late;
        }
        Some(shares)
    }

    fn place(&self, contestant: Contestant) -> Option<usize> {
        self.setting.contestants.iter().position(|one| *one == contestant)
    }
}

/// Prints late demand and pod-hours of each contestant as parts of those of class kpa.
pub(crate) fn print(table: &WarmTable) {
    println!("\n{}; late demand and pod-hours as parts of those of class kpa", table.setting.name());
    let names: Vec<&str> = table.setting.contestants.iter().map(|contestant| contestant.name()).collect();
    let heads: Vec<String> = names.iter().skip(1).map(|name| format!(" {name:>17}")).collect();
    let heads = heads.concat();
    println!("{:<22} {:>11} {:>9}{heads}", "series", "kpa: late h", "pod-hours");
    for (name, numbers) in &table.series {
        let [kpa, others @ ..] = numbers.as_slice() else { continue };
        let cells: Vec<String> = others.iter().map(|of| format!(" {:>17}", cell(of, kpa))).collect();
        let cells = cells.concat();
        println!("{name:<22} {:>11.2} {:>9.1}{cells}", kpa.late / 3_600.0, kpa.pod_seconds / 3_600.0);
    }
    for contestant in table.setting.contestants {
        let Some(shares) = table.shares(*contestant) else { continue };
        println!(
            "{:<17} late: median {:.2}, of the sum {:.2}; pod-hours: median {:.3}, mean {:.3}, most {:.3}, most without a period {:.3}",
            contestant.name(),
            shares.late_median(),
            shares.late_of_sum(),
            shares.pods_median(),
            shares.pods_mean(),
            shares.pods_most(),
            shares.pods_most_without_period(),
        );
    }
}

fn cell(found: &RowNumbers, kpa: &RowNumbers) -> String {
    format!("{:.2} {:.3}", share(found.late, kpa.late), share(found.pod_seconds, kpa.pod_seconds))
}

/// A part of a number; one of nothing is all of it.
pub(crate) fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 {
        part / of
    } else if part > 0.0 {
        f64::INFINITY
    } else {
        1.0
    }
}
