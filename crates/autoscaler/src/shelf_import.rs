//! A past that was told of from elsewhere, on its way to a shelf of the platform: it is of days that were
//! written before, or never, so each of these days is read, and written anew with it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use orchestration::Fence;
use platform::{HistoryShelf, ShelfFault, ShelvedDay};
use recording::{HistoryPieces, PastHistories, StoredHistory};
use scaling::{DemandDays, RevisionHistory};
use tokio::task::spawn_blocking;
use vocabulary::RevisionName;

/// The length of a day in seconds.
pub(crate) const DAY_SECONDS: u64 = 86_400;

/// The demand of a revision, as it was told.
#[derive(Clone, Debug)]
pub(crate) struct ImportedPast {
    pub(crate) revision: RevisionName,
    pub(crate) demand: Arc<DemandDays>,
}

/// Adds pasts of revisions of a bucket to these days of it. What later days have of them is in the histories
/// that are written of those.
pub(crate) async fn add_pasts(
    shelf: &Arc<dyn HistoryShelf>,
    fence: Fence,
    days: Range<u64>,
    pasts: Vec<ImportedPast>,
) -> Result<(), ShelfFault> {
    let kept = shelf.read(fence.bucket).await?;
    let bytes_max = shelf.piece_bytes_max();
    // Its end is waited for here. A panic is a failure, after which it is tried again.
    let packed = spawn_blocking(move || days_with(&pasts, kept, &days, bytes_max)).await;
    for day in packed.map_err(|error| ShelfFault::Failed(error.to_string()))? {
        shelf.write(fence, day).await?;
    }
    Ok(())
}

/// The days that have something of these pasts, with all that was kept of them.
fn days_with(
    pasts: &[ImportedPast],
    kept: Vec<ShelvedDay>,
    days: &Range<u64>,
    bytes_max: usize,
) -> Vec<ShelvedDay> {
    let mut kept: BTreeMap<u64, ShelvedDay> = kept.into_iter().map(|day| (day.day, day)).collect();
    let mut told = BTreeMap::<u64, Vec<(&RevisionName, DemandDays)>>::new();
    for past in pasts.iter().filter(|past| past.demand.is_by_minute()) {
        for (day, demand) in past.demand.by_day().filter(|(day, _)| days.contains(day)) {
            told.entry(day).or_default().push((&past.revision, demand));
        }
    }
    let with_pasts = told.into_iter().filter_map(|(day, demands)| {
        let pieces = kept.remove(&day).map(|kept| kept.pieces).unwrap_or_default();
        day_with(demands, &ShelvedDay { day, pieces }, bytes_max)
    });
    with_pasts.collect()
}

/// A day with this demand of revisions; `None` where what was kept of the day cannot be read, and would be
/// lost.
fn day_with(
    demands: Vec<(&RevisionName, DemandDays)>,
    kept: &ShelvedDay,
    bytes_max: usize,
) -> Option<ShelvedDay> {
    let day = kept.day;
    let mut past = PastHistories::default();
    for piece in &kept.pieces {
        past.take_in_piece(&format!("the histories of day {day}"), piece);
    }
    if let Some(fault) = past.faults.first() {
        tracing::warn!(
            day,
            fault,
            "a past that was told is not kept of this day, and the next owner begins without it"
        );
        return None;
    }
    for (revision, demand) in demands {
        if let Some(history) = past.histories.get_mut(revision) {
            history.add_demand(&demand);
        } else {
            // What was kept of the day before ends about here, and goes on with it.
            let history = RevisionHistory::of_demand(day.saturating_mul(DAY_SECONDS), demand);
            past.histories.insert(revision.clone(), history);
        }
    }
    let part = |(revision, history): (&RevisionName, &RevisionHistory)| StoredHistory {
        revision: revision.clone(),
        record: history.export(),
    };
    let all: Vec<StoredHistory> = past.histories.iter().map(part).collect();
    // It was read a moment ago: numbers and bytes can be written.
    let pieces = HistoryPieces::of(&all, bytes_max).ok()?.pieces;
    Some(ShelvedDay { day, pieces })
}

#[cfg(test)]
mod tests {
    use forecasting::{DemandMinutes, MinuteDemand, PastDemand as _};
    use settings::DemandMetric;

    use super::*;

    const TODAY: u64 = 20_000;
    const MINUTES: u64 = 24 * 60;

    fn name(name: &str) -> RevisionName {
        RevisionName::new("default", "service", name).expect("a name")
    }

    /// Demand of so many in each minute of days, from the first one on.
    fn demand(first: u64, days: u64, mean: f64) -> DemandDays {
        let mut minutes = DemandMinutes::beginning_at(first * MINUTES);
        while minutes.next_minute() < (first + days) * MINUTES {
            minutes.push(Some(MinuteDemand { mean, maximum: mean }));
        }
        DemandDays::of(DemandMetric::Rps, &minutes)
    }

    fn told_of(first: u64, days: u64) -> ImportedPast {
        ImportedPast { revision: name("told"), demand: Arc::new(demand(first, days, 5.0)) }
    }

    fn day_of(day: u64, revision: &str, mean: f64) -> ShelvedDay {
        let history = RevisionHistory::of_demand((day + 1) * DAY_SECONDS, demand(day, 1, mean));
        let stored = StoredHistory { revision: name(revision), record: history.export() };
        let pieces = HistoryPieces::of(&[stored], 1 << 20).expect("numbers").pieces;
        ShelvedDay { day, pieces }
    }

    fn read<'a>(days: impl IntoIterator<Item = &'a ShelvedDay>) -> PastHistories {
        let mut past = PastHistories::default();
        for day in days {
            day.pieces.iter().for_each(|piece| past.take_in_piece("a piece", piece));
        }
        past
    }

    /// The mean of the first minute of a day, as it was read.
    fn mean(past: &PastHistories, revision: &str, day: u64) -> Option<f64> {
        let demand = past.histories.get(&name(revision))?.demand()?;
        demand.minute(day * MINUTES).map(|minute| minute.mean.round())
    }

    #[test]
    fn a_past_is_added_to_what_is_kept_of_its_days() {
        let pasts = [told_of(TODAY - 20, 21)];
        let kept = vec![day_of(TODAY - 2, "other", 3.0), day_of(TODAY - 1, "told", 9.0)];
        let added = days_with(&pasts, kept, &(TODAY - 15..TODAY), 1 << 20);
        let days: Vec<u64> = added.iter().map(|day| day.day).collect();
        assert_eq!(days, (TODAY - 15..TODAY).collect::<Vec<_>>(), "sixteen days have a place");
        let today = day_of(TODAY, "told", 2.0);
        let past = read(added.iter().chain([&today]));
        assert_eq!(past.faults, [""; 0]);
        assert_eq!(mean(&past, "other", TODAY - 2), Some(3.0));
        let told: Vec<Option<f64>> =
            [TODAY - 15, TODAY - 2, TODAY - 1, TODAY].map(|day| mean(&past, "told", day)).to_vec();
        assert_eq!(told, [Some(5.0), Some(5.0), Some(9.0), Some(2.0)], "the greater values stay");
    }

    #[test]
    fn a_day_that_cannot_be_read_is_left_as_it_is() {
        let pasts = [told_of(TODAY - 2, 2)];
        let mut damaged = day_of(TODAY - 1, "other", 3.0);
        damaged.pieces[0][15] ^= 1;
        let added = days_with(&pasts, vec![damaged], &(TODAY - 15..TODAY), 1 << 20);
        let days: Vec<u64> = added.iter().map(|day| day.day).collect();
        assert_eq!(days, [TODAY - 2]);
    }
}
