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
//! What is not among a client's words it cannot do; docs/design/data-plane.md has the table.
//! `$PEERS_MEGABYTES` says how large bodies are (100 if it does not).

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use tests::bench::api;
use tests::bench::machine::Cores;
use tests::bench::process::Process;
use tests::bench::proxies::{Place, Protocol, Server, Target, queue_proxy};
use tests::ports::unused_port;
use tests::world::{ROUTINGS, warm_copies};

use crate::programs::{built, interop, java, python, tonic};
use crate::stopwatch::Stopwatch;
use crate::{curl, nghttp2};

/// How long a client may take for everything, in seconds. Only a failing one waits so long.
const PATIENCE: &str = "400";

/// Everything that a client can show.
pub(crate) const ALL: &[&str] = &["body", "trailers", "duplex", "cancel"];

/// Where clients find a service.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) port: u16,
    pub(crate) host: String,
    /// The client's name, as people read it.
    pub(crate) name: String,
    tls: Option<TlsDoor>,
}

/// Where they find it over TLS.
#[derive(Clone, Debug)]
struct TlsDoor {
    port: u16,
    certificate: PathBuf,
}

/// One client in one protocol.
struct Client {
    name: &'static str,
    protocol: &'static str,
    command: fn() -> Command,
    words: &'static [&'static str],
}

const CLIENTS: &[Client] = &[
    Client { name: "Node's http", protocol: "http1", command: node, words: ALL },
    Client { name: "Node's http2", protocol: "h2c", command: node, words: ALL },
    Client {
        name: "Python's aiohttp",
        protocol: "http1",
        command: python_client,
        words: &["body", "duplex", "cancel"],
    },
    Client { name: "Python's httpx", protocol: "h2c", command: python_client, words: &["body", "cancel"] },
    Client { name: "Python's grpcio", protocol: "h2c", command: python_grpc_client, words: ALL },
    Client { name: "java.net.http", protocol: "http1", command: java_client, words: &["body", "cancel"] },
    // It offers an upgrade, which no server has to take, and goes on with HTTP/1.1.
    Client {
        name: "java.net.http that would upgrade",
        protocol: "upgrade",
        command: java_client,
        words: &["body", "cancel"],
    },
    // Only within TLS does it begin with HTTP/2.
    Client {
        name: "java.net.http over TLS",
        protocol: "https",
        command: java_client,
        words: &["body", "cancel"],
    },
    Client { name: "tonic", protocol: "h2c", command: tonic_client, words: ALL },
    Client { name: "grpc-go", protocol: "h2c", command: grpc_go_client, words: ALL },
];

impl Client {
    /// What it is told; nothing where its protocol is not spoken.
    fn arguments(&self, door: &Door) -> Option<Vec<String>> {
        let bytes = megabytes() * 1024 * 1024;
        let arguments = |port: u16| {
            [port.to_string(), door.host.clone(), self.protocol.to_owned(), bytes.to_string()].to_vec()
        };
        if self.protocol != "https" {
            return Some(arguments(door.port));
        }
        let tls = door.tls.as_ref()?;
        let mut arguments = arguments(tls.port);
        arguments.push(tls.certificate.to_string_lossy().into_owned());
        Some(arguments)
    }
}

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

