//! A running `ebb up`, on files of its own and free ports.

use std::io::{PipeReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::api::RevisionReader;
use crate::bench::guard;
use crate::client::Load;
use crate::grip::{self, Grip};
use crate::manifest::{ConfigMap, Service};
use crate::relay::{self, Relay};
use crate::wait::eventually;

/// How long a slow, busy machine may take for what normally takes milliseconds.
const GENEROUS: Duration = Duration::from_secs(60);

/// As often as autoscalers publish news.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The executable under test: `$EBB_EXECUTABLE`, else the one that cargo built beside the test.
pub fn executable() -> PathBuf {
    built("ebb", "EBB_EXECUTABLE")
}

/// Puts a copy of it there, which can be run at once. Another process copies it: what is open for writing
/// here, whatever another test starts at that moment holds open for a while too, and who would run it then
/// hears that it is busy.
pub fn copy_executable(to: &Path) {
    let copied = std::process::Command::new("cp").arg(executable()).arg(to).status();
    assert!(copied.expect("cp can be started").success(), "no copy at {}", to.display());
}

/// The executable with what the harness puts around its autoscaler.
fn harnessed_executable() -> PathBuf {
    built("harnessed-ebb", "EBB_HARNESSED_EXECUTABLE")
}

/// The programs of a cluster in one executable: it goes by what it is called.
pub fn cluster_executable() -> PathBuf {
    built("ebb-autoscaler", "EBB_CLUSTER_EXECUTABLE")
}

/// The app that the suites put behind ebb.
pub fn test_app() -> String {
    built("test-app", "EBB_TEST_APP").to_string_lossy().into_owned()
}

fn built(name: &str, variable: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        return path.into();
    }
    let test = std::env::current_exe().expect("a process knows its executable");
    let profile = test.ancestors().nth(2).expect("test executables lie in target/PROFILE/deps");
    let path = profile.join(name);
    assert!(
        path.is_file(),
        "{} is missing; run `cargo test --workspace`, which builds it, or set ${variable}",
        path.display()
    );
    if let Some(newer) = newer_source(&path) {
        panic!("{} is older than {newer}; run `cargo test --workspace`, which builds it", path.display());
    }
    path
}

/// A source file that is newer than the executable, by the list of them that cargo keeps beside it. `cargo
/// test -p tests` alone does not build the executable, and a test of an old one proves nothing.
fn newer_source(executable: &Path) -> Option<String> {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let built = modified(executable)?;
    let list = std::fs::read_to_string(executable.with_extension("d")).ok()?;
    let (_, sources) = list.split_once(": ")?;
    sources
        .trim()
        .split(' ')
        .find(|source| modified(Path::new(source)).is_some_and(|at| at > built))
        .map(str::to_owned)
}

/// `ebb up` with these files, in a folder of their own.
fn prepare(
    executable: &Path,
    services: &[Service],
    config: &ConfigMap,
    arguments: &[&str],
) -> (Command, Arc<TempDir>) {
    let files = tempfile::tempdir().expect("a temporary folder can be made");
    for service in services {
        write(&service_file(files.path(), service.name()), &service.yaml());
    }
    write(&files.path().join("config-autoscaler.yaml"), &config.yaml());
    let mut command = Command::new(executable);
    command.arg("up").args(arguments);
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    if !arguments.contains(&"--api") {
        command.args(["--api", "127.0.0.1:0"]);
    }
    for service in services {
        command.arg("-f").arg(service_file(files.path(), service.name()));
    }
    command.arg("-f").arg(files.path().join("config-autoscaler.yaml"));
    (command, Arc::new(files))
}

/// The same program, started by a shell that first does something to itself.
fn after(preparation: &str, command: &Command) -> Command {
    let command = command.as_std();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{preparation} && exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

/// A user of the machine and the one group that it is in, by number.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// The number of the user that the program runs as.
    pub user: u32,
    /// The number of the user's group.
    pub group: u32,
}

