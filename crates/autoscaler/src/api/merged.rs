//! One answer, made of those of several autoscalers.
//!
//! While a bucket changes hands two may name a revision: the later owner knows better. What concerns the
//! whole configuration all of them say alike.

use std::collections::BTreeMap;

use vocabulary::{ReplicaName, RevisionName};

use crate::api_types::{
    API_VERSION, DemandView, ForecastView, LedgerList, LedgerView, OwnerView, OwnersAnswer, ProblemList,
    RecordList, RevisionDetail, RevisionList, RevisionSummary, SeriesView,
};
use crate::views::OwnedSeries;

impl OwnersAnswer for RevisionList {
    fn merged(answers: Vec<Self>, silent: &[ReplicaName]) -> Option<Self> {
        list(answers, silent)
    }
}

impl OwnersAnswer for LedgerList {
    fn merged(answers: Vec<Self>, silent: &[ReplicaName]) -> Option<Self> {
        ledger(answers, silent)
    }
}

impl OwnersAnswer for RecordList {
    /// Each autoscaler answers of its own record alone.
    fn merged(answers: Vec<Self>, silent: &[ReplicaName]) -> Option<Self> {
        if answers.is_empty() {
            return None;
        }
        let records = answers.into_iter().flat_map(|answer| answer.records).collect();
        let unanswered = silent.iter().map(|name| name.as_str().to_owned()).collect();
        Some(Self { version: API_VERSION, records, unanswered })
    }
}

impl OwnersAnswer for RevisionDetail {
    /// The detail as the autoscaler that decides about the revision gives it.
    fn merged(answers: Vec<Self>, _silent: &[ReplicaName]) -> Option<Self> {
        detail(answers.into_iter().map(Some).collect())
    }
}

impl OwnersAnswer for ForecastView {
    fn merged(answers: Vec<Self>, _silent: &[ReplicaName]) -> Option<Self> {
        forecast(answers)
    }
}

impl OwnersAnswer for DemandView {
    fn merged(answers: Vec<Self>, _silent: &[ReplicaName]) -> Option<Self> {
        demand(answers)
    }
}

impl OwnersAnswer for SeriesView {
    /// An autoscaler that does not decide about the revision has no series of it. While it changes hands two
    /// may have one; the longer one is from before.
    fn merged(answers: Vec<Self>, _silent: &[ReplicaName]) -> Option<Self> {
        answers.into_iter().max_by_key(|series| series.first_ms_ago)
    }
}

/// All revisions; `None` if no autoscaler answered.
pub(super) fn list(answers: Vec<RevisionList>, silent: &[ReplicaName]) -> Option<RevisionList> {
    if answers.is_empty() {
        return None;
    }
    let mut revisions = BTreeMap::<RevisionName, RevisionSummary>::new();
    let (mut problems, mut links) = (Vec::new(), Vec::new());
    let snapshot = answers.iter().map(|list| list.snapshot).min().unwrap_or_default();
    for list in answers {
        add(&mut problems, list.problems);
        links.extend(list.links);
        for summary in list.revisions {
            let known = revisions.get(&summary.name);
            if known.is_none_or(|known| epoch(known) < epoch(&summary)) {
                revisions.insert(summary.name.clone(), summary);
            }
        }
    }
    let unanswered = silent.iter().map(|name| name.as_str().to_owned()).collect();
    let revisions = revisions.into_values().collect();
    Some(RevisionList { version: API_VERSION, snapshot, revisions, problems, unanswered, links })
}

/// The ledgers of all revisions, each from its latest owner; `None` if no autoscaler answered. What concerns
/// the whole configuration all of them say alike.
pub(super) fn ledger(answers: Vec<LedgerList>, silent: &[ReplicaName]) -> Option<LedgerList> {
    let mut revisions = BTreeMap::<RevisionName, LedgerView>::new();
    let mut whole: Option<LedgerList> = None;
    for mut list in answers {
        for ledger in std::mem::take(&mut list.revisions) {
            let known = revisions.get(&ledger.name);
            if known.is_none_or(|known| epoch_of(known.owner.as_ref()) < epoch_of(ledger.owner.as_ref())) {
                revisions.insert(ledger.name.clone(), ledger);
            }
        }
        whole.get_or_insert(list);
    }
    let unanswered = silent.iter().map(|name| name.as_str().to_owned()).collect();
    Some(LedgerList { revisions: revisions.into_values().collect(), unanswered, ..whole? })
}

/// One revision, from its latest owner.
pub(super) fn detail(answers: Vec<Option<RevisionDetail>>) -> Option<RevisionDetail> {
    answers.into_iter().flatten().max_by_key(|detail| epoch(&detail.summary))
}

