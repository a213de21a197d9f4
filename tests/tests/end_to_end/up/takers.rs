//! A process that asks for everything and does not take it, or may not: until the last message the running
//! one owns everything, and goes on as if it had not been asked.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::geteuid;
use serde_json::{Value, json};
use tests::ebb::executable;
use tests::{ConfigMap, Ebb, Service, eventually};
use tokio::process::Command;

use crate::up::take_over::{processes, three};

const PATIENCE: Duration = Duration::from_secs(60);
/// The number of descriptors that travel in one piece.
const AT_ONCE: usize = 64;

/// Where the `ebb up` of this user with this API is asked.
fn place(api: SocketAddr) -> PathBuf {
    let given = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"].iter().find_map(std::env::var_os);
    let folder = given.map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| std::env::temp_dir().join(format!("ebb-{}", geteuid())));
    folder.join(socket_name(api))
}

fn socket_name(api: SocketAddr) -> String {
    format!("ebb-{}-{}.sock", api.ip(), api.port())
}

/// One who wants to take over, as far as it comes.
struct Taker(UnixStream);

impl Taker {
    fn at(place: &Path) -> Self {
        let stream = UnixStream::connect(place).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is a socket");
        Self(stream)
    }

    fn say(&mut self, message: &Value) {
        let text = message.to_string();
        let length = u32::try_from(text.len()).expect("it is short");
        let message = [&length.to_be_bytes()[..], &0_u32.to_be_bytes(), text.as_bytes()].concat();
        self.0.write_all(&message).expect("somebody reads");
    }

    /// The next message. The descriptors that come with it are closed.
    fn hears(&mut self) -> Value {
        let mut head = [0; 8];
        self.0.read_exact(&mut head).expect("an answer");
        let number =
            |bytes: &[u8]| bytes.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        let (length, count) = (number(&head[..4]), number(&head[4..]));
        let mut text = vec![0; length];
        self.0.read_exact(&mut text).expect("all of it");
        let mut pieces = vec![0; count.div_ceil(AT_ONCE)];
        self.0.read_exact(&mut pieces).expect("its descriptors");
        serde_json::from_slice(&text).expect("JSON")
    }

    fn asks(&mut self) {
        self.say(&json!({"ask": {"version": 1}}));
    }

    fn is_offered_everything(&mut self) {
        self.asks();
        let offer = self.hears();
        assert!(offer["offer"]["platform"].is_object(), "{offer}");
    }
}

/// How far an attempt to take over comes before its end.
type TakeOverAttempt = fn(&mut Taker);

/// Each comes a step further than the one before.
const GIVE_UP: [(&str, TakeOverAttempt); 5] = [
    ("speaks another version", |taker| {
        taker.say(&json!({"ask": {"version": 2}}));
        let answer = taker.hears();
        let reason = answer["refused"]["reason"].as_str().unwrap_or_default();
        assert!(
            reason.contains("the successor speaks version 2 of the take-over, and this `ebb up` version 1"),
            "{answer}"
        );
    }),
    ("goes away after its question", Taker::asks),
    ("goes away after the offer", Taker::is_offered_everything),
    ("does not wait for the last word", |taker| {
        taker.is_offered_everything();
        // So that nothing can be said to it any more, however long it takes to be gone.
        taker.0.shutdown(Shutdown::Read).expect("it is open");
        taker.say(&json!("prepared"));
    }),
    ("says nothing after the offer", |taker| {
        taker.is_offered_everything();
        let answer = taker.hears();
        assert!(answer["refused"].is_object(), "{answer}");
    }),
];

#[tokio::test]
async fn a_taker_that_gives_up_on_the_way_changes_nothing() {
    let ebb = Ebb::up(&[three("kept")], &ConfigMap::short()).await;
    let before = processes(&ebb.until_pods("kept", 3).await);
    let steady = ebb.load("kept").path("/?sleep=20").in_background(50);
    for (number, (what, take)) in GIVE_UP.into_iter().enumerate() {
        let place = place(ebb.api);
        let taking = tokio::task::spawn_blocking(move || take(&mut Taker::at(&place)));
        taking.await.unwrap_or_else(|error| panic!("{what}: {error}"));
        eventually(what, PATIENCE, || async {
            let output = ebb.output();
            let kept = output.matches("nothing was handed over; everything goes on here").count();
            if kept == number + 1 { Ok(()) } else { Err(output) }
        })
        .await;
        assert_eq!(processes(&ebb.until_pods("kept", 3).await), before, "{what}");
    }
    let tally = steady.end().await;
    tally.assert_none_lost();
    assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
    // An autoscaler still gives orders, and a process that takes it all finds it all.
    ebb.rewrite(&three("kept").scaling("min-scale", "2").scaling("max-scale", "2"));
    let two = processes(&ebb.until_pods("kept", 2).await);
    let new = ebb.successor().await;
    assert_eq!(processes(&new.until_pods("kept", 2).await), two);
    new.load("kept").burst(20).await.assert_all_answered();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn the_socket_is_for_its_user_alone_and_others_are_refused_all_the_same() {
    let outer = tempfile::tempdir().expect("a temporary folder can be made");
    let folder = outer.path().join("made by ebb");
    let preparation = format!("unset RUNTIME_DIRECTORY && export XDG_RUNTIME_DIR='{}'", folder.display());
    let ebb = Ebb::up_after(&preparation, &[Service::new("kept")], &ConfigMap::short()).await;
    let socket = folder.join(socket_name(ebb.api));
    assert_eq!((mode(&folder), mode(&socket)), (0o700, 0o600));
    if !geteuid().is_root() {
        eprintln!("not shown here, where nobody can become another user: that others are refused");
        return;
    }
    // Even if the door to it were open.
    for (path, mode) in [(outer.path(), 0o755), (&folder, 0o755), (&socket, 0o666), (ebb.folder(), 0o755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    let mut stranger = Command::new("setpriv");
    stranger.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(executable());
    stranger.args(["up", "--take-over", "--api", &ebb.api.to_string()]);
    stranger.args(["--listen", &ebb.requests.to_string(), "-f"]).arg(ebb.folder());
    stranger.env_remove("RUNTIME_DIRECTORY").env("XDG_RUNTIME_DIR", &folder).kill_on_drop(true);
    stranger.env_remove("EBB_EXECUTABLE").env_remove("EBB_TEST_APP");
    let output =
        tokio::time::timeout(PATIENCE, stranger.output()).await.expect("it ends").expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("it belongs to user 0, and this is user 65534"), "{said}");
    eventually("the same is said here", PATIENCE, || async {
        let said = ebb.output();
        if said.contains("it belongs to user 65534, and this is user 0") { Ok(()) } else { Err(said) }
    })
    .await;
    ebb.load("kept").burst(5).await.assert_all_answered();
}
