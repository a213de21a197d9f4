//! `ebb up` as a service of systemd: its units, its watchdog; and what shells and `man` are told.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use tests::client::whole_answer;
use tests::ebb::{descendants, executable, is_alive, signal_process};
use tests::grip::Grip;
use tests::{Ebb, Load, Service, eventually};
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};

use crate::up::lifecycle::until_dead;
use crate::up::tls::{Identity, curl};

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

/// `ebb install` with these further arguments, which writes below this folder alone.
async fn install(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let [units, share, executables] =
        ["units", "share", "bin"].map(|name| folder.join(name).to_string_lossy().into_owned());
    let place = ["install", "--unit-directory", &units, "--manual-directory", &share];
    let of_machine = ["--executable-directory", &executables];
    let is_for_machine = arguments.contains(&"--system");
    let more = if is_for_machine { &of_machine[..] } else { &[] };
    ebb(&[&place[..], more, arguments].concat()).await
}

/// Lets users into a folder: its owner alone (0o700), or everyone, as into `/etc` (0o755).
fn let_in(folder: &Path, mode: u32) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(folder, mode).expect("it is ours");
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
    let_in(&manifests, 0o700);
    let arguments = ["--system", "-f", &manifests.to_string_lossy()];
    let (code, _, stderr) = install(folder.path(), &arguments).await;
    assert!(code == 2 && stderr.contains("cannot be read by the service"), "{code}: {stderr}");
    let_in(&manifests, 0o755);
    let_in(folder.path(), 0o755);
    let manifests = manifests.to_string_lossy().into_owned();
    for (manager, command, more) in [
        ("--user", "systemctl --user enable --now ebb.socket ebb.service", &[][..]),
        ("--system", "systemctl enable --now ebb.socket ebb.service", &[]),
        ("--system", "systemctl daemon-reload", &["--run-as", "daemon"]),
    ] {
        let place = folder.path().join(format!("place{manager}{}", more.len()));
        let (units, share) = (place.join("units"), place.join("share"));
        let arguments = [&[manager, "-f", &manifests][..], more].concat();
        let (code, shown, stderr) = install(&place, &[&arguments[..], &["--dry-run"]].concat()).await;
        assert!(code == 0 && shown.contains("Delegate=yes") && !place.exists(), "{shown}{stderr}");
        let (code, said, stderr) = install(&place, &arguments).await;
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
        assert_eq!(hardening(&service), expected_hardening(manager, more), "{service}");
        // Again, as after an upgrade; then it goes, but for what is another program's.
        assert_eq!(install(&place, &arguments).await.0, 0);
        let foreign = share.join("zsh/site-functions/_ebb");
        std::fs::write(&foreign, "#compdef ebb\n# mine\n").expect("writing");
        let (code, said, _) = install(&place, &[manager, "--uninstall"]).await;
        assert!(code == 0 && said.contains("stop ebb.socket ebb.service"), "{said}");
        assert_eq!((files_in(&units), files_in(&share)), (vec![], vec![foreign]));
    }
}

#[tokio::test]
async fn the_service_runs_ebb_up_with_the_options_that_install_was_given() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let manifest = folder.path().join("hello.yaml");
    std::fs::write(&manifest, Service::new("hello").yaml()).expect("writing");
    let manifest = manifest.to_string_lossy().into_owned();
    let place = ["--user", "-f", &manifest];
    let options = ["--trust-forwarded", "10.0.0.0/8,192.0.2.7", "--trusted-host", "a.example", "--shadow"];
    let (code, _, stderr) = install(folder.path(), &[&place[..], &options].concat()).await;
    assert_eq!(code, 0, "{stderr}");
    let units = folder.path().join("units");
    verify(&units, "--user").await;
    let service = std::fs::read_to_string(units.join("ebb.service")).expect("it was written");
    let words = r#" "--trusted-host=a.example" "--trust-forwarded=10.0.0.0/8" "--trust-forwarded=192.0.2.7" "--shadow" -f "#;
    let start = service.lines().find(|line| line.starts_with("ExecStart=")).expect("it is there");
    assert!(start.contains(words), "{start}");
    // What `ebb up` would refuse is refused before a service fails to start.
    let (code, _, stderr) = install(folder.path(), &[&place[..], &["--log", "a=b=c"]].concat()).await;
    assert!(code == 2 && stderr.contains("the log filter \"a=b=c\" is malformed"), "{code}: {stderr}");
}