/// The forecast of one revision, from its latest owner.
pub(super) fn forecast(answers: Vec<ForecastView>) -> Option<ForecastView> {
    answers.into_iter().max_by_key(|forecast| epoch_of(forecast.owner.as_ref()))
}

/// The past demand of one revision, from its latest owner.
pub(super) fn demand(answers: Vec<DemandView>) -> Option<DemandView> {
    answers.into_iter().max_by_key(|demand| epoch_of(demand.owner.as_ref()))
}

/// The past of one revision, from its latest owner; `None` if no autoscaler knows the revision.
pub(super) fn series(answers: impl Iterator<Item = OwnedSeries>) -> Option<SeriesView> {
    answers.max_by_key(|owned| owned.epoch).map(|owned| owned.series)
}

/// The problems of all configuration; `None` if no autoscaler answered.
pub(super) fn problems(answers: Vec<ProblemList>) -> Option<ProblemList> {
    if answers.is_empty() {
        return None;
    }
    let mut problems = Vec::new();
    for list in answers {
        add(&mut problems, list.problems);
    }
    Some(ProblemList { version: API_VERSION, problems })
}

fn epoch(summary: &RevisionSummary) -> Option<u64> {
    epoch_of(summary.owner.as_ref())
}

fn epoch_of(owner: Option<&OwnerView>) -> Option<u64> {
    owner.map(|owner| owner.epoch)
}

fn add(problems: &mut Vec<String>, more: Vec<String>) {
    for problem in more {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::PodCount;

    use super::*;
    use crate::api_types::OwnerView;
    use crate::api_types::tests::{ledger as ledger_of, links, summary};

    fn owned(name: &str, owner: &str, epoch: u64) -> RevisionSummary {
        let owner = OwnerView { name: owner.to_owned(), bucket: 0, buckets: 2, epoch };
        let name = RevisionName::new("default", "service", name).expect("a name");
        RevisionSummary { name, owner: Some(owner), wanted: PodCount::ONE, ..summary() }
    }

    fn answered(revisions: Vec<RevisionSummary>, problem: &str) -> RevisionList {
        let problems = vec![problem.to_owned()];
        RevisionList {
            version: API_VERSION,
            snapshot: 7,
            revisions,
            problems,
            unanswered: Vec::new(),
            links: vec![links()],
        }
    }

    #[test]
    fn each_revision_is_told_once_by_its_latest_owner() {
        let one = answered(vec![owned("b", "one", 1), owned("c", "one", 1)], "a typo");
        let two = answered(vec![owned("a", "two", 2), owned("b", "two", 3)], "a typo");
        let two = RevisionList { snapshot: 3, ..two };
        let merged = list(vec![one, two], &[ReplicaName::new("three")]).expect("two answered");
        let told = merged.revisions.iter().map(|revision| {
            format!("{} {}", revision.name.name(), revision.owner.as_ref().expect("it has one").name)
        });
        assert_eq!(told.collect::<Vec<_>>(), ["a two", "b two", "c one"]);
        assert_eq!(
            (merged.problems, merged.unanswered),
            (vec!["a typo".to_owned()], vec!["three".to_owned()])
        );
        assert_eq!((merged.snapshot, merged.links), (3, vec![links(), links()]));
        assert_eq!(list(Vec::new(), &[ReplicaName::new("one")]), None);
    }

    #[test]
    fn a_ledger_is_told_once_by_its_latest_owner() {
        let of = |name: &str, epoch: u64| {
            let owner = OwnerView { name: epoch.to_string(), bucket: 0, buckets: 2, epoch };
            LedgerView { owner: Some(owner), ..ledger_of(name) }
        };
        let list =
            |revisions| LedgerList { version: API_VERSION, since_ms: 7, revisions, ..LedgerList::default() };
        let (one, two) = ("a/service/one", "a/service/two");
        let answers = vec![list(vec![of(two, 1)]), list(vec![of(one, 2), of(two, 3)])];
        let merged = ledger(answers, &[ReplicaName::new("three")]).expect("two answered");
        let told =
            merged.revisions.iter().map(|one| (one.name.name(), one.owner.as_ref().map(|of| of.epoch)));
        assert_eq!(told.collect::<Vec<_>>(), [("one", Some(2)), ("two", Some(3))]);
        assert_eq!((merged.since_ms, merged.unanswered), (7, vec!["three".to_owned()]));
        assert_eq!(ledger(Vec::new(), &[]), None);
    }

    #[test]
    fn a_series_is_that_of_the_latest_owner() {
        let of = |epoch: u64| {
            let series = SeriesView { range: format!("of {epoch}"), ..SeriesView::default() };
            OwnedSeries { epoch: Some(epoch), series }
        };
        let latest = series([of(1), of(3), of(2)].into_iter());
        assert_eq!(latest.map(|series| series.range), Some("of 3".to_owned()));
        assert_eq!(series(std::iter::empty()), None);
    }
}