fn python_grpc_client() -> Command {
    let mut command = Command::new(python());
    command.arg(interop("python/grpc_client.py"));
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

fn grpc_go_client() -> Command {
    let mut command = Command::new(built("grpc-go", "."));
    command.arg("check");
    command
}

/// The size of large bodies, in megabytes.
pub(crate) fn megabytes() -> usize {
    std::env::var("PEERS_MEGABYTES")
        .map_or(100, |number| number.parse().expect("$PEERS_MEGABYTES is a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_others_work_through_both_proxies() {
    let _timed = Stopwatch::of("clients through both proxies");
    let players = players();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let [certificate, key] = identity(folder.path(), players.len());
    let [certificate_text, key_text] = [&certificate, &key].map(|path| path.to_str().expect("UTF-8"));
    let tls = ["--tls-cert", certificate_text, "--tls-key", key_text, "--tls-listen", "127.0.0.1:0"];
    let mut ebb = warm_copies(&tls, players.len()).await;
    let tls = TlsDoor { port: ebb.requests_over_tls().await.port(), certificate };
    let port = ebb.requests.port();
    for routing in ROUTINGS {
        let door = |copy| {
            let name = format!("{routing:?}");
            Door { port, host: routing.copy_host(copy), name, tls: Some(tls.clone()) }
        };
        tokio::task::block_in_place(|| play(&players, |copy, player| player(&door(copy))));
    }
}

/// A certificate of all copies of both services, which signs itself, and its key.
fn identity(folder: &Path, copies: usize) -> [PathBuf; 2] {
    let files = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
    let key = KeyPair::generate().expect("a key");
    let hosts = (0..copies).flat_map(|copy| ROUTINGS.map(|routing| routing.copy_host(copy)));
    let hosts: Vec<String> = hosts.collect();
    let certificate = CertificateParams::new(hosts).expect("names").self_signed(&key).expect("a certificate");
    for (file, text) in files.iter().zip([certificate.pem(), key.serialize_pem()]) {
        std::fs::write(file, text).expect("the folder can be written");
    }
    files
}

#[test]
fn clients_of_others_work_before_a_queue_proxy_whose_app_speaks_http1() {
    let _timed = Stopwatch::of("clients before a queue-proxy whose app speaks HTTP/1.1");
    play(&players(), |_, player| play_before_queue_proxy(Protocol::Http1, player));
}

#[test]
fn clients_of_others_work_before_a_queue_proxy_whose_app_speaks_http2() {
    let _timed = Stopwatch::of("clients before a queue-proxy whose app speaks HTTP/2");
    play(&players(), |_, player| play_before_queue_proxy(Protocol::H2c, player));
}

/// The app speaks that alone, so that clients of the other protocol are translated.
fn play_before_queue_proxy(protocol: Protocol, player: &Player) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let cores = Cores::divide().expect("this process runs on some core").all();
    let place = Place { folder: folder.path(), cores: &cores };
    let mut command = Command::new(tests::ebb::test_app());
    let app_port = unused_port();
    command.env("PORT", app_port.to_string()).args(["--only", protocol.name()]);
    let _app = Process::start(command, "test-app", place.folder, place.cores).expect("the app starts");
    let listens = || Ok(TcpStream::connect(("127.0.0.1", app_port))?);
    api::until(Duration::from_secs(20), listens).expect("the app listens");
    let target = Target { protocol, port: app_port };
    let server: Server =
        queue_proxy(&tests::ebb::executable(), target, 0, place).expect("the queue-proxy serves");
    let name = format!("a queue-proxy, {} behind it", protocol.name());
    player(&Door { port: server.port, host: "localhost".to_owned(), name, tls: None });
}

#[test]
fn the_documentation_says_what_each_client_shows() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/design/data-plane.md");
    let docs = std::fs::read_to_string(file).expect("it is there");
    let ours = CLIENTS.iter().map(|client| (client.name, client.protocol, client.words));
    for (name, protocol, words) in curl::SHOWN.into_iter().chain(nghttp2::SHOWN).chain(ours) {
        let row = format!("| {name} | `{protocol}` | {} |", words.join(", "));
        assert!(
            docs.lines().any(|line| line.starts_with(&row)),
            "docs/design/data-plane.md has no row {row}"
        );
    }
}

/// Everything that one client does at a door.
type Player = Box<dyn Fn(&Door) + Sync>;

/// All clients, after what they run has been built.
fn players() -> Vec<Player> {
    let mut players: Vec<Player> = vec![Box::new(curl::check), Box::new(nghttp2::check)];
    for client in CLIENTS {
        let _built = (client.command)();
        players.push(Box::new(|door| client.check(door)));
    }
    players
}

/// All clients at the same time, each before an app of its own: an app hears a minute later that a client has
/// closed its connection of HTTP/1.1 (docs/design/data-plane.md), and each client waits for that.
fn play(players: &[Player], before_its_app: impl Fn(usize, &Player) + Sync) {
    std::thread::scope(|threads| {
        for (number, player) in players.iter().enumerate() {
            let before_its_app = &before_its_app;
            threads.spawn(move || before_its_app(number, player));
        }
    });
}

impl Client {
    fn check(&self, door: &Door) {
        let Some(arguments) = self.arguments(door) else { return };
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let hosts = folder.path().join("hosts");
        std::fs::write(&hosts, format!("127.0.0.1 {}\n", door.host)).expect("the folder can be written");
        let command = (self.command)();
        let output = Command::new("timeout")
            .arg(PATIENCE)
            .arg(command.get_program())
            .args(command.get_args())
            .args(arguments)
            // java.net.http sends no other Host than that of the address, so it finds the name here.
            .env("JAVA_TOOL_OPTIONS", format!("-Djdk.net.hosts.file={}", hosts.display()))
            .output()
            .expect("coreutils are there");
        let said = String::from_utf8_lossy(&output.stdout);
        let words: Vec<&str> = said.lines().collect();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}, {}: after {words:?}: {why}", door.name, self.name);
        assert_eq!(words, self.words, "{}, {}: {why}", door.name, self.name);
        println!("{}: {} over {}: {}", door.name, self.name, self.protocol, words.join(", "));
    }
}

/// A file of so many bytes, no piece of which looks like another.
pub(crate) fn body_file(folder: &std::path::Path) -> PathBuf {
    let path = folder.join("body");
    let bytes: Vec<u8> = (0..megabytes() * 1024 * 1024).map(|at| (at ^ (at >> 8)).to_le_bytes()[0]).collect();
    std::fs::write(&path, bytes).expect("there is room for a body");
    path
}
