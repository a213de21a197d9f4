//! Which pods count, and what they request: rows P.

use super::*;
use crate::hpa::pods::PodGroup;

/// `id | phase | started | ready since | resource | sample age, window | group`: times as seconds ago, `-`
/// for none.
pub(in crate::hpa) const GROUPS: &str = "
    P1  | Succeeded | 600 | True 590 | memory | 0 30 | Ready
    P2  | Running | 0 | - | cpu | 0 30 | Unready
    P3  | Running | 60 | True 30 | cpu | 0 30 | Ready
    P4  | Running | 60 | True 30 | cpu | 0 60 | Unready
    P5  | Running | 600 | False 594 | cpu | 0 30 | Unready
    P6  | Running | 600 | False 540 | cpu | 0 30 | Ready
    P7  | Running | 180 | True 180 | cpu | 120 30 | Ready
    P8  | Running | 600 | True 590 | cpu | - | Missing
    P8 of memory | Running | 600 | True 590 | memory | - | Missing
    P8 of another metric | Running | 600 | True 590 | packets | - | Missing
    P9  | Pending | 600 | - | cpu | - | Unready
    P9 of memory | Pending | 600 | - | memory | - | Unready
    P10 | Deleted | 600 | True 590 | cpu | 0 30 | Ignored
    P10 failed | Failed | 600 | True 590 | memory | 0 30 | Ignored
    P10 pending and deleted | DeletedPending | 600 | - | cpu | - | Ignored
    P11 | Running | 30 | Unknown 30 | cpu | 0 30 | Ready
    P12 | Running | 600 | False 594 | cpu | - | Missing
    without a start | Running | - | True 590 | cpu | 0 30 | Unready
    initialising and not ready | Running | 60 | False 10 | cpu | 0 5 | Unready
    readiness is nothing to other metrics | Running | 60 | False 10 | packets | 0 5 | Ready
    the period of initialising ends when it is over | Running | 120 | True 10 | cpu | 0 60 | Ready
    unready exactly after the delay | Running | 600 | False 590 | cpu | 0 30 | Ready
";

fn pod(row: &[&str]) -> HpaPod {
    let [_, phase, started, ready, ..] = row else { panic!("{row:?}") };
    let mut pod = settled_pod(1);
    pod.started = (*started != "-").then(|| ago(started));
    pod.ready = ready.split_once(' ').map(|(status, since)| ReadyCondition {
        status: match status {
            "True" => ReadyStatus::True,
            "False" => ReadyStatus::False,
            "Unknown" => ReadyStatus::Unknown,
            unknown => panic!("no status {unknown}"),
        },
        since: ago(since),
    });
    pod.is_deleted = phase.starts_with("Deleted");
    pod.phase = match *phase {
        "Running" | "Deleted" => HpaPodPhase::Running,
        "Pending" | "DeletedPending" => HpaPodPhase::Pending,
        "Succeeded" => HpaPodPhase::Succeeded,
        "Failed" => HpaPodPhase::Failed,
        unknown => panic!("no phase {unknown}"),
    };
    pod
}

#[test]
fn pods_are_grouped_as_in_the_reference() {
    let settings = spec_of(per_thousand(), "").settings;
    for row in rows(GROUPS) {
        let resource = match row[4] {
            "packets" => None,
            name => Some(ResourceName::new(name)),
        };
        let sample = row[5].split_once(' ').map(|(age, window)| PodSample {
            at: ago(age),
            window: seconds(window),
            ..sample(1, MilliValue::new(1))
        });
        let group = pod(&row).group(resource.as_ref(), sample.as_ref(), &settings, NOW);
        let expected = match row[6] {
            "Ready" => PodGroup::Ready,
            "Unready" => PodGroup::Unready,
            "Missing" => PodGroup::Missing,
            "Ignored" => PodGroup::Ignored,
            unknown => panic!("no group {unknown}"),
        };
        assert_eq!(group, expected, "{row:?}");
    }
}

#[test]
fn requests_are_those_of_the_pod_or_of_all_its_containers() {
    let amount = |number| Some(MilliValue::new(number));
    let containers = vec![requesting("app", Some(500), amount(64)), requesting("proxy", Some(100), None)];
    let of_containers = PodRequests { pod_level: None, containers };
    assert_eq!(of_containers.of(&ResourceName::Cpu, None), amount(600));
    assert_eq!(of_containers.of(&ResourceName::Memory, None), None, "one of them says nothing");
    assert_eq!(of_containers.of(&ResourceName::Memory, Some("app")), amount(64));
    assert_eq!(of_containers.of(&ResourceName::Memory, Some("proxy")), None);
    assert_eq!(of_containers.of(&ResourceName::Cpu, Some("other")), None, "there is no such container");
    assert_eq!(PodRequests::default().of(&ResourceName::Cpu, None), None);

    let gpu = ResourceName::new("example.com/gpu");
    let others = vec![("example.com/gpu".into(), MilliValue::new(1000))];
    let pod_level = ResourceRequests { cpu: amount(2000), memory: None, others };
    let of_pod = PodRequests { pod_level: Some(pod_level), ..of_containers };
    assert_eq!(of_pod.of(&ResourceName::Cpu, None), amount(2000));
    assert_eq!(of_pod.of(&gpu, None), amount(1000));
    assert_eq!(of_pod.of(&ResourceName::Memory, None), None, "the pod's own must name the resource");
    assert_eq!(
        of_pod.of(&ResourceName::Cpu, Some("app")),
        amount(500),
        "a container is asked of all the same"
    );
}

#[test]
fn of_several_pods_or_samples_with_one_id_the_last_counts() {
    let failed = HpaPod { phase: HpaPodPhase::Failed, ..settled_pod(1) };
    let listed = HpaPods::new(vec![settled_pod(2), settled_pod(1), failed.clone()]);
    assert_eq!(listed.as_slice(), [failed, settled_pod(2)]);
    let (early, late) = (sample(1, MilliValue::new(1)), sample(1, MilliValue::new(2)));
    assert_eq!(PodSamples::new(vec![early, late]).as_slice(), [late]);
}
