//! `ebb up` as a service of systemd: its units, its watchdog; and what shells and `man` are told.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use tests::client::whole_answer;
use tests::ebb::{executable, signal_process};
use tests::grip::Grip;
use tests::{Ebb, Service, eventually};
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};

use crate::tls::{Identity, curl};

const PATIENCE: Duration = Duration::from_secs(60);
const ALIVE: &str = "WATCHDOG=1";

/// Runs a program to its end: exit code, standard output and standard error.
async fn run(mut command: Command) -> (i32, String, String) {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(PATIENCE, output).await.expect("it ends").expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

async fn ebb(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(executable());
    command.args(arguments);
    run(command).await
}

/// What systemd says of the units in a folder.
async fn verify(folder: &Path, manager: &str) {
    let mut command = Command::new("systemd-analyze");
    // A user's manager has a place for what lives as long as a session.
    command
        .args([manager, "verify", "--man=no"])
        .env("XDG_RUNTIME_DIR", folder.parent().expect("it is in one"));
    command.args(["ebb.socket", "ebb.service"].map(|unit| folder.join(unit)));
    let there = std::process::Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status();
    assert!(
        there.is_ok_and(|status| status.success()),
        "systemd-analyze is missing: apt-get install systemd"
    );
    let (code, stdout, stderr) = run(command).await;
    assert!(code == 0 && stderr.trim().is_empty(), "{code}: {stdout}{stderr}");
}

#[tokio::test]
async fn units_are_written_as_systemd_wants_them_and_removed_again() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let manifests = folder.path().join("100% of $mine");
    std::fs::create_dir(&manifests).expect("a folder");
    std::fs::write(manifests.join("hello.yaml"), Service::new("hello").yaml()).expect("writing");
    let manifests = manifests.to_string_lossy().into_owned();
    for (manager, command, more) in [
        ("--user", "systemctl --user enable --now ebb.socket ebb.service", &[][..]),
        ("--system", "systemctl enable --now ebb.socket ebb.service", &[]),
        ("--system", "systemctl daemon-reload", &["--run-as", "daemon"]),
    ] {
        let units = folder.path().join(format!("units{manager}{}", more.len()));
        let place = units.to_string_lossy().into_owned();
        let arguments =
            [&["install", manager, "-f", &manifests, "--unit-directory", &place][..], more].concat();
        let (code, shown, stderr) = ebb(&[&arguments[..], &["--dry-run"]].concat()).await;
        assert!(code == 0 && shown.contains("Delegate=yes") && !units.exists(), "{shown}{stderr}");
        let (code, said, stderr) = ebb(&arguments).await;
        assert!(code == 0 && said.contains(command), "{said}{stderr}");
        verify(&units, manager).await;
        let service = std::fs::read_to_string(units.join("ebb.service")).expect("it was written");
        for line in [
            "Type=notify",
            "WatchdogSec=90s",
            "ExecReload=/bin/kill -USR2 $MAINPID",
            "LimitNOFILE=1024:524288",
        ] {
            assert!(service.lines().any(|written| written == line), "{line} is not in\n{service}");
        }
        // Again, as after an upgrade; then it goes.
        assert_eq!(ebb(&arguments).await.0, 0);
        let (code, said, _) = ebb(&["install", manager, "--uninstall", "--unit-directory", &place]).await;
        assert!(code == 0 && said.contains("stop ebb.socket ebb.service"), "{said}");
        assert_eq!(std::fs::read_dir(&units).expect("it is there").count(), 0);
    }
}

fn address_of(socket: &TcpListener) -> SocketAddr {
    socket.local_addr().expect("it is bound")
}

