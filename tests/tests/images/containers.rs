//! A Service whose container is an image runs as it is.

use tests::client::whole_answer;
use tests::podman::PROGRAM;
use tests::{ConfigMap, Ebb, Service, eventually};

use crate::engine::{IMAGE, PATIENCE, containers, kept, only_container, said, until_none, up};

/// Waits until `ebb explain` says this of a Service.
async fn explained(ebb: &Ebb, service: &str, words: &[&str]) {
    eventually(&format!("{words:?} of {service}"), PATIENCE, || async {
        let (_, text, _) = ebb.run(&["explain", service]).await;
        if words.iter().all(|word| text.contains(word)) { Ok(()) } else { Err(text) }
    })
    .await;
}

#[tokio::test]
async fn an_image_serves_from_zero_and_goes_again() {
    let config = ConfigMap::short().set("allow-zero-initial-scale", "true").set("initial-scale", "0");
    let ebb = up(&[Service::of_image("asleep", IMAGE, &[])], &config, "host").await;
    ebb.load("asleep").burst(3).await.assert_all_answered();
    let found = containers("asleep");
    let [container] = &found[..] else { panic!("{found:?}: {}", ebb.output()) };
    let labels = said(&["container", "inspect", "--format", "{{json .Config.Labels}}", container]);
    assert!(labels.contains("\"ebb.dev/pod\":\"default/asleep-00001-"), "{labels}");
    ebb.until_pods("asleep", 0).await;
    until_none("asleep", &[]).await;
}

#[tokio::test]
async fn a_request_in_flight_outlives_the_order_to_end() {
    let ebb = up(&[kept("leaving", &["--finish"])], &ConfigMap::short(), "host").await;
    let (_, process) = only_container(&ebb, "leaving").await;
    let held = ebb.load("leaving").path("/?sleep=3000");
    let held = tokio::spawn(async move { held.burst(1).await });
    ebb.until("leaving", "a request in flight", |revision| {
        revision.pods().iter().any(|pod| pod["in_flight"].as_f64().is_some_and(|count| count >= 1.0))
    })
    .await;
    let (code, _, error) = ebb.run(&["delete", "leaving"]).await;
    assert_eq!(code, 0, "{error}");
    held.await.expect("no panic").assert_all_answered();
    until_none("leaving", &[process]).await;
}

#[tokio::test]
async fn a_program_that_ignores_term_is_killed_after_its_grace() {
    let service = kept("deaf", &["--ignore-term"]).spec("terminationGracePeriodSeconds: 1");
    let ebb = up(&[service], &ConfigMap::short(), "host").await;
    let (_, process) = only_container(&ebb, "deaf").await;
    let (code, _, error) = ebb.run(&["delete", "deaf"]).await;
    assert_eq!(code, 0, "{error}");
    until_none("deaf", &[process]).await;
    let output = ebb.output();
    assert!(output.contains("was killed 1 s after TERM"), "{output}");
}

#[tokio::test]
async fn its_exit_code_and_what_it_printed_are_told_as_of_a_process() {
    let ebb = up(&[kept("ending", &["--exit", "3"])], &ConfigMap::short(), "host").await;
    explained(&ebb, "ending", &["the app exited with code 3", "told to exit with 3"]).await;
    let (_, logs, _) = ebb.run(&["logs", "ending"]).await;
    assert!(logs.contains("told to exit with 3"), "{logs}");
}

#[tokio::test]
async fn limits_variables_and_the_user_are_the_containers() {
    let service = kept("limited", &[]).env("GREETING", "hello").container(
        "resources: {limits: {memory: 256Mi}}\nsecurityContext: {runAsUser: 1234, readOnlyRootFilesystem: true}",
    );
    let ebb = up(&[service], &ConfigMap::short(), "host").await;
    let (container, _) = only_container(&ebb, "limited").await;
    let inspected = |format: &str| said(&["container", "inspect", "--format", format, &container]);
    assert_eq!(inspected("{{.HostConfig.Memory}}").trim(), "268435456");
    assert_eq!(inspected("{{.Config.User}}").trim(), "1234");
    assert_eq!(inspected("{{.HostConfig.ReadonlyRootfs}}").trim(), "true");
    let variables = inspected("{{json .Config.Env}}");
    for expected in ["GREETING=hello", "K_SERVICE=limited", "PORT="] {
        assert!(variables.contains(expected), "{expected}: {variables}");
    }
}

#[tokio::test]
async fn an_exec_probe_runs_in_the_container() {
    let probe = format!("readinessProbe:\n  exec:\n    command: [{PROGRAM}, --connects-to, $(PORT)]");
    let service = Service::of_image("probed", IMAGE, &[]).scaling("min-scale", "1").container(&probe);
    let ebb = up(&[service], &ConfigMap::short(), "host").await;
    ebb.until_pods("probed", 1).await;
    ebb.load("probed").burst(3).await.assert_all_answered();
}

/// Whichever network the engine can make here.
#[tokio::test]
async fn an_image_serves_in_whatever_network_there_is() {
    let service = kept("anywhere", &["--bind", "0.0.0.0"]).container("ports: [{containerPort: 9123}]");
    let ebb = up(&[service], &ConfigMap::short(), "auto").await;
    ebb.until_pods("anywhere", 1).await;
    ebb.load("anywhere").burst(3).await.assert_all_answered();
    let (container, _) = only_container(&ebb, "anywhere").await;
    let network = said(&["container", "inspect", "--format", "{{.HostConfig.NetworkMode}}", &container]);
    let output = ebb.output();
    if network.trim() == "host" {
        assert!(output.contains("their programs must listen on $PORT"), "{output}");
    } else {
        let variables = said(&["container", "inspect", "--format", "{{json .Config.Env}}", &container]);
        assert!(variables.contains("\"PORT=9123\""), "{variables}");
    }
}

#[tokio::test]
async fn a_port_that_is_not_followed_in_the_network_of_the_host_is_told() {
    // It listens nowhere, which looks from here as if it listened on a port of its own.
    let service = kept("stubborn", &["--start-delay-ms", "3600000"]);
    let ebb = up(&[service], &ConfigMap::short(), "host").await;
    explained(&ebb, "stubborn", &["nothing listens on $PORT", "in the network of the host"]).await;
}

#[tokio::test]
async fn an_image_that_cannot_be_had_is_told_as_a_failure_of_its_pods() {
    // No registry listens on this port.
    let missing = Service::of_image("missing", "localhost:1/nothing:1", &[]).scaling("min-scale", "1");
    let forbidden = Service::of_image("forbidden", "localhost/nothing:1", &[])
        .scaling("min-scale", "1")
        .container("imagePullPolicy: Never");
    let ebb = up(&[missing, forbidden], &ConfigMap::short(), "host").await;
    explained(&ebb, "missing", &["the image localhost:1/nothing:1 cannot be pulled by podman"]).await;
    explained(&ebb, "forbidden", &["imagePullPolicy is Never", "podman pull localhost/nothing:1"]).await;
    // After three failures in a row no request waits.
    eventually("a refusal with the reason", PATIENCE, || async {
        let answer = whole_answer(ebb.requests, "missing.default.example.com", "/").await;
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.contains("cannot be pulled") { Ok(()) } else { Err(answer) }
    })
    .await;
}
