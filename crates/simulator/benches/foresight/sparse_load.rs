//! The requests of a revision that rests: when they begin, and how long each lasts.

use std::time::Duration;

use simulator::{ListedRequest, LoadFile};
use vocabulary::PodCount;

use crate::series::DemandSeries;

/// Requests of a series, by the second.
#[derive(Clone, Debug)]
pub(crate) struct SparseLoad {
    pub(crate) name: String,
    /// How many begin at once, and in which second; the earliest first.
    pub(crate) groups: Vec<(usize, u32)>,
    /// How long each request lasts, in seconds.
    pub(crate) lasts: usize,
    /// How long the series lasts, in seconds.
    pub(crate) seconds: usize,
}

impl SparseLoad {
    /// An app that needed so many pods in each minute: as many requests, each for most of the minute.
    pub(crate) fn of_app(app: &DemandSeries) -> Self {
        let busy = app.values.iter().enumerate().filter(|(_, pods)| **pods > 0.0);
        let groups = busy.map(|(minute, pods)| (minute * 60, PodCount::ceil_from(*pods).value())).collect();
        Self { name: app.name.clone(), groups, lasts: 50, seconds: app.values.len() * 60 }
    }

    /// Requests of a second, evenly over each five minutes.
    pub(crate) fn of_five_minutes(series: &DemandSeries) -> Self {
        const BIN: usize = 300;
        let mut groups = Vec::new();
        for (bin, number) in series.values.iter().enumerate() {
            let number = usize::try_from(PodCount::ceil_from(*number).value()).unwrap_or(BIN).min(BIN);
            groups.extend((0..number).map(|place| (bin * BIN + (2 * place + 1) * BIN / (2 * number), 1)));
        }
        Self { name: series.name.clone(), groups, lasts: 1, seconds: series.values.len() * BIN }
    }

    /// The same as a file has it.
    pub(crate) fn file(&self) -> LoadFile {
        let request =
            |second: usize| ListedRequest { at: seconds(second), service_time: Some(seconds(self.lasts)) };
        let groups = self.groups.iter();
        let requests: Vec<ListedRequest> = groups
            .flat_map(|(second, number)| std::iter::repeat_n(request(*second), as_length(*number)))
            .collect();
        LoadFile::Requests(requests.into())
    }

    /// Where no request runs: from the end of one to the beginning of the next.
    pub(crate) fn rests(&self) -> Vec<(usize, usize)> {
        let ends = self.groups.iter().map(|(second, _)| second + self.lasts);
        let begins = self.groups.iter().skip(1).map(|(second, _)| *second).chain([self.seconds]);
        ends.zip(begins).filter(|(end, begin)| end < begin).collect()
    }
}

pub(crate) fn seconds(number: usize) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or(u64::MAX))
}

fn as_length(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
