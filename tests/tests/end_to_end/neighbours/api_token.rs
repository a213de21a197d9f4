//! The API of `ebb up` among other users of its machine, and on a network: orders, logs and the last words of
//! apps are for those who may read the file with its token.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::{Uid, geteuid, setfsuid};
use tests::ebb::{Account, executable};
use tests::ports::unused_address;
use tests::{ConfigMap, Ebb, Service};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);
/// A user that no machine has anything for.
const STRANGER: Account = Account { user: 65_534, group: 65_534 };
const MODES: u32 = 0o7777;
const ADVICE: &str = "run as the user of ebb to see its last lines";

/// Whether a test can play other users; says so if not.
fn can_become_others() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        eprintln!("not shown here, where nobody can become another user");
    }
    is_root
}

/// Status and body of one request over a connection of its own.
async fn asked(api: SocketAddr, question: &str, token: Option<&str>) -> (u16, String) {
    let credential = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    let mut stream = tokio::net::TcpStream::connect(api).await.expect("the API listens");
    let head = format!("{question} HTTP/1.1\r\nHost: localhost\r\n{credential}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

pub(crate) async fn token_file(ebb: &Ebb) -> PathBuf {
    let (code, path, errors) = ebb.run(&["token"]).await;
    assert_eq!(code, 0, "{errors}");
    path.trim_end().into()
}

pub(crate) fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("it is ours").trim_end().to_owned()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[tokio::test]
async fn another_user_sees_counts_and_neither_commands_nor_reads_what_apps_print() {
    let script = "echo the password is 4711 >&2; exit 3";
    // What follows can take longer than a window, and its end compares pods.
    let hello = Service::new("hello").scaling("min-scale", "1");
    let services = [Service::running("crashes", &["sh", "-c", script]), hello];
    let ebb = Ebb::up(&services, &ConfigMap::short()).await;
    ebb.until("crashes", "its last words", |revision| revision.0.to_string().contains("password is 4711"))
        .await;
    let file = token_file(&ebb).await;
    let metadata = std::fs::metadata(&file).expect("it is there");
    assert_eq!(metadata.permissions().mode() & MODES, 0o600);
    assert!(!ebb.output().contains(&read(&file)), "the token is in no log");

    // A request without a token, from any sender.
    let order = "POST /v1/restart/autoscaler";
    let token = read(&file);
    for question in
        [order, "DELETE /v1/revisions/default/service/hello", "GET /v1/logs/default/service/hello"]
    {
        let in_url = format!("{question}?token={token}&access_token={token}");
        for (question, token) in [(question, None), (question, Some("ebb_0123")), (&in_url, None)] {
            let (status, body) = asked(ebb.api, question, token).await;
            assert_eq!(status, 401, "{question}: {body}");
            assert!(body.contains(&file.display().to_string()) && body.contains("sudo"), "{body}");
        }
    }
    for question in ["GET /v1/revisions", "GET /v1/revisions/default/service/crashes"] {
        let (status, body) = asked(ebb.api, question, None).await;
        assert_eq!(status, 200, "{body}");
        assert!(!body.contains("4711") && body.contains("exited with code 3"), "{body}");
        assert!(body.contains(ADVICE), "{body}");
        assert!(asked(ebb.api, question, Some(&token)).await.1.contains("4711"));
    }
    for question in
        ["GET /metrics", "GET /healthz", "GET /ready", "GET /v1/problems", "GET /v1/http-sd", "GET /"]
    {
        assert_eq!(asked(ebb.api, question, None).await.0, 200, "{question}");
    }

    // The user of `ebb up`.
    let (code, text, errors) = ebb.run(&["explain", "crashes"]).await;
    assert!(code == 0 && text.contains("| the password is 4711") && !text.contains(ADVICE), "{text}{errors}");
    let (code, text, _) = ebb.run(&["logs", "crashes"]).await;
    assert!(code == 0 && text.contains("4711"), "{text}");
    assert_eq!(ebb.run(&["restart", "autoscaler"]).await.0, 0);
    if !can_become_others() {
        return;
    }

    for arguments in
        [&["get"][..], &["get", "-o", "json"], &["explain", "crashes"], &["explain", "crashes", "-o", "json"]]
    {
        let (code, text, errors) = ebb.run_as(STRANGER, arguments).await;
        assert!(code == 0 && text.contains("crashes"), "{arguments:?}: {text}{errors}");
        assert!(!text.contains("4711") && !errors.contains("4711"), "{arguments:?}: {text}{errors}");
    }
    assert!(ebb.run_as(STRANGER, &["explain", "crashes"]).await.1.contains(ADVICE));
    let before = ebb.until_pods("hello", 1).await.pids("app_pid");
    for arguments in [
        &["restart", "autoscaler"][..],
        &["restart", "activator"],
        &["delete", "hello"],
        &["logs", "crashes"],
        &["logs", "crashes", "-f"],
        &["token", "--rotate"],
    ] {
        let (code, text, errors) = ebb.run_as(STRANGER, arguments).await;
        assert_eq!((code, text.as_str()), (1, ""), "{arguments:?}: {errors}");
        for part in [&*file.display().to_string(), "sudo", "`ebb get`, `ebb explain` and /metrics"] {
            assert!(errors.contains(part), "{arguments:?}: {part} is missing in {errors}");
        }
    }
    assert_eq!(ebb.until_pods("hello", 1).await.pids("app_pid"), before);
    assert_eq!(read(&file), token);
}

async fn is_taken(api: SocketAddr, token: &str) -> bool {
    asked(api, "GET /v1/logs/default/service/hello", Some(token)).await.0 == 200
}

#[tokio::test]
async fn the_token_is_kept_over_a_take_over_and_a_restart_until_another_one_is_made() {
    let state = tempfile::tempdir().expect("a temporary folder can be made");
    let preparation = format!("export XDG_STATE_HOME={}", state.path().display());
    let services = [Service::new("hello")];
    let api = unused_address().to_string();
    let up =
        async || Ebb::up_after_with(&preparation, &services, &ConfigMap::short(), &["--api", &api]).await;
    let mut first = up().await;
    let file = token_file(&first).await;
    assert!(file.starts_with(state.path()), "{}", file.display());
    let token = read(&file);

    // It has another state folder, so what it knows it was told.
    let mut second = first.successor().await;
    first.ended().await;
    assert!(is_taken(second.api, &token).await);
    let own = token_file(&second).await;
    assert!(own != file && read(&own) == token, "{}", own.display());
    assert_eq!(second.run(&["restart", "autoscaler"]).await.0, 0);
    second.signal(Signal::SIGTERM);
    second.ended().await;

    let mut third = up().await;
    assert!(is_taken(third.api, &token).await, "over a restart");
    let (code, said, errors) = third.run(&["token", "--rotate"]).await;
    assert_eq!((code, said.trim_end()), (0, &*file.display().to_string()), "{errors}");
    let other = read(&file);
    assert_ne!(other, token);
    assert!(is_taken(third.api, &other).await && !is_taken(third.api, &token).await);
    assert_eq!(third.run(&["logs", "hello"]).await.0, 0, "the command reads the file again");
    third.signal(Signal::SIGTERM);
    third.ended().await;

    // What a full disk left.
    std::fs::write(&file, &other[..20]).expect("it is ours");
    let fourth = up().await;
    assert!(fourth.output().contains("it held no token"), "{}", fourth.output());
    assert!(!is_taken(fourth.api, &other).await && is_taken(fourth.api, &read(&file)).await);
    assert_eq!(fourth.run(&["restart", "activator"]).await.0, 0);
}

#[tokio::test]
async fn each_address_has_a_token_of_its_own_and_a_chosen_port_leaves_no_file() {
    let state = tempfile::tempdir().expect("a temporary folder can be made");
    let preparation = format!("export XDG_STATE_HOME={}", state.path().display());
    let services = [Service::new("hello")];
    let mut one = Ebb::up_after(&preparation, &services, &ConfigMap::short()).await;
    let other = Ebb::up_after(&preparation, &services, &ConfigMap::short()).await;
    let [first, second] = [token_file(&one).await, token_file(&other).await];
    assert_eq!(first.parent(), second.parent());
    assert!(!is_taken(one.api, &read(&second)).await && !is_taken(other.api, &read(&first)).await);
    one.signal(Signal::SIGTERM);
    one.ended().await;
    assert!(!first.exists() && second.exists());
}

#[tokio::test]
async fn an_api_that_other_machines_reach_wants_its_token_for_all_data() {
    let services = [Service::new("hello")];
    let ebb = Ebb::up_with(&services, &ConfigMap::short(), &["--api", "0.0.0.0:0"]).await;
    let warning = "other machines reach the API";
    assert!(ebb.output().contains(warning) && ebb.output().contains("speaks no TLS"), "{}", ebb.output());
    let file = token_file(&ebb).await;
    let token = read(&file);
    for page in ["/ready", "/metrics", "/v1/revisions", "/v1/problems", "/v1/http-sd", "/v1/nothing"] {
        let question = format!("GET {page}");
        let (status, body) = asked(ebb.api, &question, None).await;
        assert!(status == 401 && body.contains("sudo"), "{page}: {status} {body}");
        let (status, _) = asked(ebb.api, &question, Some(&token)).await;
        assert_eq!(status, if page == "/v1/nothing" { 404 } else { 200 }, "{page}");
    }
    assert_eq!(asked(ebb.api, "GET /healthz", None).await.0, 200);
    // The files of the dashboard hold no data: a browser opens them before it has the token.
    let (status, page) = asked(ebb.api, "GET /", None).await;
    assert!(status == 200 && !page.contains("hello"), "{status} {page}");
    let (code, text, errors) = ebb.run(&["get"]).await;
    assert!(code == 0 && text.contains("hello"), "{text}{errors}");
    let copy = ebb.folder().join("a copy of the token");
    std::fs::copy(&file, &copy).expect("it is ours");
    let of_copy = ebb.run(&["get", "--token-file", &copy.display().to_string()]).await;
    assert_eq!(of_copy.0, 0, "{}", of_copy.2);
    if can_become_others() {
        let (code, _, errors) = ebb.run_as(STRANGER, &["get"]).await;
        assert!(code == 1 && errors.contains(&file.display().to_string()), "{errors}");
        assert!(errors.contains("sudo") && errors.contains("/healthz"), "{errors}");
    }
}

#[tokio::test]
async fn a_group_that_is_let_in_commands_and_others_do_not() {
    if !can_become_others() {
        return;
    }
    let services = [Service::new("hello")];
    let ebb = Ebb::up_with(&services, &ConfigMap::short(), &["--token-group", "65534"]).await;
    let file = token_file(&ebb).await;
    set_mode(ebb.folder(), 0o711);
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & MODES, 0o640);
    let member = Account { user: 65_533, group: 65_534 };
    let (code, _, errors) = ebb.run_as(member, &["restart", "autoscaler"]).await;
    assert_eq!(code, 0, "{errors}");
    let other = Account { user: 65_533, group: 65_533 };
    let (code, _, errors) = ebb.run_as(other, &["restart", "autoscaler"]).await;
    assert!(code == 1 && errors.contains("sudo"), "{errors}");
}

/// Answers as an API whose token is in this file, in the name of a user. Everything that is sent to it can
/// be received.
fn pretend_api(user: u32, file: PathBuf) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (heard_in, heard) = mpsc::channel();
    std::thread::spawn(move || {
        // Of this thread alone. What it makes from here on, such as the sockets that it accepts, is that
        // user's.
        setfsuid(Uid::from_raw(user));
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut bytes) {
                let _ = heard_in.send(String::from_utf8_lossy(&bytes[..length]).into_owned());
                let body = serde_json::json!({"version": 1, "token_file": file}).to_string();
                let start = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                if write!(stream, "{start}{body}").is_err() {
                    break;
                }
            }
        }
    });
    (address, heard)
}