/// A running `ebb up`. Dropping it kills it at once, and with it everything it started.
#[derive(Debug)]
pub struct Ebb {
    child: Child,
    files: Arc<TempDir>,
    output: Arc<Mutex<Vec<String>>>,
    readers: Vec<JoinHandle<()>>,
    /// The address at which `ebb up` takes requests.
    pub requests: SocketAddr,
    /// The address at which its API answers.
    pub api: SocketAddr,
}

impl Ebb {
    /// Starts `ebb up` with these Services and this configuration, and waits until it serves.
    pub async fn up(services: &[Service], config: &ConfigMap) -> Self {
        Self::up_with(services, config, &[]).await
    }

    /// The same with further arguments.
    pub async fn up_with(services: &[Service], config: &ConfigMap, arguments: &[&str]) -> Self {
        Self::up_as(&executable(), services, config, arguments).await
    }

    /// The same with its API at this address.
    pub async fn up_at(services: &[Service], config: &ConfigMap, api: SocketAddr) -> Self {
        let (command, files) = prepare(&executable(), services, config, &["--api", &api.to_string()]);
        Self::spawn(command, files, Stdio::piped()).await
    }

    /// The same with another executable.
    pub async fn up_as(
        executable: &Path,
        services: &[Service],
        config: &ConfigMap,
        arguments: &[&str],
    ) -> Self {
        let (command, files) = prepare(executable, services, config, arguments);
        Self::spawn(command, files, Stdio::piped()).await
    }

    /// The same with links that lead through a relay.
    pub async fn up_through(relay: &Relay, services: &[Service], config: &ConfigMap) -> Self {
        let (mut command, files) = prepare(&harnessed_executable(), services, config, &[]);
        command.env(relay::VARIABLE, relay.address().to_string());
        Self::spawn(command, files, Stdio::piped()).await
    }

    /// The same with a service manager that listens there.
    pub async fn up_notifying(socket: &Path, services: &[Service]) -> Self {
        let (mut command, files) = prepare(&executable(), services, &ConfigMap::short(), &[]);
        command.env("NOTIFY_SOCKET", socket);
        Self::spawn(command, files, Stdio::piped()).await
    }

    /// The same with a watchdog of this patience, and with its autoscalers in a test's grip.
    pub async fn up_watched(socket: &Path, patience: Duration, grip: &Grip, services: &[Service]) -> Self {
        let (mut command, files) = prepare(&harnessed_executable(), services, &ConfigMap::short(), &[]);
        command.env(grip::VARIABLE, grip.address().to_string());
        command.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", patience.as_micros().to_string());
        Self::spawn(command, files, Stdio::piped()).await
    }

    /// Another one that takes its place, on the same files, and is ready.
    pub async fn successor(&self) -> Self {
        self.successor_with(&[]).await
    }

    /// The same with further arguments.
    pub async fn successor_with(&self, arguments: &[&str]) -> Self {
        let mut command = self.taking_over(&["--listen", &self.requests.to_string()]);
        command.args(arguments);
        Self::spawn(command, Arc::clone(&self.files), Stdio::piped()).await
    }

    /// The same in a shell that first does something to itself.
    pub async fn successor_after(&self, preparation: &str, arguments: &[&str]) -> Self {
        let mut command = self.taking_over(&["--listen", &self.requests.to_string()]);
        command.args(arguments);
        Self::spawn(after(preparation, &command), Arc::clone(&self.files), Stdio::piped()).await
    }

