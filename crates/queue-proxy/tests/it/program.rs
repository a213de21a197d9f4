//! The program itself: what it says, how it ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use link::PodOrder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vocabulary::PodWord;
use vocabulary::QueueProxyAnnouncement;

use crate::world::{App, Proxy, ask, environment, eventually, link_address, run};

/// The program with ports of its own choice, and which those are. Its log is not read.
fn started(app: u16, changes: &[(&str, &str)]) -> (Child, QueueProxyAnnouncement) {
    started_with(Stdio::null(), app, changes)
}

/// The same, with its log written there.
fn started_with(log: Stdio, app: u16, changes: &[(&str, &str)]) -> (Child, QueueProxyAnnouncement) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ebb-queue-proxy"))
        .env_clear()
        .envs(environment(app, changes))
        .env("EBB_ANNOUNCE", "stdout")
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
    (child, serde_json::from_str(&line).expect("one line of JSON"))
}

fn tell(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    kill(pid, signal).expect("it lives");
}

#[test]
fn p15_asked_to_stop_it_drains_and_ends_with_0() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let (mut child, _) = started(9, &[]);
        tell(&child, signal);
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn p14_asked_twice_it_ends_at_once_with_1() {
    run(async {
        let app = App::start(|_| Box::pin(std::future::pending())).await;
        let (mut child, ports) = started(app.port, &[]);
        let held = ask(ports.requests, "GET", "/", &[], b"");
        let stopping = async {
            eventually("a request runs", || app.state.running.get() == 1).await;
            tell(&child, Signal::SIGTERM);
            let probe = [("User-Agent", "kube-probe/1"), ("K-Network-Probe", "queue")];
            while ask(ports.admin, "GET", "/", &probe, b"").await.status == 200 {}
            tell(&child, Signal::SIGTERM);
        };
        tokio::select! {
            biased;
            () = stopping => {}
            answer = held => panic!("the app never answers: {answer:?}"),
        }
        assert_eq!(child.wait().expect("it ends").code(), Some(1));
    });
}

#[test]
fn r16_a_bad_environment_ends_it_with_2_and_all_problems() {
    let output = Command::new(env!("CARGO_BIN_EXE_ebb-queue-proxy"))
        .env_clear()
        .env("SERVING_READINESS_PROBE", "{")
        .env("USER_PORT", "x")
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).expect("text");
    for problem in ["SERVING_READINESS_PROBE is not a probe", "USER_PORT is \"x\"", "SERVING_POD is missing"]
    {
        assert!(told.contains(problem), "{problem} in {told}");
    }
}

#[test]
fn a_bad_environment_ends_it_with_2_also_if_nobody_can_read_why() {
    let (reader, unread) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = Command::new(env!("CARGO_BIN_EXE_ebb-queue-proxy")).env_clear().stderr(unread).status();
    assert_eq!(status.expect("it starts").code(), Some(2));
}

#[test]
fn a_failed_liveness_probe_has_an_exit_code_of_its_own() {
    let probe = r#"{"exec":{"command":["/bin/false"]},"periodSeconds":1,"failureThreshold":1}"#;
    let (mut child, _) = started(9, &[("EBB_LIVENESS_PROBE", probe)]);
    assert_eq!(child.wait().expect("it ends").code(), Some(i32::from(queue_proxy::EXIT_LIVENESS_FAILED)));
}

#[test]
fn a_port_in_use_is_said_with_its_purpose() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut child = Command::new(env!("CARGO_BIN_EXE_ebb-queue-proxy"))
            .env_clear()
            .envs(environment(app.port, &[("EBB_ADMIN_PORT", &proxy.ports.admin.to_string())]))
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        assert_eq!(child.wait().expect("it ends").code(), Some(1));
        let mut told = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut told).expect("text");
        assert!(told.contains(&format!("port {} (admin)", proxy.ports.admin)), "{told}");
    });
}

