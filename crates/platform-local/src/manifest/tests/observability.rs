//! The ConfigMap `config-observability` among the manifests of one machine.

use super::*;

/// It, with these lines under `data`.
fn with(lines: &[&str]) -> Result<LoadedManifest, Vec<String>> {
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-observability}\ndata:\n";
    let data: Vec<String> = lines.iter().map(|line| format!("  {line}\n")).collect();
    Files::with(&[MINIMAL, &(head.to_owned() + &data.concat())]).load()
}

fn warnings(loaded: &LoadedManifest) -> Vec<&str> {
    loaded.warnings.iter().map(|warning| warning.message.as_str()).collect()
}

const PROTOCOL: &str = "tracing-protocol: http/protobuf";
const ENDPOINT: &str = "tracing-endpoint: http://127.0.0.1:4318/v1/traces";

#[test]
fn settings_of_traces_are_part_of_what_pods_run() {
    let loaded = with(&[PROTOCOL, ENDPOINT, "tracing-sampling-rate: \"0.1\""]).expect("flawless");
    assert_eq!(warnings(&loaded), [""; 0]);
    let traces = loaded.reporting().traces.clone().expect("there are traces");
    assert_eq!(traces.endpoint.to_string(), "http://127.0.0.1:4318/v1/traces");
    let template = |loaded: &LoadedManifest| {
        loaded.services.values().next().map(|placed| placed.service.template.clone()).expect("one Service")
    };
    assert!(template(&loaded).observability.is_some());
    let off = with(&["tracing-protocol: none"]).expect("flawless");
    assert_eq!((warnings(&off), template(&off).observability), (vec![], None));
}

#[test]
fn settings_of_traces_that_mean_nothing_are_remarked() {
    let loaded = with(&[PROTOCOL, ENDPOINT]).expect("only those whose client asks for it");
    let [warning] = warnings(&loaded)[..] else { panic!("{:?}", warnings(&loaded)) };
    assert!(warning.starts_with("tracing-sampling-rate is 0, as when it is not written"), "{warning}");
    let loaded = with(&[ENDPOINT]).expect("no traces");
    assert_eq!(warnings(&loaded), ["tracing-endpoint has no effect without tracing-protocol: http/protobuf"]);
}

#[test]
fn settings_of_traces_that_cannot_be_kept_are_refused_with_what_can() {
    for (lines, expected) in [
        (
            &["tracing-protocol: grpc", ENDPOINT][..],
            "1.yaml:5:3: tracing-protocol is \"grpc\"; write \"http/protobuf\"",
        ),
        (&[PROTOCOL], "1.yaml:5:3: tracing-endpoint is missing; write the collector's URL"),
        (
            &[PROTOCOL, "tracing-endpoint: https://c"],
            "1.yaml:6:3: tracing-endpoint is \"https://c\"; traces are sent over HTTP without TLS",
        ),
        (
            &[PROTOCOL, ENDPOINT, "tracing-sampling-rate: \"2\""],
            "1.yaml:7:3: tracing-sampling-rate is 2; write a number from 0 to 1",
        ),
        (
            &[PROTOCOL, ENDPOINT, "tracing-sampling-rate: all"],
            "1.yaml:7:3: tracing-sampling-rate is \"all\"; write a number from 0 to 1",
        ),
        (
            &["tracing-samplingrate: \"1\""],
            "1.yaml:5:3: unknown key tracing-samplingrate in config-observability; did you mean tracing-sampling-rate?",
        ),
    ] {
        let problems = with(lines).expect_err(expected);
        assert!(problems.len() == 1 && problems[0].starts_with(expected), "{problems:?}");
    }
}

#[test]
fn the_older_config_map_of_traces_is_answered_with_what_to_write() {
    let older =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-tracing}\ndata: {backend: zipkin}\n";
    let loaded = Files::with(&[MINIMAL, older]).load().expect("it is no reason to refuse everything");
    let [warning] = warnings(&loaded)[..] else { panic!("{:?}", warnings(&loaded)) };
    for part in [
        "config-tracing is of Knative before 1.19",
        "Zipkin's protocol is not spoken",
        "tracing-protocol: \"http/protobuf\", tracing-endpoint: \"http://HOST:4318/v1/traces\"",
        "config-observability",
    ] {
        assert!(warning.contains(part), "{warning}");
    }
}
