use std::sync::Arc;

use forecasting::{RuleNumber, Scorecard};
use orchestration::{ControlSnapshot, DecidedState, HpaSnapshot, LastKnownValues, RevisionSnapshot};
use runtime::{Clock, reference_faults};
use scaling::hpa::{HpaConditions, HpaReport, NoProposal, ReportedMetric};
use scaling::{
    DecisionJournal, Event, Multiscaler, PodFact, PodPhase, PublishedHistory, RevisionOrigin, RevisionStatus,
};
use settings::ScalingSpec;
use vocabulary::{ExcessBurstCapacity, PodCount, PodId, RevisionId, Routing, SharedMap, Timestamp};

use super::*;
use crate::snapshot::{Snapshot, SnapshotWriter, snapshots};

const PAGE: [&str; 33] = [
    "runtime_tasks gauge",
    "autoscaler_wanted_pods gauge",
    "autoscaler_desired_pods gauge",
    "autoscaler_ready_pods gauge",
    "autoscaler_not_ready_pods gauge",
    "autoscaler_pending_pods gauge",
    "autoscaler_terminating_pods gauge",
    "autoscaler_panic_mode gauge",
    "autoscaler_stable_value gauge",
    "autoscaler_panic_value gauge",
    "autoscaler_target_per_pod gauge",
    "autoscaler_excess_burst_capacity gauge",
    "autoscaler_through_activator gauge",
    "autoscaler_waiting_requests gauge",
    "autoscaler_hpa_asked_pods gauge",
    "autoscaler_hpa_metric_ratio gauge",
    "autoscaler_hpa_failing_metrics gauge",
    "autoscaler_prediction_early_pods gauge",
    "autoscaler_prediction_extra_pod_seconds gauge",
    "autoscaler_prediction_used_pod_seconds gauge",
    "autoscaler_prediction_late_avoided_request_seconds gauge",
    "autoscaler_prediction_rule gauge",
    "autoscaler_revision_demand gauge",
    "autoscaler_pod_seconds counter",
    "autoscaler_cold_starts counter",
    "autoscaler_links gauge",
    "autoscaler_links_lost counter",
    "autoscaler_decisions counter",
    "autoscaler_configuration_problems gauge",
    "autoscaler_pod_releases counter",
    "autoscaler_owned_buckets gauge",
    "autoscaler_late_orders counter",
    "autoscaler_record_dropped counter",
];

/// Names, kinds and labels are promises to those who watch us; `docs/reference/metrics.md` lists them.
#[test]
fn the_page_is_pinned() {
    let registry = MetricsRegistry::default();
    let metrics = AutoscalerMetrics::register(&registry);
    let (writer, reader) = snapshots(ReplicaName::new("autoscaler-1"), Clock::start());
    metrics.show(reader);
    publish(&writer, [decided()].map(revision).into_iter().collect());
    metrics.decided(&decision());
    metrics.link_up(PeerKind::Pod);
    metrics.link_up(PeerKind::Activator);
    metrics.link_down(PeerKind::Activator, LinkEnding::Lost);
    metrics.problems(2);
    metrics.released(orchestration::ReleaseProof::OutOfTime);
    metrics.owns(&vocabulary::ReplicaName::new("autoscaler-1"), 2);
    metrics.late_order();
    metrics.record_dropped(3);
    let page = registry.encode();
    let types: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert_eq!(types, PAGE);
    for line in [
        "autoscaler_wanted_pods{namespace=\"default\",revision=\"service/hello\"} 3.0",
        "autoscaler_stable_value{namespace=\"default\",revision=\"service/hello\"} 14.5",
        "autoscaler_excess_burst_capacity{namespace=\"default\",revision=\"service/hello\"} -5.0",
        "autoscaler_hpa_asked_pods{namespace=\"default\",revision=\"service/hello\"} 4.0",
        "autoscaler_hpa_metric_ratio{namespace=\"default\",revision=\"service/hello\"} 1.5",
        "autoscaler_hpa_failing_metrics{namespace=\"default\",revision=\"service/hello\"} 1.0",
        "autoscaler_prediction_early_pods{namespace=\"default\",revision=\"service/hello\"} 1.0",
        "autoscaler_prediction_extra_pod_seconds{namespace=\"default\",revision=\"service/hello\"} 600.0",
        "autoscaler_prediction_used_pod_seconds{namespace=\"default\",revision=\"service/hello\"} 480.0",
        "autoscaler_prediction_late_avoided_request_seconds{namespace=\"default\",revision=\"service/hello\"} 250.0",
        "autoscaler_prediction_rule{namespace=\"default\",revision=\"service/hello\",rule=\"none\"} 1.0",
        "autoscaler_revision_demand{namespace=\"default\",revision=\"service/hello\",metric=\"concurrency\"} 9.5",
        "autoscaler_pod_seconds_total{namespace=\"default\",revision=\"service/hello\",state=\"idle\"} 7",
        "autoscaler_cold_starts_total{namespace=\"default\",revision=\"service/hello\",cause=\"growth\"} 0",
        "autoscaler_links{peer=\"pod\"} 1",
        "autoscaler_links_lost_total{peer=\"activator\"} 1",
        "autoscaler_decisions_total{trigger=\"surge\"} 1",
        "autoscaler_configuration_problems 2",
        "autoscaler_pod_releases_total{proof=\"out_of_time\"} 1",
        "autoscaler_owned_buckets{owner=\"autoscaler-1\"} 2",
        "autoscaler_late_orders_total 1",
        "autoscaler_record_dropped_total 3",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
    }
    publish(&writer, ControlSnapshot::default());
    assert!(!registry.encode().contains("service/hello"), "a removed revision leaves nothing behind");
    publish(&writer, [decided()].map(revision).into_iter().collect());
    assert!(registry.encode().contains("service/hello"));
    drop(writer);
    assert!(!registry.encode().contains("service/hello"), "nor does an autoscaler that has ended");
}