/// What systemd does with both units, with these sockets. What the service prints goes to this file.
fn start_as_systemd(units: &Path, sockets: &[TcpListener; 3], output: &Path) -> Child {
    let read = |name: &str| std::fs::read_to_string(units.join(name)).expect("it was written");
    let unit = read("ebb.socket");
    let named = unit.lines().filter_map(|line| line.strip_prefix("ListenStream="));
    let given = |address: &str| {
        let found =
            sockets.iter().find(|socket| address_of(socket).to_string() == address).expect("one of them");
        Stdio::from(OwnedFd::from(found.try_clone().expect("a copy of the socket")))
    };
    let named: [Stdio; 3] = named.map(given).collect::<Vec<_>>().try_into().expect("three sockets");
    let service = read("ebb.service");
    let command = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it is there");
    let [first, second, third] = named;
    let output = output.display();
    let script =
        format!("LISTEN_FDS=3 LISTEN_PID=$$ exec {command} 3<&0 4<&1 5<&2 </dev/null >{output} 2>&1");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).stdin(first).stdout(second).stderr(third).kill_on_drop(true);
    shell.spawn().expect("a shell")
}

#[tokio::test]
async fn with_certificates_there_is_a_third_socket_at_which_tls_is_spoken() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let service = Service::new("hello");
    std::fs::write(path("hello.yaml"), service.yaml()).expect("writing");
    let identity = Identity::new(folder.path(), "hello", &service.host());
    let (manifest, units) = (path("hello.yaml"), path("units"));
    let place = ["install", "--user", "-f", &manifest, "--unit-directory", &units];
    let sockets = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let [requests, api, tls] = sockets.each_ref().map(address_of);
    let words = [requests, api, tls].map(|address| address.to_string());
    let addresses = ["--listen", &words[0], "--api", &words[1], "--tls-listen", &words[2]];
    let (code, _, stderr) = ebb(&[&place[..], &addresses, &identity.arguments()].concat()).await;
    assert_eq!(code, 0, "{stderr}");
    verify(Path::new(&units), "--user").await;
    let mut service_process = start_as_systemd(Path::new(&units), &sockets, Path::new(&path("output")));
    let host = service.host();
    let said = curl(tls, &identity.certificate, &host, &["--retry", "5"]).await;
    let output = std::fs::read_to_string(path("output")).unwrap_or_default();
    assert_eq!(said.as_deref(), Ok("ok\n"), "{output}");
    let plain = whole_answer(requests, &host, "/").await.expect("an answer");
    assert!(plain.starts_with("HTTP/1.1 200"), "{plain}");
    let list = whole_answer(api, "localhost", "/v1/revisions").await.expect("an answer");
    assert!(list.contains(&format!("https://{host}:{}", tls.port())), "{list}");
    let pid = service_process.id().expect("it runs");
    signal_process(pid, Signal::SIGTERM);
    let ended = tokio::time::timeout(PATIENCE, service_process.wait()).await.expect("it ends");
    assert!(ended.expect("it was started").success());
}

#[tokio::test]
async fn what_a_service_could_not_listen_with_is_refused_before_it_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("hello.yaml"), Service::new("hello").yaml()).expect("writing");
    let (good, other) =
        (Identity::new(folder.path(), "good", "h"), Identity::new(folder.path(), "other", "h"));
    let [_, certificate, _, key] = good.arguments();
    let [_, _, _, other_key] = other.arguments();
    let (manifest, units) = (path("hello.yaml"), path("units"));
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(key, private).expect("it is ours");
    for (manager, tls, expected) in [
        (
            "--user",
            &["--tls-cert", certificate, "--tls-key", other_key][..],
            "is not that of the certificate in",
        ),
        ("--user", &["--tls-listen", "127.0.0.1:8443"], "--tls-listen needs a certificate"),
        ("--system", &["--tls", "dev"], "give the machine's service --tls-cert and --tls-key"),
        ("--system", &["--tls-cert", certificate, "--tls-key", key], "is for its owner alone"),
        ("--user", &["--listen", "127.0.0.1:0"], "--listen says 127.0.0.1:0, but systemd chooses no port"),
    ] {
        let place = ["install", manager, "-f", &manifest, "--unit-directory", &units];
        let (code, _, stderr) = ebb(&[&place[..], tls].concat()).await;
        assert!(code == 2 && stderr.contains(expected), "{code}: {expected:?} is not in {stderr}");
        assert!(!Path::new(&units).exists());
    }
}

