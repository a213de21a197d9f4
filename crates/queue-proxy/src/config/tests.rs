mod knative;

use dataplane::probe::Check;

use super::*;

fn environment(changes: &[(&str, &str)]) -> Environment {
    let mut environment: Environment = [
        ("SERVING_POD", "hello-1"),
        ("CONTAINER_CONCURRENCY", "10"),
        ("QUEUE_SERVING_PORT", "8012"),
        ("USER_PORT", "8080"),
        ("REVISION_TIMEOUT_SECONDS", "300"),
        ("PATH", "/bin"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    for (name, value) in changes {
        environment.insert((*name).to_owned(), (*value).to_owned());
    }
    environment
}

/// Everything that is wrong with an environment.
fn problems(environment: &Environment) -> Vec<String> {
    let problems = Config::read(environment).expect_err("something is wrong");
    problems.iter().map(ToString::to_string).collect()
}

fn read(changes: &[(&str, &str)]) -> Config {
    Config::read(&environment(changes)).expect("legal").value
}

#[test]
fn knatives_variables_mean_what_they_mean_there() {
    let config = read(&[
        ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", "7"),
        ("REVISION_IDLE_TIMEOUT_SECONDS", "0"),
        ("SERVING_READINESS_PROBE", r#"{"tcpSocket":{"host":"127.0.0.1","port":8080},"successThreshold":1}"#),
    ]);
    assert_eq!((config.container_concurrency, config.app_port), (10, 8080));
    assert_eq!(config.timeouts.request, Some(Duration::from_secs(300)));
    assert_eq!(config.timeouts.response_start, Some(Duration::from_secs(7)));
    assert_eq!(config.timeouts.idle, None);
    assert_eq!(config.probes.readiness.check, Check::Tcp { port: 8080 });
    let ports = Ports { requests: 8012, admin: 8022, link: 8024, stat: Some(9090), metrics: 9091 };
    assert_eq!(config.ports, ports);
    assert_eq!(read(&[("EBB_STAT_PORT", "off")]).ports, Ports { stat: None, ..ports });
    let seconds = Duration::from_secs;
    assert_eq!(
        (config.drain_linger, config.drain_limit, config.app_grace),
        (seconds(30), seconds(345), seconds(30))
    );
}

#[test]
fn a_timeout_of_0_is_no_limit_and_a_negative_concurrency_too() {
    let config = read(&[("REVISION_TIMEOUT_SECONDS", "0"), ("CONTAINER_CONCURRENCY", "-1")]);
    assert_eq!((config.timeouts.request, config.container_concurrency), (None, 0), "O10 is overturned");
    assert_eq!(config.drain_limit, Duration::from_secs(345));
    let config =
        read(&[("REVISION_TIMEOUT_SECONDS", "0"), ("EBB_DRAIN_LIMIT", "1h"), ("EBB_APP_GRACE", "5s")]);
    assert_eq!((config.drain_limit, config.app_grace), (Duration::from_secs(3645), Duration::from_secs(5)));
}

#[test]
fn more_ports_of_the_app_are_pairs() {
    let pairs = read(&[("EBB_MORE_PORTS", "8100:9090, 8101:9091")]).more_ports;
    let expected = [(8100, 9090), (8101, 9091)].map(|(requests, app)| PortPair { requests, app });
    assert_eq!(pairs, expected);
    assert!(read(&[("EBB_MORE_PORTS", "")]).more_ports.is_empty());
    let wrong = environment(&[("EBB_MORE_PORTS", "8100,0:9090,8101:9091")]);
    let problems = problems(&wrong);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("EBB_MORE_PORTS: \"8100\" is no pair"), "{problems:?}");
}

#[test]
fn to_ignore_no_user_agent_is_not_the_same_as_to_say_nothing() {
    let agents = |changes: &[_]| read(changes).ignored_user_agents;
    assert_eq!(agents(&[]), IgnoredUserAgents::default());
    assert_eq!(agents(&[("EBB_IGNORE_USER_AGENTS", "")]), IgnoredUserAgents::none());
    assert_eq!(agents(&[("EBB_IGNORE_USER_AGENTS", "a/, b")]).to_string(), "a/,b");
}

#[test]
fn a_port_that_an_engine_forwards_is_asked_as_such() {
    let tcp = ("SERVING_READINESS_PROBE", r#"{"tcpSocket":{"port":8080}}"#);
    for (network, check) in [
        ("", Check::Tcp { port: 8080 }),
        ("host", Check::Tcp { port: 8080 }),
        ("bridge", Check::ForwardedTcp { port: 8080 }),
    ] {
        let probe = read(&[tcp, ("EBB_APP_NETWORK", network)]).probes.readiness;
        assert_eq!((probe.check, probe.is_run_by_engine), (check, !network.is_empty()), "{network}");
    }
}

/// R15: without a probe the app counts as ready.
#[test]
fn r15_without_a_probe_the_app_is_always_ready() {
    assert_eq!(read(&[]).probes.readiness.check, Check::None);
    assert_eq!(read(&[("SERVING_READINESS_PROBE", "")]).probes.readiness.check, Check::None);
}

#[test]
fn announcing_means_one_machine() {
    let config = read(&[("EBB_ANNOUNCE", "stdout"), ("QUEUE_SERVING_PORT", "0")]);
    assert_eq!(config.announce, PortAudience::Stdout);
    assert_eq!((config.bind, config.drain_linger), (IpAddr::V4(Ipv4Addr::LOCALHOST), Duration::ZERO));
    let config = read(&[("EBB_ANNOUNCE", "stdout"), ("EBB_DRAIN_LINGER", "1.5s"), ("EBB_BIND", "::1")]);
    assert_eq!(
        (config.bind, config.drain_linger),
        (IpAddr::V6(Ipv6Addr::LOCALHOST), Duration::from_millis(1500))
    );
}

/// R16 among them: invalid JSON is fatal, and so is the `null` that crashes Knative on the first probe.
#[test]
fn every_problem_is_reported_at_once() {
    let mut environment = environment(&[
        ("CONTAINER_CONCURRENCY", "many"),
        ("USER_PORT", "0"),
        ("QUEUE_SERVING_PORT", "70000"),
        ("SERVING_READINESS_PROBE", "{"),
        ("EBB_LIVENESS_PROBE", "[null]"),
        ("EBB_READINESS_JUDGE", "kubelet"),
        ("EBB_ANNOUNCE", "stderr"),
        ("EBB_APP_NETWORK", "none"),
        ("EBB_USAGE", "yes"),
        ("EBB_DRAIN_LIMIT", "5"),
        ("EBB_DRAIN_LINGER", "31s"),
        ("EBB_SHADOWING_HEADERS", "no"),
        ("EBB_IGNORE_USER_AGENTS", "kube-probe/,"),
        ("EBB_STAT_PORT", "on"),
        ("EBB_LINKPORT", "1"),
        ("EBB_LINK_TOKEN", "0123456789"),
        ("EBB_TRUSTED_HOSTS", "http://h"),
    ]);
    environment.remove("SERVING_POD");
    environment.remove("REVISION_TIMEOUT_SECONDS");
    let problems = problems(&environment);
    for expected in [
        "EBB_LINKPORT is unknown; did you mean EBB_LINK_PORT?",
        "EBB_ANNOUNCE is \"stderr\"",
        "EBB_APP_NETWORK is \"none\"; write \"bridge\", \"host\" or leave it out",
        "EBB_USAGE is \"yes\"; write \"stdin\" or leave it out",
        "USER_PORT is 0",
        "SERVING_POD is missing",
        "CONTAINER_CONCURRENCY is \"many\", which is not a whole number",
        "REVISION_TIMEOUT_SECONDS is missing",
        "QUEUE_SERVING_PORT is \"70000\", which is not a port",
        "EBB_STAT_PORT is \"on\", which is not a port from 0 to 65535, or \"off\"",
        "SERVING_READINESS_PROBE is not a probe",
        "EBB_LIVENESS_PROBE is not a probe",
        "EBB_READINESS_JUDGE is \"kubelet\"; write \"queue-proxy\", \"platform\" or leave it out",
        "EBB_DRAIN_LIMIT is \"5\", which has no unit",
        "EBB_DRAIN_LINGER is 31s; write a duration from 0s to 30s",
        "EBB_SHADOWING_HEADERS is \"no\"; write \"drop\", \"keep\" or leave it out",
        "EBB_IGNORE_USER_AGENTS is \"kube-probe/,\", which has nothing between two commas or at an end; write",
        "EBB_TRUSTED_HOSTS \"http://h\" is no host",
        "EBB_LINK_TOKEN is not a token; write 32 hexadecimal digits",
    ] {
        let count = problems.iter().filter(|problem| problem.starts_with(expected)).count();
        assert_eq!(count, 1, "{expected} in {problems:#?}");
    }
    assert_eq!(problems.len(), 19, "{problems:#?}");
}

#[test]
fn settings_without_effect_are_accepted_with_a_warning() {
    let warnings = Config::read(&environment(&[
        ("ENABLE_HTTP2_AUTO_DETECTION", "true"),
        ("ENABLE_HTTP_FULL_DUPLEX", "true"),
        ("ENABLE_MULTI_CONTAINER_PROBES", "false"),
        ("OBSERVABILITY_CONFIG", "{\"tracing\":{\"protocol\":\"grpc\"}}"),
        ("SERVING_READINESS_PROBE", r#"{"httpGet":{"scheme":"HTTPS"}}"#),
    ]))
    .expect("legal")
    .warnings;
    let warnings: Vec<&str> = warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        warnings,
        [
            "ENABLE_HTTP2_AUTO_DETECTION has no effect yet",
            "OBSERVABILITY_CONFIG: tracing.protocol is \"grpc\"; write \"http/protobuf\" (OTLP over HTTP, which collectors take at port 4318) or \"none\"; there are no traces",
            "SERVING_READINESS_PROBE asks over HTTPS; only whether the port accepts connections is checked",
        ]
    );
}

#[test]
fn the_request_log_is_off_until_knatives_settings_turn_it_on() {
    assert_eq!(read(&[("OBSERVABILITY_CONFIG", "{}")]).reporting.log, None);
    assert_eq!(read(&[("OBSERVABILITY_CONFIG", "{\"requestLogTemplate\":\"x\"}")]).reporting.log, None);
    let config = read(&[
        ("OBSERVABILITY_CONFIG", "{\"enableRequestLog\":true,\"enableProbeRequestLog\":true,\"metrics\":{}}"),
        ("SERVING_POD_IP", "10.0.0.7"),
    ]);
    assert!(config.reporting.log.is_some());
    assert_eq!(config.logged_probes, LoggedProbes::All);
    assert_eq!(
        (config.logged_as.pod_name.as_str(), config.logged_as.pod_ip.as_str()),
        ("hello-1", "10.0.0.7")
    );
    // As a pod of a cluster reports.
    let config = read(&[("SERVING_NAMESPACE", "default"), ("SERVING_POD", "default/hello-1")]);
    assert_eq!((config.logged_as.pod_name.as_str(), config.pod.as_str()), ("hello-1", "default/hello-1"));
    for (text, problem) in [
        (
            "{\"enableRequestLog\":true,\"requestLogTemplate\":\"{{.Foo}}\"}",
            "requestLogTemplate column 1: {{.Foo}}",
        ),
        ("{\"enableRequestLog\":true,\"requestLogTemplate\":\"\"}", "requestLogTemplate is empty"),
        ("nonsense", "is not understood"),
    ] {
        let problems = problems(&environment(&[("OBSERVABILITY_CONFIG", text)]));
        assert!(problems.len() == 1 && problems[0].contains(problem), "{problems:?}");
    }
}

#[test]
fn a_variable_that_is_like_none_of_ours_gets_no_guess() {
    assert_eq!(problems(&environment(&[("EBB_QQQQQQQQQQ", "1")])), ["EBB_QQQQQQQQQQ is unknown"]);
}

#[test]
fn traces_are_off_until_knatives_settings_turn_them_on() {
    assert_eq!(
        read(&[("OBSERVABILITY_CONFIG", "{\"tracing\":{\"protocol\":\"none\"}}")]).reporting.traces,
        None
    );
    // As Knative's controller writes them, and as later ones may.
    for rate in ["sampling_rate", "samplingRate"] {
        let text = format!(
            "{{\"tracing\":{{\"protocol\":\"http/protobuf\",\"endpoint\":\"http://collector:4318/v1/traces\",\"{rate}\":0.5}}}}"
        );
        let traces = read(&[("OBSERVABILITY_CONFIG", &text)]).reporting.traces.expect("traces");
        assert_eq!(traces.endpoint.to_string(), "http://collector:4318/v1/traces");
        assert_eq!(Some(traces.sampling), runtime::SampleRate::new(0.5));
    }
    let text = "{\"tracing\":{\"protocol\":\"http/protobuf\",\"endpoint\":\"https://collector\"}}";
    let problems = problems(&environment(&[("OBSERVABILITY_CONFIG", text)]));
    let expected = "OBSERVABILITY_CONFIG: tracing.endpoint is \"https://collector\"; traces are sent over HTTP without TLS";
    assert!(problems.len() == 1 && problems[0].starts_with(expected), "{problems:?}");
}
