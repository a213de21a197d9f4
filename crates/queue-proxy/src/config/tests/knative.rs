//! The environment that the controller of an installed Knative writes: contract §6.1, §6.5 and §6.6.

use super::*;

/// What the controller writes beside the variables that every queue-proxy has.
fn of_controller(changes: &[(&str, &str)]) -> Environment {
    let written = [
        ("SERVING_NAMESPACE", "default"),
        ("SERVING_SERVICE", "hello"),
        ("SERVING_CONFIGURATION", "hello"),
        ("SERVING_REVISION", "hello-00001"),
        ("QUEUE_SERVING_TLS_PORT", "8112"),
        ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", "0"),
        ("REVISION_IDLE_TIMEOUT_SECONDS", "0"),
        ("SERVING_POD_IP", "10.0.0.7"),
        ("SERVING_LOGGING_CONFIG", ""),
        ("SERVING_LOGGING_LEVEL", ""),
        ("SYSTEM_NAMESPACE", "knative-serving"),
        ("SERVING_READINESS_PROBE", r#"{"tcpSocket":{"host":"127.0.0.1","port":8080},"successThreshold":1}"#),
        ("HOST_IP", "172.30.0.2"),
        ("ENABLE_HTTP2_AUTO_DETECTION", "false"),
        ("ENABLE_HTTP_FULL_DUPLEX", "false"),
        ("ROOT_CA", ""),
        ("QUEUE_PROXY_TLS_MIN_VERSION", ""),
        ("ENABLE_MULTI_CONTAINER_PROBES", "false"),
        ("OBSERVABILITY_CONFIG", "{}"),
    ];
    environment(&[&written[..], changes].concat())
}

fn in_knative(changes: &[(&str, &str)]) -> Config {
    Config::read(&of_controller(changes)).expect("legal").value
}

fn warnings(changes: &[(&str, &str)]) -> Vec<String> {
    let checked = Config::read(&of_controller(changes)).expect("legal");
    checked.warnings.iter().map(|warning| warning.message.clone()).collect()
}

#[test]
fn variables_of_the_controller_are_read_without_a_warning() {
    assert!(warnings(&[]).is_empty(), "{:?}", warnings(&[]));
    let config = in_knative(&[]);
    assert_eq!(config.place, QueueProxyPlace::Knative);
    assert_eq!(config.pod.as_str(), "default/hello-1", "as the autoscaler and activators name it");
    assert_eq!(config.logged_as.pod_name, "hello-1");
    let ports = Ports { requests: 8012, admin: 8022, link: 8024, stat: Some(9090), metrics: 9091 };
    assert_eq!(config.ports, ports);
    assert_eq!((config.link_ca, config.link_token), (None, None));
}

#[test]
fn one_of_its_variables_alone_makes_no_pod_of_knatives() {
    for alone in ["SYSTEM_NAMESPACE", "QUEUE_SERVING_TLS_PORT"] {
        let config = read(&[(alone, "8112"), ("SERVING_NAMESPACE", "default")]);
        assert_eq!((config.place, config.pod.as_str()), (QueueProxyPlace::Ebb, "hello-1"), "{alone}");
    }
    let of_ours = read(&[("ROOT_CA", "BEGIN CERTIFICATE"), ("QUEUE_SERVING_PORT", "8013")]);
    assert_eq!((of_ours.link_ca, of_ours.app_protocol), (None, AppProtocol::Unsaid));
}

#[test]
fn the_port_8013_says_that_the_app_speaks_http2() {
    let protocol = |changes: &[_]| in_knative(changes).app_protocol;
    assert_eq!(protocol(&[]), AppProtocol::Unsaid);
    assert_eq!(protocol(&[("QUEUE_SERVING_PORT", "8013")]), AppProtocol::H2c);
    let said = [("QUEUE_SERVING_PORT", "8013"), ("EBB_APP_PROTOCOL", "http1")];
    assert_eq!(protocol(&said), AppProtocol::Http1, "what a webhook writes is stronger");
}

#[test]
fn the_root_ca_of_config_deployment_is_the_authority_of_links() {
    let ours = ("EBB_LINK_CA", "ours");
    assert_eq!(in_knative(&[("ROOT_CA", "theirs")]).link_ca.as_deref(), Some("theirs"));
    assert_eq!(in_knative(&[("ROOT_CA", "theirs"), ours]).link_ca.as_deref(), Some("ours"));
}

/// An array has the probes of containers in their order, the app's own first.
#[test]
fn every_probe_of_an_array_is_run() {
    let array = r#"[{"tcpSocket":{"host":"127.0.0.1","port":8080}},
        {"httpGet":{"host":"127.0.0.1","port":9000,"path":"/"}},
        {"grpc":{"port":9001}}]"#;
    let multi = [("SERVING_READINESS_PROBE", array), ("ENABLE_MULTI_CONTAINER_PROBES", "true")];
    assert!(warnings(&multi).is_empty());
    let AppProbes { readiness, more_readiness, .. } = in_knative(&multi).probes;
    assert_eq!(readiness.check, Check::Tcp { port: 8080 });
    assert!(matches!(&more_readiness[0].check, Check::Http(http) if http.port == 9000), "{more_readiness:?}");
    assert!(matches!(more_readiness[1].check, Check::Grpc { port: 9001, .. }), "{more_readiness:?}");
    assert_eq!(more_readiness.len(), 2);
}