#[tokio::test]
async fn no_command_sends_a_token_to_a_process_of_another_user() {
    if !can_become_others() {
        return;
    }
    let ebb = Ebb::up(&[Service::new("hello")], &ConfigMap::short()).await;
    let file = token_file(&ebb).await;
    let (token, own) = (read(&file), geteuid().as_raw());
    // The first shows that the second could fail.
    for (user, expected) in [(own, true), (STRANGER.user, false)] {
        let (address, heard) = pretend_api(user, file.clone());
        let mut command = Command::new(executable());
        command.args(["restart", "autoscaler", "--api", &format!("http://{address}")]).kill_on_drop(true);
        let output =
            tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends").expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let all: String = heard.try_iter().collect();
        assert!(all.contains("POST /v1/restart/autoscaler"), "{all}{errors}");
        assert_eq!(all.contains(&token), expected, "{errors}");
        assert_eq!(errors.contains(&format!("is no file of user {}", STRANGER.user)), !expected, "{errors}");
    }
}

#[tokio::test]
async fn a_stream_of_logs_that_was_begun_goes_on_when_the_token_changes() {
    let talks = Service::running("talks", &["sh", "-c", "while sleep 0.2; do echo again >&2; done"]);
    let ebb = Ebb::up(&[talks], &ConfigMap::short()).await;
    let file = token_file(&ebb).await;
    let request = format!(
        "GET /v1/logs/default/service/talks?follow=true HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        read(&file)
    );
    let mut stream = tokio::net::TcpStream::connect(ebb.api).await.expect("the API listens");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    assert_eq!(ebb.run(&["token", "--rotate"]).await.0, 0);
    let mut some = [0; 4096];
    let mut all = String::new();
    while all.matches("again").count() < 5 {
        let length =
            tokio::time::timeout(PATIENCE, stream.read(&mut some)).await.expect("in time").expect("bytes");
        assert!(length > 0, "it ended: {all}");
        all.push_str(&String::from_utf8_lossy(&some[..length]));
    }
}