/// The app may have it, without having said so: it serves all the same.
#[test]
fn a_metrics_port_in_use_is_an_error_in_the_log_and_no_end() {
    run(async {
        let app = App::hello().await;
        let other = Proxy::start(app.port, &[]).await;
        let metrics = other.ports.metrics.to_string();
        let (mut child, ports) = started_with(Stdio::piped(), app.port, &[("EBB_METRICS_PORT", &metrics)]);
        assert_eq!(ports.metrics, 0);
        assert_eq!(ask(ports.requests, "GET", "/", &[], b"").await.status, 200);
        tell(&child, Signal::SIGTERM);
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        let mut told = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut told).expect("text");
        let line = told.lines().find(|line| line.contains(&format!("port {metrics} (metrics)")));
        assert!(line.is_some_and(|line| line.contains("ERROR")), "{told}");
    });
}

/// In Knative's place kubelet asks at the request port: contract §6.3.
#[test]
fn kubelets_probes_have_lines_in_the_request_log_of_knatives_place() {
    run(async {
        let app = App::hello().await;
        let template = "{{.Request.Method}} {{.Request.RequestURI}} {{.Request.UserAgent}}";
        let settings = format!(
            "{{\"enableRequestLog\":true,\"enableProbeRequestLog\":true,\"requestLogTemplate\":\"{template}\"}}"
        );
        let changes = [
            ("SYSTEM_NAMESPACE", "knative-serving"),
            ("QUEUE_SERVING_TLS_PORT", "8112"),
            ("OBSERVABILITY_CONFIG", settings.as_str()),
        ];
        let (mut child, ports) = started_with(Stdio::piped(), app.port, &changes);
        let probe = [("User-Agent", "kube-probe/1.34"), ("K-Network-Probe", "queue")];
        assert_eq!(ask(ports.requests, "GET", "/", &probe, b"").await.status, 200);
        tell(&child, Signal::SIGTERM);
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        let mut told = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut told).expect("text");
        assert!(told.contains("GET / kube-probe/1.34"), "{told}");
    });
}

/// As on a cluster, where it would be one more open port.
#[test]
fn a_stat_port_that_is_off_is_no_port() {
    let (mut child, ports) = started(9, &[("EBB_STAT_PORT", "off")]);
    assert_eq!(ports.stat, 0);
    assert_eq!(listeners_of(child.id()), 4, "requests, admin, link, metrics");
    tell(&child, Signal::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// How many sockets of that process take connections.
fn listeners_of(pid: u32) -> usize {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives");
    let sockets: Vec<String> = entries
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()?.into_os_string().into_string().ok())
        .filter_map(|target| Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let tables = ["tcp", "tcp6"].map(|table| std::fs::read_to_string(format!("/proc/{pid}/net/{table}")));
    let text: String = tables.into_iter().flatten().collect();
    let is_listening = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // 0A: LISTEN.
        fields.get(3) == Some(&"0A")
            && fields.get(9).is_some_and(|inode| sockets.iter().any(|own| own == inode))
    };
    text.lines().filter(is_listening).count()
}

/// The token goes to the reader of our standard output, and to no log.
#[test]
fn an_announcement_says_who_may_call() {
    run(async {
        let (mut child, ports) = started_with(Stdio::piped(), 9, &[("EBB_LOG", "trace")]);
        let token = ports.link_token.expect("there is a token");
        let linked = link::dial::<PodWord, PodOrder>(link_address(&ports)).await;
        let (mut reader, mut writer) = linked.expect("it listens");
        writer.send(&PodOrder::Heartbeat).await.expect("open");
        assert!(matches!(reader.next().await, Ok(Some(PodWord::Hello(_)))));
        tell(&child, Signal::SIGTERM);
        tell(&child, Signal::SIGTERM);
        let mut log = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
        child.wait().expect("it ends");
        assert!(log.contains("listening") && !log.contains(&String::from(token)), "{log}");
    });
}