#[tokio::test]
async fn files_of_others_and_manifests_that_are_refused_are_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let manifest = folder.path().join("hello.yaml");
    std::fs::write(&manifest, Service::new("hello").spec("volumes: []").yaml()).expect("writing");
    let (manifest, place) =
        (manifest.to_string_lossy().into_owned(), folder.path().to_string_lossy().into_owned());
    let arguments = ["install", "--user", "-f", &manifest, "--unit-directory", &place];
    let (code, _, stderr) = ebb(&arguments).await;
    assert!(code == 2 && stderr.contains("volumes"), "{code}: {stderr}");
    std::fs::write(&manifest, Service::new("hello").yaml()).expect("writing");
    std::fs::write(folder.path().join("ebb.service"), "[Service]\n").expect("writing");
    for arguments in [&arguments[..], &["install", "--user", "--uninstall", "--unit-directory", &place]] {
        let (code, _, stderr) = ebb(arguments).await;
        assert!(code == 1 && stderr.contains("was not written by `ebb install`"), "{code}: {stderr}");
    }
    let kept = std::fs::read_to_string(folder.path().join("ebb.service")).expect("it is there");
    assert_eq!(kept, "[Service]\n");
}

#[tokio::test]
async fn shells_and_man_are_told_of_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = ebb(&["completion", shell]).await;
        assert!(code == 0 && script.contains("explain") && script.contains("take-over"), "{shell}: {script}");
    }
    let (code, page, _) = ebb(&["man"]).await;
    assert!(code == 0 && page.contains(".TH ebb 1") && page.contains("install"), "{page}");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (code, _, stderr) = ebb(&["man", "--directory", &folder.path().to_string_lossy()]).await;
    assert_eq!(code, 0, "{stderr}");
    for page in ["ebb.1", "ebb-up.1", "ebb-explain.1", "ebb-install.1"] {
        assert!(folder.path().join(page).is_file(), "{page}");
    }
}

/// What the service manager hears next, if it is soon.
async fn heard(told: &UnixDatagram) -> Option<String> {
    let mut words = [0; 1024];
    let heard = tokio::time::timeout(PATIENCE, told.recv(&mut words)).await;
    let length = heard.ok()?.expect("it can be heard");
    Some(String::from_utf8_lossy(&words[..length]).trim().to_owned())
}

async fn until_alive(told: &UnixDatagram) {
    while heard(told).await.expect("it says something") != ALIVE {}
}

#[tokio::test]
async fn the_watchdog_hears_nothing_while_a_part_hangs_and_again_when_it_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let told = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
    let mut grip = Grip::listen().await;
    let services = [Service::new("kept").scaling("min-scale", "1")];
    let ebb = Ebb::up_watched(&folder.path().join("notify"), Duration::from_secs(3), &grip, &services).await;
    let pods = ebb.until_pods("kept", 1).await;
    until_alive(&told).await;
    until_alive(&told).await;
    let app = pods.pids("app_pid")[0];
    let environment = std::fs::read(format!("/proc/{app}/environ")).expect("it lives");
    let environment = String::from_utf8_lossy(&environment).into_owned();
    assert!(!environment.contains("WATCHDOG_") && !environment.contains("NOTIFY_SOCKET"), "{environment}");

    grip.hold("autoscaler-1").await;
    ebb.rewrite(&Service::new("kept").scaling("min-scale", "2"));
    grip.until_held("autoscaler-1").await;
    let silences = || {
        ebb.output().matches("the autoscaler does not answer, so the service manager hears nothing").count()
    };
    let until = async |count: usize| {
        eventually("the autoscaler's silence", PATIENCE, || async {
            let found = silences();
            if found >= count { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
    };
    until(1).await;
    let mut words = [0; 64];
    while told.try_recv(&mut words).is_ok() {}
    until(3).await;
    assert!(told.try_recv(&mut words).is_err(), "nothing was said between the first silence and the third");
    grip.let_go("autoscaler-1").await;
    until_alive(&told).await;
}