    /// The same on files of its own, which this one does not know. They stand in the same folder, where apps
    /// start.
    pub async fn successor_on(&self, services: &[Service]) -> Self {
        let place = format!("--take-over={}", self.api);
        let mut command = Command::new(executable());
        command.args(["up", &place, "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "-f"]);
        for service in services {
            let file = format!("successor-{}.yaml", service.name());
            self.write(&file, &service.yaml());
            command.arg(self.files.path().join(file));
        }
        command.arg(self.files.path().join("config-autoscaler.yaml"));
        Self::spawn(command, Arc::clone(&self.files), Stdio::piped()).await
    }

    /// Another one that is to take its place, with these arguments, to its end: exit code and standard error.
    pub async fn failing_successor(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.taking_over(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(GENEROUS, output).await.expect("it ends").expect("it starts");
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn taking_over(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(executable());
        command.args(["up", "--take-over", "--api", &self.api.to_string()]).args(arguments);
        command.env_remove("EBB_EXECUTABLE").env_remove("EBB_TEST_APP").arg("-f").arg(self.files.path());
        command
    }

    /// The same with further arguments, and with its autoscalers in a test's grip.
    pub async fn up_gripped(
        grip: &Grip,
        services: &[Service],
        config: &ConfigMap,
        arguments: &[&str],
    ) -> Self {
        let (mut command, files) = prepare(&harnessed_executable(), services, config, arguments);
        command.env(grip::VARIABLE, grip.address().to_string());
        Self::spawn(command, files, Stdio::piped()).await
    }

    /// The same in a shell that first does something to itself, such as `ulimit -S -n 64`.
    pub async fn up_after(preparation: &str, services: &[Service], config: &ConfigMap) -> Self {
        Self::up_after_with(preparation, services, config, &[]).await
    }

    /// The same with further arguments.
    pub async fn up_after_with(
        preparation: &str,
        services: &[Service],
        config: &ConfigMap,
        arguments: &[&str],
    ) -> Self {
        let (command, files) = prepare(&executable(), services, config, arguments);
        Self::spawn(after(preparation, &command), files, Stdio::piped()).await
    }

    /// The same with a standard error that is full, and its other end, which is not read.
    pub async fn up_unread(services: &[Service], config: &ConfigMap) -> (Self, PipeReader) {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let capacity = fcntl(&writer, FcntlArg::F_GETPIPE_SZ).expect("a pipe has a capacity");
        let nonsense = vec![b'x'; usize::try_from(capacity).expect("it is positive")];
        writer.write_all(&nonsense).expect("there is room");
        let (command, files) = prepare(&executable(), services, config, &[]);
        (Self::spawn(command, files, Stdio::from(writer)).await, reader)
    }

    /// The same, started by another program (`nohup`, `setsid`) with this standard input.
    pub async fn up_under(wrapper: &[&str], stdin: Stdio, services: &[Service], config: &ConfigMap) -> Self {
        let (plain, files) = prepare(&executable(), services, config, &[]);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(plain.as_std().get_program()).args(plain.as_std().get_args());
        Self::spawn_with(command, files, stdin, Stdio::piped()).await
    }

    async fn spawn(command: Command, files: Arc<TempDir>, stderr: Stdio) -> Self {
        Self::spawn_with(command, files, Stdio::null(), stderr).await
    }

    async fn spawn_with(mut command: Command, files: Arc<TempDir>, stdin: Stdio, stderr: Stdio) -> Self {
        let mut child = command
            // Ours, not the product's, which refuses settings that it does not know.
            .env_remove("EBB_EXECUTABLE")
            .env_remove("EBB_HARNESSED_EXECUTABLE")
            .env_remove("EBB_TEST_APP")
            // Else each leaves a file in the home of the person who runs the suites.
            .env("XDG_STATE_HOME", files.path())
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(stderr)
            // A signal that kills a suite or a benchmark kills this too.
            .process_group(guard::group().expect("a shell can be started"))
            .kill_on_drop(true)
            .spawn()
            .expect("the executable starts");
        let output = Arc::default();
        let stdout = collect_lines(child.stdout.take().expect("stdout is piped"), Arc::clone(&output));
        let mut readers = vec![tokio::spawn(stdout)];
        if let Some(stderr) = child.stderr.take() {
            readers.push(tokio::spawn(collect_lines(stderr, Arc::clone(&output))));
        }
        let mut ebb = Self {
            child,
            files,
            output,
            readers,
            requests: SocketAddr::from(([0; 4], 0)),
            api: SocketAddr::from(([0; 4], 0)),
        };
        ebb.requests = ebb.announced("requests: http://").await;
        ebb.api = ebb.announced("api: http://").await;
        ebb
    }

    /// Where requests are taken over TLS; it must have been started with that.
    pub async fn requests_over_tls(&mut self) -> SocketAddr {
        self.announced("requests over TLS: https://").await
    }

    async fn announced(&mut self, prefix: &str) -> SocketAddr {
        let output = Arc::clone(&self.output);
        eventually(&format!("a line with {prefix:?}"), GENEROUS, || {
            let lines = output.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let found = lines.iter().find_map(|line| line.strip_prefix(prefix)?.trim().parse().ok());
            async move { found.ok_or_else(|| lines.join("\n")) }
        })
        .await
    }

    /// Everything it and its pods printed so far.
    pub fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// From now on no reader takes what it prints: its standard output and standard error are closed at our
    /// end.
    pub async fn stop_reading(&mut self) {
        for reader in &mut self.readers {
            reader.abort();
            // A task that was aborted before its end says so.
            let _ = reader.await;
        }
    }

    /// The process id of the program.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it was not waited for")
    }

    /// A client for a service.
    pub fn load(&self, service: &str) -> Load {
        Load::new(self.requests, &format!("{service}.default.example.com"))
    }

    /// The folder with its files.
    pub fn folder(&self) -> &Path {
        self.files.path()
    }

    /// Writes (again) the manifest of a Service it was started with.
    pub fn rewrite(&self, service: &Service) {
        write(&service_file(self.files.path(), service.name()), &service.yaml());
    }

    /// Writes a file of its folder.
    pub fn write(&self, name: &str, text: &str) {
        write(&self.files.path().join(name), text);
    }

    /// Writes the configuration anew, for the running program to read.
    pub fn configure(&self, config: &ConfigMap) {
        self.write("config-autoscaler.yaml", &config.yaml());
    }

    /// Runs `ebb ARGUMENTS --api …` and returns exit code, standard output and standard error.
    pub async fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        self.ended_command(Command::new(executable()), arguments).await
    }

    /// The same as another user, which takes root.
    pub async fn run_as(&self, account: Account, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new("setpriv");
        let [user, group] = [account.user, account.group].map(|number| number.to_string());
        command.args(["--reuid", &user, "--regid", &group, "--clear-groups"]).arg(executable());
        self.ended_command(command, arguments).await
    }

    async fn ended_command(&self, mut command: Command, arguments: &[&str]) -> (i32, String, String) {
        let api = format!("http://{}", self.api);
        command.args(arguments).args(["--api", &api]).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.expect("the executable starts");
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// What `ebb explain NAME -o json` says.
    pub async fn explain(&self, service: &str) -> Result<Value, String> {
        self.json(&["explain", service, "-o", "json"]).await
    }

    /// What a command with `-o json` says.
    pub async fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        let (code, stdout, stderr) = self.run(arguments).await;
        if code != 0 {
            return Err(format!("exit code {code}: {stderr}"));
        }
        serde_json::from_str(&stdout).map_err(|error| format!("{error}: {stdout}"))
    }

    /// The state of a service now, as its API answers. An autoscaler that is being rebuilt is waited for.
    pub async fn revision(&self, service: &str) -> Result<Revision, String> {
        RevisionReader::new(self.api, service).read().await.map(Revision)
    }

    /// Waits until a service's state satisfies `holds`.
    pub async fn until(&self, service: &str, what: &str, holds: impl Fn(&Revision) -> bool) -> Revision {
        self.until_within(service, what, GENEROUS, holds).await
    }

    /// The same with a deadline.
    pub async fn until_within(
        &self,
        service: &str,
        what: &str,
        limit: Duration,
        holds: impl Fn(&Revision) -> bool,
    ) -> Revision {
        let mut reader = RevisionReader::new(self.api, service);
        let mut last = Err("no answer".to_owned());
        let looks = async {
            loop {
                let state = reader.read().await.map(Revision);
                match state {
                    Ok(revision) if holds(&revision) => return revision,
                    Ok(_) | Err(_) => last = state,
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let found = tokio::time::timeout(limit, looks).await;
        found.unwrap_or_else(|_| {
            let last = last.map_or_else(|why| why, |state| state.0.to_string());
            panic!("{service}: {what}: not within {limit:?}; last seen: {last}")
        })
    }

    /// Waits until a service has exactly this many ready pods and no other. It has none once none is wanted:
    /// until then, a pod may have been ordered that is not there yet.
    pub async fn until_pods(&self, service: &str, count: usize) -> Revision {
        self.until(service, &format!("{count} ready pods"), |revision| {
            let is_settled = count > 0 || revision.wanted() == 0;
            is_settled && revision.ready() == count && revision.pods().len() == count
        })
        .await
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        signal_process(self.pid(), signal);
    }

    /// Waits until the program has ended.
    pub async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(GENEROUS, self.child.wait())
            .await
            .unwrap_or_else(|_| panic!("it did not end:\n{}", self.output()))
            .expect("a child can be waited for")
    }
}

fn service_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.yaml"))
}

/// Replaces a file in one step, as editors do.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("the temporary folder can be written");
    std::fs::rename(&new, path).expect("the temporary folder can be written");
}

async fn collect_lines(stream: impl AsyncRead + Unpin, output: Arc<Mutex<Vec<String>>>) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        output.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

/// Sends a signal to a process.
pub fn signal_process(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).expect("process ids are positive 32-bit numbers");
    // The process may have ended in the meantime, which is what most signals are for.
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Whether a process exists (a zombie does not count).
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z')))
}

/// All descendants of a process.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for child in children(parent) {
            found.push(child);
            parents.push(child);
        }
    }
    found
}

fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc is mounted");
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
                stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok())
                    == Some(parent)
            })
        })
        .collect()
}

/// What the API says of one service, and `ebb explain -o json` prints.
#[derive(Clone, Debug)]
pub struct Revision(pub Value);

impl Revision {
    /// The number of pods that take requests.
    pub fn ready(&self) -> usize {
        self.pods().iter().filter(|pod| pod["state"] == "ready").count()
    }

    /// All pods of the revision, as the API shows them.
    pub fn pods(&self) -> &[Value] {
        self.0["pods"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The pods' process ids under this name (`app_pid`, `queue_proxy_pid`).
    pub fn pids(&self, which: &str) -> Vec<u32> {
        self.pods().iter().filter_map(|pod| pod["details"][which].as_str()?.parse().ok()).collect()
    }

    /// What the platform is asked for.
    pub fn wanted(&self) -> u64 {
        self.0["wanted"].as_u64().unwrap_or(u64::MAX)
    }

    /// Any other field of the answer, by its name.
    pub fn field(&self, name: &str) -> &Value {
        &self.0[name]
    }

    /// Whether exactly this many pods are wanted and ready, and nothing panics.
    pub fn is_settled_at(&self, count: u64) -> bool {
        self.wanted() == count && u64::try_from(self.ready()) == Ok(count) && self.0["mode"] == "stable"
    }

    /// Whether one of its last decisions was made with so many ready pods.
    pub fn had_ready(&self, count: u64) -> bool {
        self.last_decisions().iter().any(|decision| decision["inputs"]["ready_pods"] == count)
    }

    /// Its last decisions, a line each, for the message of a failed assertion.
    pub fn decisions(&self) -> String {
        let line = |decision: &Value| {
            let texts: Vec<&str> = decision["reasons"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|reason| reason["text"].as_str())
                .collect();
            format!(
                "\n{} ms ago, {}: wanted {}, {}; {}",
                decision["age_ms"],
                decision["trigger"],
                decision["wanted"],
                decision["inputs"],
                texts.join("; ")
            )
        };
        self.last_decisions().iter().map(line).collect()
    }

    fn last_decisions(&self) -> &[Value] {
        self.0["decisions"].as_array().map_or(&[][..], Vec::as_slice)
    }
}
