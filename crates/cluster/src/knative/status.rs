//! What does the status of a `PodAutoscaler` say? (Contract §2.2.)
//!
//! Knative's controller copies it to the revision, so each moment of it counts: an absent `serviceName` makes
//! a revision go back to "deploying", and a Ready of False before the first start has succeeded fails the
//! revision for good.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use vocabulary::PodCount;

use super::condition::{Condition, ConditionKind, ConditionStatus};
use super::fields::{number_at, text_at};

/// The status of a `PodAutoscaler`, as it is written or is to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutoscalerStatus {
    /// The generation of the spec that was handled last.
    pub observed_generation: i64,
    /// The public Service; empty while there is none.
    pub service_name: String,
    /// The private Service; empty while there is none.
    pub metrics_service_name: String,
    /// The count that is wanted; −1 while none was ever known, and `None` where nothing is written.
    pub desired: Option<i64>,
    /// The pods that Kubernetes calls ready; `None` where nothing is written.
    pub actual: Option<PodCount>,
    /// The conditions that are written.
    pub(crate) conditions: BTreeMap<ConditionKind, Condition>,
}

impl AutoscalerStatus {
    /// Reads a status as the API server has it.
    pub fn read(status: &Value) -> Self {
        let found = |kind: ConditionKind| Some((kind, Condition::find(status, kind.name())?));
        let actual = number_at(status, "actualScale").and_then(|number| u32::try_from(number).ok());
        Self {
            observed_generation: number_at(status, "observedGeneration").unwrap_or_default(),
            service_name: text_at(status, "serviceName").to_owned(),
            metrics_service_name: text_at(status, "metricsServiceName").to_owned(),
            desired: number_at(status, "desiredScale"),
            actual: actual.map(PodCount::new),
            conditions: ConditionKind::ALL.into_iter().filter_map(found).collect(),
        }
    }

    /// A condition; Unknown and without a time where it is not written.
    pub fn condition(&self, kind: ConditionKind) -> Condition {
        self.conditions.get(&kind).cloned().unwrap_or_default()
    }

    /// Whether the revision ever had as many ready pods as its initial scale asks for.
    pub fn is_initialized(&self) -> bool {
        self.condition(ConditionKind::ScaleTargetInitialized).words.status == ConditionStatus::True
    }

    /// Whether the two differ in counts alone, which may wait for a moment.
    pub(crate) fn differs_in_counts_alone(&self, other: &Self) -> bool {
        *self != *other && Self { desired: other.desired, actual: other.actual, ..self.clone() } == *other
    }

    /// The status as it is written. The two names are always there, for the CRD requires them.
    fn written(&self) -> Value {
        let conditions = self.conditions.iter().map(|(kind, condition)| condition.written(*kind));
        let mut status = json!({
            "observedGeneration": self.observed_generation,
            "serviceName": self.service_name,
            "metricsServiceName": self.metrics_service_name,
            "conditions": conditions.collect::<Vec<_>>(),
        });
        if let Some(desired) = self.desired {
            status["desiredScale"] = json!(desired);
        }
        if let Some(actual) = self.actual {
            status["actualScale"] = json!(actual.value());
        }
        status
    }
}

/// A merge patch of the subresource `status`, which the API server refuses (409) for another version of the
/// object than the one that it was decided upon.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusWrite {
    /// The version that is replaced.
    pub over: String,
    /// The status that the object has afterwards.
    pub status: AutoscalerStatus,
}

impl StatusWrite {
    /// The body of the patch.
    pub fn patch(&self) -> Value {
        json!({"metadata": {"resourceVersion": self.over}, "status": self.status.written()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knative::condition::ConditionWords;

    #[test]
    fn a_status_is_read_as_it_was_written_and_both_names_are_always_there() {
        let empty = AutoscalerStatus::default().written();
        assert_eq!((&empty["serviceName"], &empty["metricsServiceName"]), (&json!(""), &json!("")));
        assert!(empty.get("desiredScale").is_none() && empty.get("actualScale").is_none(), "{empty}");

        let at = "2026-11-22T10:00:00Z".parse().expect("a time");
        let active = Condition::default().with_words(ConditionWords::unknown("Queued", "Waits."), at);
        let full = AutoscalerStatus {
            observed_generation: 2,
            service_name: "hello-00001".to_owned(),
            metrics_service_name: "hello-00001-private".to_owned(),
            desired: Some(-1),
            actual: Some(PodCount::ZERO),
            conditions: [(ConditionKind::Active, active)].into(),
        };
        assert_eq!(AutoscalerStatus::read(&full.written()), full);
        let write = StatusWrite { over: "7".to_owned(), status: full };
        assert_eq!(write.patch()["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn conditions_are_written_by_their_names() {
        let at = "2026-11-22T10:00:00Z".parse().expect("a time");
        let condition = Condition::default().with_words(ConditionWords::yes(), at);
        let conditions = ConditionKind::ALL.map(|kind| (kind, condition.clone())).into();
        let written = AutoscalerStatus { conditions, ..AutoscalerStatus::default() }.written();
        let names = written["conditions"].as_array().expect("a list").iter();
        let names: Vec<&str> = names.map(|condition| text_at(condition, "type")).collect();
        assert_eq!(names, ["Active", "Ready", "SKSReady", "ScaleTargetInitialized"]);
    }

    #[test]
    fn counts_alone_are_told_from_conditions_and_names() {
        let status = AutoscalerStatus::default();
        let counted = AutoscalerStatus { desired: Some(3), ..status.clone() };
        let named = AutoscalerStatus { service_name: "hello".to_owned(), ..counted.clone() };
        assert!(status.differs_in_counts_alone(&counted));
        assert!(!status.differs_in_counts_alone(&named) && !status.differs_in_counts_alone(&status.clone()));
    }
}
