//! What apps print: nothing is lost on the way to a file or pipe, and it can be asked for later.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tests::client::whole_answer;
use tests::ebb::executable;
use tests::{ConfigMap, Ebb, Service, eventually};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

const PATIENCE: Duration = Duration::from_secs(60);

/// An app that prints and then lives on. No probe asks whether it is ready.
fn printer(name: &str, script: &str) -> Service {
    Service::running(name, &["sh", "-c", &format!("{script}; exec sleep 1000")])
        .scaling("min-scale", "1")
        .container("readinessProbe:\n  exec:\n    command: [\"true\"]")
}

/// `ebb up` with this Service whose standard output the test alone reads; its folder goes with what is
/// returned.
fn piped(service: &Service, arguments: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("app.yaml"), service.yaml()).expect("writing");
    let mut child = Command::new(executable())
        .args(["up", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "-f", "app.yaml"])
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the executable starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    (child, lines, folder)
}

/// Pods start while activators are still made ready; the program that has started `ebb up` reads its first
/// lines.
#[tokio::test]
async fn every_address_is_printed_before_any_pod_prints() {
    let service = printer("early", "echo now").scaling("min-scale", "8");
    let (_child, mut lines, _folder) = piped(&service, &["--activators", "16"]);
    let reading = async {
        for expected in ["requests: http://", "api: http://", "default/service/early: http://"] {
            let line = lines.next_line().await.expect("it prints").expect("a line");
            assert!(line.starts_with(expected), "{line}");
        }
        while lines.next_line().await.expect("it prints").expect("a line") != "[early-00001-0001] now" {}
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("it prints that");
}

#[tokio::test]
async fn no_line_is_dropped_for_a_reader_that_is_slow() {
    const LINES: usize = 50_000;
    let (_child, mut lines, _folder) = piped(&printer("chatty", &format!("seq 1 {LINES}")), &[]);
    let mut next: usize = 1;
    let reading = async {
        while next <= LINES {
            let line = lines.next_line().await.expect("it prints").expect("a line");
            // The queue-proxy logs under the same name.
            let number: Option<usize> =
                line.strip_prefix("[chatty-00001-0001] ").and_then(|line| line.parse().ok());
            let Some(number) = number else { continue };
            assert_eq!(next, number, "{line}");
            // More than the pipes and queues on the way have room for.
            if next == 1 {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            next += 1;
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("every line comes");
}

#[tokio::test]
async fn logs_can_be_asked_for_also_of_a_pod_that_has_ended() {
    let script = "echo to stdout; echo to stderr >&2; sleep 1; echo last words >&2; exit 7";
    let failing = Service::running("failing", &["sh", "-c", script]).scaling("min-scale", "1");
    let ebb = Ebb::up(&[failing, printer("living", "echo alive")], &ConfigMap::short()).await;
    eventually("the lines of the pod that ended", PATIENCE, || async {
        let (code, stdout, stderr) = ebb.run(&["logs", "failing", "--previous", "-o", "json"]).await;
        let lines: Vec<Value> = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut said: Vec<(&str, &str)> = lines
            .iter()
            .filter_map(|line| Some((line["stream"].as_str()?, line["line"].as_str()?)))
            .filter(|(stream, _)| *stream != "queue-proxy")
            .collect();
        said.sort_unstable();
        let expected = [("stderr", "last words"), ("stderr", "to stderr"), ("stdout", "to stdout")];
        if code == 0 && said == expected { Ok(()) } else { Err(format!("{stdout}{stderr}")) }
    })
    .await;
    let (_, text, _) = ebb.run(&["logs", "living", "--since", "5m"]).await;
    assert!(text.contains("[living-00001-") && text.contains("] alive"), "{text}");
    let revision = ebb.until("failing", "its last words", |revision| {
        revision.field("last_failure")["last_lines"].to_string().contains("last words")
    });
    assert_eq!(revision.await.field("last_failure")["reason"], "the app exited with code 7");
    let (_, explained, _) = ebb.run(&["explain", "failing"]).await;
    assert!(explained.contains("| last words"), "{explained}");
}

/// A terminal does what it is told, and apps print what they like.
#[tokio::test]
async fn control_characters_of_apps_are_shown_as_text_and_only_raw_logs_have_them() {
    let print = r"printf 'loud \033[31mred\n'";
    let living = printer("living", print);
    let failing =
        Service::running("failing", &["sh", "-c", &format!("{print} >&2; exit 7")]).scaling("min-scale", "1");
    let ebb = Ebb::up(&[living, failing], &ConfigMap::short()).await;
    ebb.until("failing", "its last words", |revision| {
        revision.field("last_failure")["last_lines"].to_string().contains("loud")
    })
    .await;
    eventually("the line as it was printed", PATIENCE, || async {
        let (_, text, errors) = ebb.run(&["logs", "living", "--raw"]).await;
        if text.contains("loud \u{1b}[31mred\n") { Ok(()) } else { Err(format!("{text:?} {errors}")) }
    })
    .await;
    let all: [&[&str]; 6] = [
        &["logs", "living"],
        &["logs", "living", "-o", "json"],
        &["explain", "failing"],
        &["explain", "failing", "-o", "json"],
        &["get", "-o", "wide"],
        &["get", "-o", "json"],
    ];
    for arguments in all {
        let (code, text, errors) = ebb.run(arguments).await;
        assert_eq!(code, 0, "{arguments:?}: {errors}");
        let is_escaped = text.contains(r"loud \u001b[31mred") && !text.contains('\u{1b}');
        assert!(is_escaped, "{arguments:?}: {text:?}");
    }
}

#[tokio::test]
async fn a_failed_pods_last_words_survive_its_successor_and_being_given_up() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let marker = folder.path().join("failed-once");
    let once = format!(
        "if [ -e {0} ]; then exec sleep 1000; fi; touch {0}; echo only once >&2; exit 7",
        marker.display()
    );
    let mends = printer("mends", &once);
    let given_up = Service::running("given-up", &["sh", "-c", "echo never again >&2; exit 8"])
        .annotation("serving.knative.dev/progress-deadline", "1s");
    let ebb = Ebb::up(&[mends, given_up], &ConfigMap::short()).await;
    ebb.until("mends", "a successor that works", |revision| revision.ready() == 1).await;
    // The progress deadline and 30 s later the activation is over.
    ebb.until_within("given-up", "giving up", Duration::from_secs(90), |revision| {
        revision.wanted() == 0 && revision.pods().is_empty()
    })
    .await;
    for (service, words, code) in [("mends", "only once", 7), ("given-up", "never again", 8)] {
        let revision = ebb.revision(service).await.expect("ebb answers");
        let failure = revision.field("last_failure");
        assert_eq!(failure["reason"], format!("the app exited with code {code}"), "{revision:?}");
        assert_eq!(failure["last_lines"], serde_json::json!([words]), "{revision:?}");
        let (_, explained, _) = ebb.run(&["explain", service]).await;
        assert!(explained.contains(&format!("| {words}")), "{explained}");
    }
    for parts in [
        ["a pod is started pod=mends-00001-", " why=\"initial scale 1\""],
        ["why=\"instead of mends-00001-", ", which failed: the app exited with code 7: only once\""],
    ] {
        let is_said = ebb.output().lines().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(is_said, "{parts:?} is not in\n{}", ebb.output());
    }
}

#[tokio::test]
async fn dropped_lines_are_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let go = folder.path().join("go");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; seq 1 50000", go.display());
    let (_child, mut lines, _folder) = piped(&printer("chatty", &script), &["--log-patience", "0s"]);
    let api = loop {
        let line = lines.next_line().await.expect("it prints").expect("a line");
        if let Some(api) = line.strip_prefix("api: http://") {
            break api.parse().expect("an address");
        }
    };
    let dropped = || async move {
        let page = whole_answer(api, "localhost", "/metrics").await.map_err(|error| error.to_string())?;
        let series = "supervisor_dropped_log_lines_total{namespace=\"default\",revision=\"service/chatty\"} ";
        let count = page.lines().find_map(|line| line.strip_prefix(series)?.parse::<u64>().ok());
        count.ok_or(page)
    };
    assert_eq!(eventually("the counter", PATIENCE, dropped).await, 0);
    // From here on no reader reads.
    std::fs::write(&go, "").expect("writing");
    eventually("dropped lines", PATIENCE, || async {
        let count = dropped().await?;
        if count > 0 { Ok(()) } else { Err("none yet".to_owned()) }
    })
    .await;
}

#[tokio::test]
async fn further_lines_are_followed() {
    let ebb = Ebb::up(
        &[printer("counting", "for i in $(seq 1 600); do echo $i; sleep 0.1; done")],
        &ConfigMap::short(),
    )
    .await;
    let mut child = Command::new(executable())
        .args(["logs", "counting", "-f", "--api", &format!("http://{}", ebb.api)])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the executable starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let following = async {
        let mut next: usize = 1;
        while next <= 30 {
            let line = lines.next_line().await.expect("it prints").expect("a line");
            let number: Option<usize> =
                line.strip_prefix("[counting-00001-0001] ").and_then(|line| line.parse().ok());
            // The queue-proxy logs under the same name.
            let Some(number) = number else { continue };
            assert_eq!(next, number, "{line}");
            next += 1;
        }
    };
    tokio::time::timeout(PATIENCE, following).await.expect("thirty lines come");
}

#[tokio::test]
async fn every_line_is_json_where_that_is_asked_for() {
    // It is warned of at the start that this has no effect.
    let service = printer("plain", "echo hello").container("imagePullPolicy: Always");
    let (mut child, mut stdout, _folder) = piped(&service, &["--log-format", "json"]);
    // A quick pod's first line may come before the addresses.
    let reading = async {
        let (mut welcome, mut line, mut proxy) = (None, None, None);
        while welcome.is_none() || line.is_none() || proxy.is_none() {
            let text = stdout.next_line().await.expect("it prints").expect("a line");
            let read: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            if read["line"] == "hello" {
                line = Some(read);
            } else if read["stream"] == "queue-proxy" {
                proxy = Some(read);
            } else if read["requests"].is_string() {
                welcome = Some(read);
            }
        }
        [welcome, line, proxy].map(|line| line.expect("it was seen"))
    };
    let [welcome, line, proxy] = tokio::time::timeout(PATIENCE, reading).await.expect("all three come");
    assert!(welcome["requests"].as_str().is_some_and(|url| url.starts_with("http://")), "{welcome}");
    assert_eq!((&line["stream"], &line["pod"]), (&"stdout".into(), &"plain-00001-0001".into()), "{line}");
    assert!(proxy["pod"] == line["pod"] && proxy["line"].is_string(), "{proxy}");
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    tests::ebb::signal_process(child.id().expect("it runs"), nix::sys::signal::Signal::SIGTERM);
    let mut said = String::new();
    while let Some(line) = stderr.next_line().await.expect("it prints") {
        let read: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        said += &read.to_string();
    }
    assert!(said.contains("imagePullPolicy"), "{said}");
    while let Some(line) = stdout.next_line().await.expect("it prints") {
        let _: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

/// Fails unless each line is an object that has a level and says something.
fn assert_json(stderr: &str) {
    assert!(!stderr.is_empty(), "nothing was said");
    for line in stderr.lines() {
        let read: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(read["level"].is_string() && read["fields"]["message"].is_string(), "{line}");
    }
}

#[tokio::test]
async fn errors_at_the_start_are_json_too() {
    let ebb = Ebb::up(&[printer("plain", "echo hello")], &ConfigMap::short()).await;
    ebb.write("broken.yaml", "kind: Service\n");
    let good = ebb.folder().join("plain.yaml").to_string_lossy().into_owned();
    let broken = ebb.folder().join("broken.yaml").to_string_lossy().into_owned();
    let (used, free) = (ebb.requests.to_string(), "127.0.0.1:0".to_owned());
    for (listen, file, more, expected) in [
        (&free, &broken, &[][..], "broken.yaml"),
        (&used, &good, &[], "cannot listen on"),
        (&free, &good, &["--log", "ebb=nonsense"], "malformed"),
        (&free, &good, &["--tls-cert", "/none", "--tls-key", "/none"], "/none"),
    ] {
        let mut command = Command::new(executable());
        command.args(["up", "--log-format", "json", "--api", "127.0.0.1:0", "--listen", listen, "-f", file]);
        let output = command.args(more).stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(PATIENCE, output).await.expect("it ends").expect("it starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_json(&stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(expected), "{expected}: {stderr}");
    }
    ebb.write("broken.yaml", "");
    std::fs::remove_file(broken).expect("it is there");
    let arguments = ["--log-format", "json", "--listen", "127.0.0.1:1"];
    let (code, stderr) = ebb.failing_successor(&arguments).await;
    assert_json(&stderr);
    assert!(code == 1 && stderr.contains("could not be taken over"), "{code}: {stderr}");
}

#[tokio::test]
async fn an_edit_its_rollout_and_the_end_of_that_are_lines_of_the_log_in_this_order() {
    let service = Service::new("rolling").scaling("min-scale", "2").scaling("max-scale", "2");
    let ebb = Ebb::up(std::slice::from_ref(&service), &ConfigMap::short()).await;
    ebb.until_pods("rolling", 2).await;
    let done = "rolled out: every older pod is on its way out";
    assert!(!ebb.output().contains(done), "the first template takes over from nobody\n{}", ebb.output());
    ebb.rewrite(&service.env("GREETING", "new"));
    let steps = [
        &["edited: new pods take over", "revision=default/service/rolling"][..],
        &["a pod is started pod=rolling-00002-0003", "why=\"rollout of rolling-00002\""],
        &["a pod is started pod=rolling-00002-0004", "why=\"rollout of rolling-00002\""],
        &[done, "revision=default/service/rolling", "template=\"rolling-00002\""],
    ];
    eventually("every step of the rollout", PATIENCE, || async {
        let output = ebb.output();
        let place =
            |parts: &&[&str]| output.lines().position(|line| parts.iter().all(|part| line.contains(part)));
        let places: Vec<Option<usize>> = steps.iter().map(place).collect();
        if places.iter().all(Option::is_some) && places.is_sorted() {
            Ok(())
        } else {
            Err(format!("{places:?}\n{output}"))
        }
    })
    .await;
    let revision = ebb.until("rolling", "only new pods", |revision| revision.pods().len() == 2).await;
    assert!(revision.pods().iter().all(|pod| pod["outdated"] == false), "{revision:?}");
    let output = ebb.output();
    assert_eq!(output.matches(done).count(), 1, "{output}");
    let of_a_pod = |line: &&str| line.contains(" INFO ") && line.contains("rolling-00001-0001");
    let told: Vec<&str> = output.lines().filter(of_a_pod).collect();
    assert_eq!(told.len(), 2, "a pod is started, and is ready: {told:#?}");
}

#[tokio::test]
async fn lines_older_than_asked_for_are_not_shown() {
    let script = "echo first; while ! [ -e go ]; do sleep 0.05; done; echo second";
    let ebb = Ebb::up(&[printer("printer", script)], &ConfigMap::short()).await;
    let shown = async |arguments: &[&str], text: &str| {
        eventually(text, PATIENCE, || async {
            let (code, stdout, stderr) = ebb.run(&[&["logs", "printer"], arguments].concat()).await;
            if code == 0 && stdout.contains(text) { Ok(stdout) } else { Err(stdout + &stderr) }
        })
        .await
    };
    shown(&[], "] first").await;
    // So that it is older than what is asked for below.
    tokio::time::sleep(Duration::from_secs(4)).await;
    ebb.write("go", "");
    let stdout = shown(&["--since", "3s"], "] second").await;
    assert!(!stdout.contains("] first"), "{stdout}");
    let stdout = shown(&["--since", "5m"], "] second").await;
    assert!(stdout.contains("] first"), "{stdout}");
}