/// What the service may not do, and as whom it runs.
fn hardening(service: &str) -> Vec<&str> {
    let words = ["NoNew", "Restrict", "LockPersonality", "Protect", "DynamicUser", "StateDirectory", "User="];
    service.lines().filter(|line| words.iter().any(|word| line.starts_with(word))).collect()
}

fn expected_hardening(manager: &str, more: &[&str]) -> Vec<&'static str> {
    let of_all =
        ["NoNewPrivileges=yes", "RestrictSUIDSGID=yes", "RestrictRealtime=yes", "LockPersonality=yes"];
    let whose: &[&str] = match (manager, more) {
        ("--user", _) => return of_all.to_vec(),
        (_, []) => &["DynamicUser=yes", "StateDirectory=ebb"],
        _ => &["User=daemon", "ProtectSystem=full", "StateDirectory=ebb"],
    };
    let of_machine = [
        "ProtectKernelTunables=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelLogs=yes",
        "ProtectClock=yes",
        "ProtectHostname=yes",
    ];
    [&of_all[..], whose, &of_machine].concat()
}

/// Every file below a folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

#[tokio::test]
async fn manual_pages_and_completions_are_installed_where_they_are_looked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (manifest, home) = (folder.path().join("hello.yaml"), folder.path().join("home"));
    std::fs::write(&manifest, Service::new("hello").yaml()).expect("writing");
    let mut command = Command::new(executable());
    command.args(["install", "--user", "-f"]).arg(&manifest).env("HOME", &home);
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
    let (code, said, stderr) = run(command).await;
    assert_eq!(code, 0, "{said}{stderr}");
    let read = |file: &str| {
        std::fs::read_to_string(home.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    assert!(read(".config/systemd/user/ebb.service").contains("Documentation=man:ebb(1)"));
    for page in ["ebb.1", "ebb-up.1", "ebb-install.1"] {
        assert!(read(&format!(".local/share/man/man1/{page}")).contains(".TH ebb"), "{page}");
    }
    assert!(read(".local/share/zsh/site-functions/_ebb").starts_with("#compdef ebb\n"));
    assert!(read(".local/share/fish/vendor_completions.d/ebb.fish").contains("explain"));
    let script = home.join(".local/share/bash-completion/completions/ebb");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ". \"$0\" && complete -p ebb"]).arg(script);
    let (code, said, stderr) = run(bash).await;
    assert!(code == 0 && said.contains("_ebb"), "{said}{stderr}");
}

fn address_of(socket: &TcpListener) -> SocketAddr {
    socket.local_addr().expect("it is bound")
}

