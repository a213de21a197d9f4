//! Objects as an API server has them go in, and lines of the report come out.

use serde_json::{Value, json};

use super::*;

fn deployment(name: &str, status: &Value) -> Deployment {
    serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).expect("a Deployment")
}

/// A pod of a program, with the states of its one container.
fn pod(program: &str, state: &Value, last_state: &Value) -> Pod {
    let container = json!({
        "name": program, "image": "", "imageID": "", "ready": false, "restartCount": 4,
        "state": state, "lastState": last_state,
    });
    let pod = json!({
        "metadata": {"name": format!("{program}-1"), "labels": {COMPONENT_LABEL: program}},
        "spec": {"containers": [{"name": program, "image": "registry.example/ebb:0.1.0"}]},
        "status": {"containerStatuses": [container]},
    });
    serde_json::from_value(pod).expect("a Pod")
}

fn none_ready() -> Vec<Deployment> {
    PROGRAMS.map(|(program, _)| deployment(program, &json!({"replicas": 2}))).into()
}

/// The report of these failures, with findings that each program is asked for.
fn report(failures: &StartFailures) -> String {
    let mut findings = CheckFindings::default();
    findings.begin("why ebb does not start");
    for cause in failures.causes() {
        findings.add(cause);
    }
    findings.begin("ebb itself");
    for (program, _) in PROGRAMS {
        let wrong = CheckFinding::wrong(format!("a thing of {program}"), "mend it".to_owned());
        failures.add(program, wrong, &mut findings);
    }
    findings.text()
}

fn of(pods: &[Pod]) -> StartFailures {
    StartFailures::of(&none_ready(), pods, "ebb-system")
}

#[test]
fn an_image_that_no_node_can_pull_is_told_once_for_all_programs_and_folds_the_rest() {
    let waiting = json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}});
    let pods = PROGRAMS.map(|(program, _)| pod(program, &waiting, &json!({})));
    let failures = of(&pods);
    let text = report(&failures);
    let expected = "WRONG    autoscaler, activator, injector can start\n           no node gets the image registry.example/ebb:0.1.0: ErrImagePull: not found; push it there";
    assert!(failures.has_cause() && text.contains(expected), "{text}");
    assert!(text.contains("--image REGISTRY/ebb:TAG") && !text.contains("a thing of"), "{text}");
    assert!(text.contains("3 findings"), "{text}");
}

#[test]
fn a_crash_is_told_with_the_last_words_of_the_container_and_what_waits_for_it_is_folded() {
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "secrets \"ebb-slices\"\nis forbidden\n"}});
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}});
    let making = json!({"waiting": {"reason": "ContainerCreating"}});
    let pods = [pod("autoscaler", &back_off, &ended), pod("injector", &making, &json!({}))];
    let text = report(&of(&pods));
    let expected = "autoscaler can start\n           its container ends (exit code 1) and says: secrets \"ebb-slices\" is forbidden; `kubectl -n ebb-system logs deployment/autoscaler --previous`";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("a thing of"), "each waits for the autoscaler: {text}");
}

#[test]
fn a_program_that_fails_alone_folds_what_is_its_own() {
    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    let mut deployments = none_ready();
    deployments[0] = deployment("autoscaler", &json!({"replicas": 2, "readyReplicas": 2}));
    let pods = [pod("activator", &killed, &json!({}))];
    let text = report(&StartFailures::of(&deployments, &pods, "ebb-system"));
    assert!(text.contains("activator can start\n           its container ends (OOMKilled, exit code 137)"));
    assert!(text.contains("a thing of autoscaler") && text.contains("a thing of injector"), "{text}");
    assert!(!text.contains("a thing of activator") && text.contains("1 finding "), "{text}");
}

#[test]
fn pods_without_a_node_and_pods_that_cannot_be_made_are_told() {
    let mut unscheduled = pod("autoscaler", &json!({}), &json!({}));
    let condition = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}]);
    unscheduled.status.as_mut().expect("it has one").conditions =
        Some(serde_json::from_value(condition).expect("conditions"));
    let text = report(&of(&[unscheduled]));
    assert!(text.contains("no node takes its pods: Unschedulable: 0/1 nodes are available"), "{text}");

    let refused = json!({"conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "violates PodSecurity"}]});
    let failures = StartFailures::of(&[deployment("autoscaler", &refused)], &[], "ebb-system");
    let text = report(&failures);
    assert!(text.contains("its pods cannot be made: FailedCreate: violates PodSecurity"), "{text}");
}

#[test]
fn programs_that_are_ready_or_that_a_person_scaled_to_zero_are_no_failure() {
    let ready = PROGRAMS.map(|(program, _)| deployment(program, &json!({"readyReplicas": 1})));
    let crashed = json!({"terminated": {"exitCode": 1}});
    let pods = [pod("autoscaler", &crashed, &json!({}))];
    let served = StartFailures::of(&ready, &pods, "ebb-system");
    assert!(!served.has_cause(), "another pod decides");
    let mut findings = CheckFindings::default();
    findings.begin("ebb itself");
    for remark in served.remarks() {
        findings.add(remark);
    }
    let text = findings.text();
    let remark = "remark   each pod of autoscaler starts\n           others serve, and of one its container ends (exit code 1) without a word";
    assert!(findings.is_well() && text.contains(remark), "{text}");
    let failures = of(&[]);
    assert!(!failures.has_cause() && report(&failures).contains("a thing of injector"));
}

#[test]
fn long_last_words_keep_their_end() {
    let words = "x ".repeat(WORDS_MAX) + "the reason";
    let kept = last_part(&words);
    assert!(kept.starts_with('…') && kept.ends_with("the reason"), "{kept}");
    assert_eq!(kept.chars().count(), WORDS_MAX + 1);
}