/// The grace period of the pod is the timeout of a request, and nobody says it where there is no link.
#[test]
fn a_drain_ends_within_the_grace_period_without_a_word_of_an_owner() {
    let seconds = Duration::from_secs;
    for (timeout, app_grace, drain_limit) in [
        ("300", seconds(10), seconds(290)),
        ("45", seconds(10), seconds(35)),
        ("20", seconds(5), seconds(15)),
    ] {
        let config = in_knative(&[("REVISION_TIMEOUT_SECONDS", timeout)]);
        assert_eq!((config.app_grace, config.drain_limit), (app_grace, drain_limit), "{timeout}");
    }
    let own = in_knative(&[("EBB_APP_GRACE", "100s")]);
    assert_eq!((own.app_grace, own.drain_limit), (seconds(100), seconds(200)));
    let raised = in_knative(&[("EBB_DRAIN_LIMIT", "300s")]);
    assert_eq!(raised.drain_limit, seconds(345), "by a webhook that raised the grace period, too");
}

/// Contract §4.1: nothing of these settings is a refusal, for every pod has them.
#[test]
fn a_request_log_that_cannot_be_read_is_a_warning() {
    for text in [r#"{"enableRequestLog":true,"requestLogTemplate":"{{.Foo}}"}"#, "nonsense"] {
        let bad = [("OBSERVABILITY_CONFIG", text)];
        assert_eq!(in_knative(&bad).reporting.log, None, "{text}");
        let told = warnings(&bad);
        let expected = "OBSERVABILITY_CONFIG has no effect: OBSERVABILITY_CONFIG";
        assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
    }
    let unknown = [("OBSERVABILITY_CONFIG", r#"{"enableRequestLog":true,"vendor":{}}"#)];
    assert!(in_knative(&unknown).reporting.log.is_some() && warnings(&unknown).is_empty());
}

#[test]
fn the_level_of_knatives_log_is_that_of_ours_unless_ours_is_said() {
    let log = |changes: &[_]| in_knative(changes).log;
    for (level, filter) in [("", "info"), ("debug", "debug"), ("warn", "warn"), ("fatal", "error")] {
        assert_eq!(log(&[("SERVING_LOGGING_LEVEL", level)]), filter, "{level}");
    }
    assert_eq!(log(&[("SERVING_LOGGING_LEVEL", "debug"), ("EBB_LOG", "warn")]), "warn");
    let unknown = [("SERVING_LOGGING_LEVEL", "loud")];
    assert_eq!(log(&unknown), "info");
    let expected = "SERVING_LOGGING_LEVEL is \"loud\"; write debug, info, warn or error; info holds";
    assert_eq!(warnings(&unknown), [expected]);
}