/// What systemd does with both units, with these sockets. What the service prints goes to this file.
fn start_as_systemd(units: &Path, sockets: &[TcpListener; 3], output: &Path, notify: Option<&str>) -> Child {
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
    shell.envs(notify.map(|socket| ("NOTIFY_SOCKET", socket)));
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
    let place = ["--user", "-f", &manifest];
    let sockets = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let [requests, api, tls] = sockets.each_ref().map(address_of);
    let words = [requests, api, tls].map(|address| address.to_string());
    let addresses = ["--listen", &words[0], "--api", &words[1], "--tls-listen", &words[2]];
    let (code, _, stderr) =
        install(folder.path(), &[&place[..], &addresses, &identity.arguments()].concat()).await;
    assert_eq!(code, 0, "{stderr}");
    verify(Path::new(&units), "--user").await;
    let mut service_process = start_as_systemd(Path::new(&units), &sockets, Path::new(&path("output")), None);
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

/// The next one who is ready: its process id.
async fn until_ready(told: &UnixDatagram) -> u32 {
    loop {
        let words = heard(told).await.expect("somebody gets ready");
        let pid = words.strip_prefix("MAINPID=").and_then(|words| words.strip_suffix("\nREADY=1"));
        if let Some(pid) = pid {
            return pid.parse().expect("a process id");
        }
    }
}

#[tokio::test]
async fn a_reload_keeps_pods_and_a_restart_ends_them_and_neither_refuses_a_connection() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let service = Service::new("hello").scaling("min-scale", "1");
    std::fs::write(path("hello.yaml"), service.yaml()).expect("writing");
    let identity = Identity::new(folder.path(), "hello", &service.host());
    let sockets = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let words = sockets.each_ref().map(|socket| address_of(socket).to_string());
    let addresses = ["--listen", &words[0], "--api", &words[1], "--tls-listen", &words[2]];
    let manifest = path("hello.yaml");
    let place = ["--user", "-f", &manifest];
    let (code, _, stderr) =
        install(folder.path(), &[&place[..], &addresses, &identity.arguments()].concat()).await;
    assert_eq!(code, 0, "{stderr}");
    let notify = path("notify");
    let told = UnixDatagram::bind(&notify).expect("a socket");
    let start = |output: &str| {
        start_as_systemd(Path::new(&path("units")), &sockets, Path::new(&path(output)), Some(&notify))
    };
    let mut first = start("first");
    let pid = until_ready(&told).await;
    let load = Load::new(address_of(&sockets[0]), &service.host()).path("/?sleep=20");
    load.one().await.assert_all_answered();
    let pods = descendants(pid);
    assert!(pods.len() >= 3, "{pods:?}");
    let steady = load.clone();
    let steady = tokio::spawn(async move { steady.steady(50, Duration::from_secs(4)).await });
    signal_process(pid, Signal::SIGUSR2);
    let new = until_ready(&told).await;
    assert_ne!(new, pid);
    let tally = steady.await.expect("no panic");
    tally.assert_none_lost();
    assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
    let ended = tokio::time::timeout(PATIENCE, first.wait()).await.expect("it ends");
    assert!(ended.expect("it was started").success());
    assert!(pods.iter().all(|pid| is_alive(*pid)));
    // A restart: none runs for a while, and connections wait in the sockets.
    signal_process(new, Signal::SIGTERM);
    until_dead(&pods).await;
    until_dead(&[new]).await;
    let waiting = load.with_own_connections();
    let waiting = tokio::spawn(async move { waiting.burst(5).await });
    let mut second = start("second");
    waiting.await.expect("no panic").assert_all_answered();
    signal_process(until_ready(&told).await, Signal::SIGTERM);
    let ended = tokio::time::timeout(PATIENCE, second.wait()).await.expect("it ends");
    assert!(ended.expect("it was started").success());
}

#[tokio::test]
async fn options_with_which_a_service_could_not_listen_are_refused_before_a_unit_is_written() {
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
        let place = [manager, "-f", &manifest];
        let (code, _, stderr) = install(folder.path(), &[&place[..], tls].concat()).await;
        assert!(code == 2 && stderr.contains(expected), "{code}: {expected:?} is not in {stderr}");
        assert!(!Path::new(&units).exists());
    }
}

#[tokio::test]
async fn files_of_others_and_manifests_that_are_refused_are_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let manifest = folder.path().join("hello.yaml");
    std::fs::write(&manifest, Service::new("hello").spec("volumes: []").yaml()).expect("writing");
    let manifest = manifest.to_string_lossy().into_owned();
    let arguments = ["--user", "-f", &manifest];
    let (code, _, stderr) = install(folder.path(), &arguments).await;
    assert!(code == 2 && stderr.contains("volumes"), "{code}: {stderr}");
    std::fs::write(&manifest, Service::new("hello").yaml()).expect("writing");
    let service = folder.path().join("units/ebb.service");
    std::fs::create_dir(folder.path().join("units")).expect("a folder");
    std::fs::write(&service, "[Service]\n").expect("writing");
    for arguments in [&arguments[..], &["--user", "--uninstall"]] {
        let (code, _, stderr) = install(folder.path(), arguments).await;
        assert!(code == 1 && stderr.contains("was not written by `ebb install`"), "{code}: {stderr}");
    }
    let kept = std::fs::read_to_string(service).expect("it is there");
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
