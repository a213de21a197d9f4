//! Clients of other makers before both proxies, in every protocol that they speak.
//!
//! Each is a program with the arguments PORT HOST PROTOCOL BYTES, which says a word for each thing that it
//! has done and seen to be right:
//!
//! | word | what it did |
//! |---|---|
//! | `body` | sent so many bytes and got each of them back |
//! | `trailers` | sent some, if it can, and got those of the app |
//! | `duplex` | read the answer to what it had sent before it sent more |
//! | `cancel` | left an exchange in its middle; the app noticed, and others were served |
//!
//! What is not among a client's words it cannot do. `$PEERS_MEGABYTES` says how large bodies are (100 if it
//! does not).

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tests::bench::api;
use tests::bench::machine::Cores;
use tests::bench::process::Process;
use tests::bench::proxies::{Place, Protocol, Server, Target, queue_proxy};
use tests::world::{ROUTINGS, warm};

use crate::programs::{interop, java, python, tonic};
use crate::{curl, nghttp2};

/// How long a client may take for everything, in seconds. Only a failing one waits so long.
const PATIENCE: &str = "400";

/// Where clients find a service.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) port: u16,
    pub(crate) host: String,
    /// For people.
    pub(crate) name: String,
}

/// One client in one protocol.
struct Client {
    name: &'static str,
    protocol: &'static str,
    command: fn() -> Command,
    words: &'static [&'static str],
}

const CLIENTS: &[Client] = &[
    Client {
        name: "Node's http",
        protocol: "http1",
        command: node,
        words: &["body", "trailers", "duplex", "cancel"],
    },
    Client {
        name: "Node's http2",
        protocol: "h2c",
        command: node,
        words: &["body", "trailers", "duplex", "cancel"],
    },
    Client {
        name: "Python's aiohttp",
        protocol: "http1",
        command: python_client,
        words: &["body", "duplex", "cancel"],
    },
    Client { name: "Python's httpx", protocol: "h2c", command: python_client, words: &["body", "cancel"] },
    Client { name: "java.net.http", protocol: "http1", command: java_client, words: &["body", "cancel"] },
    // It offers an upgrade, which nobody has to take, and goes on with HTTP/1.1.
    Client {
        name: "java.net.http that would upgrade",
        protocol: "upgrade",
        command: java_client,
        words: &["body", "cancel"],
    },
    Client {
        name: "tonic",
        protocol: "h2c",
        command: tonic_client,
        words: &["body", "trailers", "duplex", "cancel"],
    },
];

fn node() -> Command {
    let mut command = Command::new("node");
    command.arg(interop("node/client.js"));
    command
}

fn python_client() -> Command {
    let mut command = Command::new(python());
    command.arg(interop("python/client.py"));
    command
}

fn java_client() -> Command {
    let mut command = Command::new(java());
    command.arg(interop("java/Client.java"));
    command
}

fn tonic_client() -> Command {
    Command::new(tonic())
}

/// How large bodies are.
pub(crate) fn megabytes() -> usize {
    std::env::var("PEERS_MEGABYTES")
        .map_or(100, |number| number.parse().expect("$PEERS_MEGABYTES is a number"))
}

#[tokio::test]
async fn clients_of_others_work_through_both_proxies() {
    let ebb = warm(|service| service).await;
    let port = ebb.requests.port();
    for routing in ROUTINGS {
        let door = Door { port, host: routing.host(), name: format!("{routing:?}") };
        let played = tokio::task::spawn_blocking(move || play(&door));
        played.await.expect("every client has said all its words");
    }
}

#[test]
fn clients_of_others_work_before_the_queue_proxy_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let cores = Cores::divide().expect("this process runs on some core").all();
    let place = Place { folder: folder.path(), cores: &cores };
    let mut command = Command::new(tests::ebb::test_app());
    let app_port = free_port();
    command.env("PORT", app_port.to_string());
    let _app = Process::start(command, "test-app", place.folder, place.cores).expect("the app starts");
    let listens = || Ok(TcpStream::connect(("127.0.0.1", app_port))?);
    api::until(Duration::from_secs(20), listens).expect("the app listens");
    let target = Target { protocol: Protocol::Http1, port: app_port };
    let server: Server =
        queue_proxy(&tests::ebb::executable(), target, 0, place).expect("the queue-proxy serves");
    play(&Door { port: server.port, host: "localhost".to_owned(), name: "the queue-proxy alone".to_owned() });
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

fn play(door: &Door) {
    curl::check(door);
    nghttp2::check(door);
    for client in CLIENTS {
        let bytes = megabytes() * 1024 * 1024;
        let command = (client.command)();
        let output = Command::new("timeout")
            .arg(PATIENCE)
            .arg(command.get_program())
            .args(command.get_args())
            .args([&door.port.to_string(), &door.host, client.protocol, &bytes.to_string()])
            .output()
            .expect("coreutils are there");
        let said = String::from_utf8_lossy(&output.stdout);
        let words: Vec<&str> = said.lines().collect();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}, {}: after {words:?}: {why}", door.name, client.name);
        assert_eq!(words, client.words, "{}, {}: {why}", door.name, client.name);
        println!("{}: {} over {}: {}", door.name, client.name, client.protocol, words.join(", "));
    }
}

/// A file of so many bytes, no piece of which looks like another.
pub(crate) fn body_file(folder: &std::path::Path) -> PathBuf {
    let path = folder.join("body");
    let bytes: Vec<u8> = (0..megabytes() * 1024 * 1024).map(|at| (at ^ (at >> 8)).to_le_bytes()[0]).collect();
    std::fs::write(&path, bytes).expect("there is room for a body");
    path
}