#[test]
fn the_reference_has_a_row_for_each_metric_and_no_other() {
    let manual = include_str!("../../../../docs/reference/metrics.md");
    let page = PAGE.map(|metric| format!("# TYPE {metric}\n")).concat();
    let faults = reference_faults(manual, &page, "autoscaler_");
    assert_eq!(faults, [""; 0], "in docs/reference/metrics.md");
}

fn publish(writer: &SnapshotWriter, control: ControlSnapshot) {
    let (owner, asked) = (ReplicaName::new("autoscaler-1"), SharedMap::default());
    writer.publish(Snapshot { owner, at: Timestamp::ZERO, control, asked, callers: SharedMap::default() });
}

/// A revision of ours about which was decided.
pub(crate) fn decided_revision() -> RevisionSnapshot {
    revision(decided())
}

fn revision(decided: DecidedState) -> RevisionSnapshot {
    let (facts, spec) = (crate::tests::revision(3), Arc::new(ScalingSpec::default()));
    RevisionSnapshot::new(facts, spec, Some(decided))
}

/// The average of the panic window is known no more.
fn decided() -> DecidedState {
    let last_known = LastKnownValues {
        desired: Some(PodCount::new(2)),
        stable_value: Some(14.5),
        panic_value: Some(20.0),
        excess_burst_capacity: Some(ExcessBurstCapacity::new(-5)),
        hpa_asked: Some(PodCount::new(4)),
        hpa_ratio: Some(1.5),
    };
    let hpa = HpaSnapshot { report: report(), beside_targets: String::new() };
    DecidedState {
        status: status(),
        journal: DecisionJournal::default(),
        history: history(),
        forecast: None,
        hpa: Some(Box::new(hpa)),
        last_known,
    }
}

/// A pod was ready for ten seconds, of which the last three may still be reported.
fn history() -> Option<PublishedHistory> {
    let (mut multiscaler, revision) = (Multiscaler::default(), RevisionId(0));
    let (spec, wanted, origin) = (Arc::new(ScalingSpec::default()), PodCount::ONE, RevisionOrigin::Found);
    multiscaler.handle(Event::RevisionChanged { revision, spec, wanted, origin }, Timestamp::ZERO);
    let (pod, phase) = (PodId(0), PodPhase::Running);
    let fact = PodFact { pod, phase, is_ready: true, is_reachable: true, is_outdated: false };
    for now in [0, 10].map(Timestamp::from_secs) {
        multiscaler.handle(Event::PodsChanged { revision, pods: vec![fact] }, now);
    }
    multiscaler.published_history(revision)
}

/// One metric that asks for most, one that is far from its target by nothing, one that says nothing.
fn report() -> HpaReport {
    let metric = |ratio, count, failure| ReportedMetric {
        name: "jobs".to_owned(),
        current: None,
        target: "10".to_owned(),
        ratio,
        count,
        failure,
    };
    HpaReport {
        conditions: HpaConditions::default(),
        metrics: vec![
            metric(Some(1.5), Some(PodCount::new(4)), None),
            metric(Some(f64::INFINITY), Some(PodCount::ONE), None),
            metric(None, None, Some(NoProposal::NoAnswer)),
        ],
        current: PodCount::ONE,
        desired: None,
        last_scale: None,
    }
}

fn status() -> RevisionStatus {
    RevisionStatus {
        wanted: PodCount::new(3),
        early_pods: PodCount::ONE,
        scorecard: Some(scorecard()),
        desired: Some(PodCount::new(2)),
        ready_pods: PodCount::ONE,
        not_ready_pods: PodCount::new(2),
        pending_pods: PodCount::ONE,
        terminating_pods: PodCount::ZERO,
        panicking: true,
        stable_value: Some(9.5),
        panic_value: None,
        target_per_pod: 7.0,
        routing: Routing::ThroughActivator,
        waiting: 4,
        activity: "active",
        shadow: None,
        last_reason: None,
        why_not_zero: None,
    }
}

fn scorecard() -> Scorecard {
    Scorecard {
        rule: RuleNumber::NONE,
        demand: 9000.0,
        late_with: 50.0,
        late_without: 300.0,
        saved_max: 0.9,
        reactive_pod_seconds: 7200,
        extra_pod_seconds: 600,
        used_pod_seconds: 480,
        budget_left_pod_seconds: 120,
    }
}

fn decision() -> Decision {
    Decision {
        excess_burst_capacity: ExcessBurstCapacity::new(-5),
        activators: PodCount::ONE,
        ..Decision::empty(Trigger::Surge, Timestamp::ZERO)
    }
}