#[tokio::test]
async fn a_unit_lets_a_group_read_the_token_where_the_group_can_reach_it() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    // The user of the service has to read the manifests.
    set_mode(folder.path(), 0o755);
    let manifest = folder.path().join("hello.yaml");
    std::fs::write(&manifest, Service::new("hello").yaml()).expect("it can be written");
    let install = async |arguments: &[&str]| {
        let mut command = Command::new(executable());
        command.args(["install", "--dry-run", "--system", "--token-group", "65534"]).args(arguments);
        command.arg("-f").arg(&manifest);
        let output = command.output().await.expect("it starts");
        let [said, errors] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.code(), said, errors)
    };
    let (code, said, errors) = install(&["--run-as", "daemon"]).await;
    assert_eq!(code, Some(0), "{errors}");
    let start = said.lines().find(|line| line.starts_with("ExecStart=")).expect("a service");
    assert!(start.contains(" --token-group 65534 "), "{start}");
    for line in ["SupplementaryGroups=65534", "StateDirectory=ebb", "User=daemon"] {
        assert!(said.lines().any(|said| said == line), "{line} is not in {said}");
    }
    // What systemd keeps of a user that it makes up is behind a folder that root alone may enter.
    let (code, said, errors) = install(&[]).await;
    assert_eq!((code, said.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains("--token-group takes --run-as"), "{errors}");
}
