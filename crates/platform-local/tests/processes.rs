//! The local platform with real processes. This executable plays `ebb` too: called as `… pod` it is `ebb
//! pod`, as `… queue-proxy` a stand-in that announces ports and waits for its end, as `… supervise FILE` an
//! `ebb up` without activator and autoscaler, and as `… supervise-with-a-bug FILE` one whose supervisor fails
//! at the first edit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use orchestration::{
    Fence, Order, OrderId, PlatformFact, PlatformOrder, PodFacts, PodKill, ReleaseProof, RevisionFacts,
};
use platform::{Platform, Subscription};
use platform_local::{ForeignKinds, FrontDoor, LocalConfig, LocalPlatform, LogOptions, ManifestSource, load};
use scaling::{Decision, PodPhase, Trigger};
use vocabulary::{Bucket, Epoch, PodCount, PodName, PodState, ReplicaName, RevisionName};

/// Long enough for a busy machine; no test waits so long when all is well.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("pod") => platform_local::pod_main(),
        Some("queue-proxy") => stand_in(),
        Some("supervise") => supervise(Path::new(&arguments[1])),
        Some("supervise-with-a-bug") => {
            tracing::subscriber::set_global_default(EditBug).expect("nobody else listens");
            supervise(Path::new(&arguments[1]))
        }
        _ => run_all(),
    }
}

/// Each test by its name.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        vec![$(Trial::test(stringify!($name), || { drive($name()); Ok(()) })),*]
    };
}

/// One test after the other, with the arguments and the output of every other test program.
fn run_all() -> ExitCode {
    let tests = tests![
        a_pod_is_announced_and_leaves_in_order,
        a_failed_app_says_why_and_is_replaced,
        a_command_that_does_not_exist_is_named,
        a_killed_pod_process_takes_its_group_with_it,
        kill_leaves_nothing_behind,
        term_reaches_an_app_behind_a_shell_once_and_its_grace_is_waited_for,
        a_master_tells_its_workers_to_end_and_the_pod_does_not,
        a_daemon_is_told_to_end_after_the_first_processes_of_all_containers,
        a_process_that_outlives_its_grace_is_killed_and_named,
        a_queue_proxy_that_ends_as_its_pod_is_told_to_is_no_failure,
        an_edit_rolls_over_when_the_new_pod_is_ready,
        a_bad_edit_keeps_the_last_good,
        a_removed_service_is_stopped,
        drain_ends_everything,
        pods_that_wait_for_their_start_end_without_it,
        nothing_outlives_a_killed_supervisor,
        a_panic_in_the_supervisor_ends_the_process_with_a_code_of_its_own,
        pods_start_though_the_executable_was_replaced,
    ];
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// Ports without a connection, then silence until the default action of TERM.
fn stand_in() -> ExitCode {
    println!(r#"{{"requests":1,"admin":2,"link":3,"stat":4,"metrics":5}}"#);
    loop {
        std::thread::park();
    }
}

fn supervise(file: &Path) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let _platform = start(&[file.to_owned()]);
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

fn start(files: &[PathBuf]) -> Arc<LocalPlatform> {
    let manifests = ManifestSource::new(files.to_vec(), "example.com", ForeignKinds::Refused);
    let manifests = manifests.expect("standard input is not read");
    let loaded = load(&manifests).unwrap_or_else(|findings| panic!("{findings:?}"));
    let config = LocalConfig {
        manifests,
        logs: LogOptions::default(),
        max_pods: 100,
        autoscalers: vec![owner()],
        front_door: FrontDoor::without_tls(([127, 0, 0, 1], 8080).into()),
        ebb: std::env::current_exe().expect("this executable"),
        clock: runtime::Clock::start(),
        handover: None,
        app_descriptors: None,
        standing_problems: Vec::new(),
        certified: None,
    };
    LocalPlatform::start(config, loaded).expect("nothing was handed over")
}

fn owner() -> ReplicaName {
    ReplicaName::new("autoscaler-1")
}

/// A Service with one pod at least, whose app is a shell command.
fn manifest(name: &str, script: &str) -> String {
    format!(
        "apiVersion: serving.knative.dev/v1
kind: Service
metadata: {{name: {name}}}
spec:
  template:
    metadata: {{annotations: {{autoscaling.knative.dev/min-scale: \"1\"}}}}
    spec:
      containers:
        - command: [sh, -c, {script:?}]
"
    )
}

/// The platform, its files, and everything that it said.
struct World {
    platform: Arc<LocalPlatform>,
    subscription: Subscription,
    revisions: BTreeMap<RevisionName, Arc<RevisionFacts>>,
    pods: BTreeMap<RevisionName, Vec<PodFacts>>,
    problems: Vec<String>,
    kills: Vec<PodKill>,
    directory: tempfile::TempDir,
}

impl World {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("all.yaml"), text).expect("writing");
        let platform = start(&[directory.path().join("all.yaml")]);
        let subscription = platform.subscribe(&owner());
        let (revisions, pods) = (BTreeMap::new(), BTreeMap::new());
        let (problems, kills) = (Vec::new(), Vec::new());
        Self { platform, subscription, revisions, pods, problems, kills, directory }
    }

    /// As editors do: write beside, then rename.
    fn edit(&self, text: &str) {
        let beside = self.directory.path().join("all.yaml~");
        std::fs::write(&beside, text).expect("writing");
        std::fs::rename(beside, self.directory.path().join("all.yaml")).expect("renaming");
    }

    async fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let waiting = async {
            while !holds(self) {
                let event = self.subscription.facts.recv().await.expect("the platform lives");
                self.note(event);
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        assert!(in_time, "waited for {what}; pods: {:#?}, problems: {:#?}", self.pods, self.problems);
    }

    fn note(&mut self, event: PlatformFact) {
        match event {
            PlatformFact::RevisionChanged(facts) => {
                self.revisions.insert(facts.name.clone(), facts);
            }
            PlatformFact::RevisionRemoved(name) | PlatformFact::RevisionGivenBack(name) => {
                self.revisions.remove(&name);
                self.pods.remove(&name);
            }
            PlatformFact::PodsChanged { revision, pods } => {
                self.pods.insert(revision, pods);
            }
            PlatformFact::ProblemsChanged { problems, .. } => self.problems = problems,
            PlatformFact::PodKilled { kill, .. } => self.kills.push(kill),
            PlatformFact::ConfigChanged(_)
            | PlatformFact::OwnershipChanged(_)
            | PlatformFact::ActivatorsChanged(_)
            | PlatformFact::PodFailed { .. }
            | PlatformFact::RouteFound { .. }
            | PlatformFact::OrderEnded { .. }
            | PlatformFact::Synced => {}
        }
    }

    fn pods_of(&self, name: &str) -> &[PodFacts] {
        self.pods.get(&revision(name)).map_or(&[], Vec::as_slice)
    }

    fn running(&self, name: &str) -> Vec<PodName> {
        let running = self.pods_of(name).iter().filter(|pod| pod.phase == PodPhase::Running);
        running.map(|pod| pod.name.clone()).collect()
    }

    async fn first_running(&mut self, name: &str) -> PodFacts {
        self.until("a running pod", |world| !world.running(name).is_empty()).await;
        let pod = self.pods_of(name).iter().find(|pod| pod.phase == PodPhase::Running);
        pod.expect("just seen").clone()
    }

    fn ready(&self, pod: &PodName) {
        let (state, detail) = (PodState::Ready, String::new());
        self.order(Order::NotePodState { pod: pod.clone(), state, detail });
    }

    fn release(&self, pod: &PodName) {
        self.order(Order::ReleasePod { pod: pod.clone(), proof: ReleaseProof::Acknowledged });
    }

    /// As the first subscriber, whose orders are in force.
    fn order(&self, what: Order) {
        let fence = Fence { bucket: Bucket(0), epoch: Epoch(1) };
        self.subscription.seat.execute(PlatformOrder { id: OrderId(0), fence, what });
    }

    fn scale(&self, name: &str, count: u32) {
        let count = PodCount::new(count);
        let (from, because) = (PodCount::ZERO, Arc::new(decision()));
        self.order(Order::ScaleTo { revision: revision(name), from, to: count, end_first: vec![], because });
    }

    /// Lets a pod leave in order, and waits until it is gone.
    async fn end_in_order(&mut self, name: &str, pod: &PodName) {
        self.scale(name, 0);
        self.until("the pod to leave", |world| world.pods_of(name).iter().all(|pod| pod.leaving)).await;
        self.release(pod);
        self.until("the pod to end", |world| world.pods_of(name).is_empty()).await;
    }

    async fn end(self) {
        self.platform.kill();
        tokio::time::timeout(PATIENCE, self.platform.drain()).await.expect("everything ends");
    }
}

fn revision(name: &str) -> RevisionName {
    RevisionName::new("default", "service", name).expect("a name")
}

/// The reason of an ordered count.
fn decision() -> Decision {
    Decision::empty(Trigger::Tick, vocabulary::Timestamp::ZERO)
}

fn drive(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(test);
}

fn pid(pod: &PodFacts, which: &str) -> Pid {
    let text = pod.details.get(which).unwrap_or_else(|| panic!("{which} in {:?}", pod.details));
    Pid::from_raw(text.parse().expect("a number"))
}

fn is_alive(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // A zombie that was not collected yet has ended.
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// Processes with this word among their arguments.
fn with_argument(word: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").expect("procfs").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| {
            let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
        })
        .collect()
}

/// Looks again and again: processes report to no supervisor here.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..PATIENCE.as_millis() / 10 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited for {what}");
}

async fn a_pod_is_announced_and_leaves_in_order() {
    let mut world = World::new(&manifest("hello", "exec sleep 1000"));
    let pod = world.first_running("hello").await;
    assert_eq!(pod.requests.map(|address| address.to_string()).as_deref(), Some("127.0.0.1:1"));
    assert_eq!(pod.link.map(|link| link.socket.to_string()).as_deref(), Some("127.0.0.1:3"));
    assert_eq!(
        world.revisions[&revision("hello")].hosts(),
        [
            "hello.default.example.com",
            "hello.localhost",
            "hello.default.localhost",
            "localhost",
            "127.0.0.1",
            "[::1]"
        ]
    );
    let (app, queue_proxy) = (pid(&pod, "app_pid"), pid(&pod, "queue_proxy_pid"));
    assert!(is_alive(app) && is_alive(queue_proxy));

    world.scale("hello", 0);
    world.until("the pod to leave", |world| world.pods_of("hello").iter().all(|pod| pod.leaving)).await;
    assert!(is_alive(app) && is_alive(queue_proxy), "it waits for its release");
    world.release(&pod.name);
    world.until("the pod to end", |world| world.pods_of("hello").is_empty()).await;
    assert!(!is_alive(app) && !is_alive(queue_proxy));
    world.end().await;
}

async fn a_failed_app_says_why_and_is_replaced() {
    let mut world = World::new(&manifest("hello", "exit 3"));
    let mut reason = String::new();
    world
        .until("a successor that knows why", |world| {
            let successor = world
                .pods_of("hello")
                .iter()
                .find(|pod| pod.phase == PodPhase::Pending && pod.trouble.is_some());
            reason = successor.and_then(|pod| pod.trouble.clone()).unwrap_or_default();
            !reason.is_empty()
        })
        .await;
    assert!(reason.contains("failed: the app exited with code 3; it is started again "), "{reason}");
    world
        .until("the wait to double", |world| {
            world
                .pods_of("hello")
                .iter()
                .any(|pod| pod.trouble.as_ref().is_some_and(|text| text.contains("400ms")))
        })
        .await;
    world.end().await;
}

async fn a_command_that_does_not_exist_is_named() {
    let text = manifest("hello", "").replace("[sh, -c, \"\"]", "[/nonexistent/app]");
    let mut world = World::new(&text);
    let expected = "the app cannot be started: \"/nonexistent/app\": No such file or directory";
    world
        .until("the reason", |world| {
            let troubles = world.pods_of("hello").iter().filter_map(|pod| pod.trouble.as_ref());
            troubles.into_iter().any(|trouble| trouble.contains(expected))
        })
        .await;
    world.end().await;
}

async fn a_killed_pod_process_takes_its_group_with_it() {
    let mut world = World::new(&manifest("hello", "sleep 91817 & exec sleep 91817"));
    let pod = world.first_running("hello").await;
    eventually("the app's children", || with_argument("91817").len() == 2).await;
    kill(pid(&pod, "pod_pid"), Signal::SIGKILL).expect("killing");
    eventually("its group to end", || {
        !is_alive(pid(&pod, "app_pid")) && !is_alive(pid(&pod, "queue_proxy_pid"))
    })
    .await;
    world.until("a successor", |world| world.running("hello").iter().any(|name| *name != pod.name)).await;
    world.end().await;
    assert_eq!(with_argument("91817"), [] as [i32; 0]);
}

async fn kill_leaves_nothing_behind() {
    // One stays in the group, one leaves it, one loses its parent.
    let script = "trap '' TERM; sleep 91818 & setsid sleep 91818 & (setsid sleep 91818 &) ; sleep 91818";
    let mut world = World::new(&manifest("hello", script));
    world.first_running("hello").await;
    eventually("the app's children", || with_argument("91818").len() == 4).await;
    world.end().await;
    assert_eq!(with_argument("91818"), [] as [i32; 0]);
}

/// A shell script `NAME.sh` in a folder of notes. It has that folder in `$notes`, writes `start` into
/// `NAME.log`, and goes on until `on_term`, which it does on TERM, ends it.
fn note_taker(notes: &Path, name: &str, on_term: &str) -> String {
    let (folder, log) = (notes.display(), notes.join(format!("{name}.log")));
    let script = format!(
        "notes={folder}; note() {{ echo $1 >> {log}; }}; trap '{on_term}' TERM; note start
while :; do sleep 0.02; done\n",
        log = log.display()
    );
    let path = notes.join(format!("{name}.sh"));
    std::fs::write(&path, script).expect("writing");
    path.display().to_string()
}

fn notes_of(notes: &Path, name: &str) -> String {
    std::fs::read_to_string(notes.join(format!("{name}.log"))).unwrap_or_default()
}

async fn until_started(notes: &Path, names: &[&str]) {
    let have_started = || names.iter().all(|name| notes_of(notes, name).starts_with("start\n"));
    eventually("every process to start", have_started).await;
}

const ENDS_IN_ORDER: &str = "note TERM; sleep 0.4; note ended; exit 0";

async fn term_reaches_an_app_behind_a_shell_once_and_its_grace_is_waited_for() {
    for form in [
        "exec sh APP",
        "export A=1; sh APP; echo over",
        "sh APP & wait",
        "(sh -c 'sh APP; echo over'; echo over) | cat; echo over",
        "(setsid sh APP &); sleep 1000",
    ] {
        let notes = tempfile::tempdir().expect("a temporary directory");
        let app = note_taker(notes.path(), "app", ENDS_IN_ORDER);
        let mut world = World::new(&manifest("hello", &form.replace("APP", &app)));
        let pod = world.first_running("hello").await;
        until_started(notes.path(), &["app"]).await;
        world.end_in_order("hello", &pod.name).await;
        assert_eq!(notes_of(notes.path(), "app"), "start\nTERM\nended\n", "{form}");
        assert!(world.kills.is_empty(), "{form}: {:?}", world.kills);
        world.end().await;
    }
}

async fn a_master_tells_its_workers_to_end_and_the_pod_does_not() {
    for form in ["exec sh MASTER", "export A=1; sh MASTER; echo over"] {
        let notes = tempfile::tempdir().expect("a temporary directory");
        // A worker that goes on after TERM counts every one; the master ends it with another signal.
        let worker = note_taker(notes.path(), "worker", "note TERM");
        let second = worker.replace("worker.sh", "second.sh");
        note_taker(notes.path(), "second", "note TERM");
        let on_term =
            "note TERM; kill -TERM $one $two; sleep 1.5; kill -KILL $one $two; wait; note ended; exit 0";
        let master = note_taker(notes.path(), "master", on_term);
        let script = std::fs::read_to_string(&master).expect("it was written");
        std::fs::write(&master, format!("sh {worker} & one=$!; sh {second} & two=$!\n{script}"))
            .expect("writing");
        let mut world = World::new(&manifest("hello", &form.replace("MASTER", &master)));
        let pod = world.first_running("hello").await;
        until_started(notes.path(), &["master", "worker", "second"]).await;
        world.end_in_order("hello", &pod.name).await;
        assert_eq!(notes_of(notes.path(), "master"), "start\nTERM\nended\n", "{form}");
        for worker in ["worker", "second"] {
            assert_eq!(notes_of(notes.path(), worker), "start\nTERM\n", "{worker}: {form}");
        }
        world.end().await;
    }
}

async fn a_daemon_is_told_to_end_after_the_first_processes_of_all_containers() {
    let notes = tempfile::tempdir().expect("a temporary directory");
    let order = "echo $0 >> $notes/order; exit 0";
    let daemon = note_taker(notes.path(), "daemon", order);
    let slow = note_taker(notes.path(), "slow", &format!("sleep 1; {order}"));
    let quick = note_taker(notes.path(), "quick", order);
    let app = manifest("hello", &format!("exec sh {quick}"));
    let app = app
        .replace("- command:", "- name: quick\n          ports: [{containerPort: 80}]\n          command:");
    let beside = format!("(setsid sh {daemon} &); exec sh {slow}");
    let text = format!("{app}        - name: slow\n          command: [sh, -c, {beside:?}]\n");
    let mut world = World::new(&text);
    let pod = world.first_running("hello").await;
    until_started(notes.path(), &["daemon", "slow", "quick"]).await;
    world.end_in_order("hello", &pod.name).await;
    let order = std::fs::read_to_string(notes.path().join("order")).expect("all wrote there");
    assert_eq!(order, format!("{quick}\n{slow}\n{daemon}\n"));
    world.end().await;
}

async fn a_process_that_outlives_its_grace_is_killed_and_named() {
    for (script, expected) in [
        ("trap '' TERM; sleep 91831 & exec sleep 91831", "the app was killed 1 s after TERM".to_owned()),
        (
            "(trap '' TERM; exec sleep 91832) & wait",
            "sleep (pid PID), which outlived the first process, was killed 1 s after TERM".to_owned(),
        ),
    ] {
        let text = manifest("hello", script);
        let text =
            text.replace("      containers:", "      terminationGracePeriodSeconds: 1\n      containers:");
        let mut world = World::new(&text);
        let pod = world.first_running("hello").await;
        let sleepers = || [with_argument("91831"), with_argument("91832")].concat();
        eventually("the processes that ignore TERM", || !sleepers().is_empty()).await;
        let left = sleepers();
        world.end_in_order("hello", &pod.name).await;
        world.until("the word about it", |world| !world.kills.is_empty()).await;
        let kill = &world.kills[0];
        let last = left.last().expect("one was found").to_string();
        assert_eq!((&kill.pod, kill.reason.as_str()), (&pod.name, expected.replace("PID", &last).as_str()));
        assert_eq!(sleepers(), [] as [i32; 0]);
        world.end().await;
    }
}

async fn a_queue_proxy_that_ends_as_its_pod_is_told_to_is_no_failure() {
    let mut world =
        World::new(&manifest("hello", "trap 'sleep 0.3; exit 0' TERM; while :; do sleep 0.02; done"));
    let pod = world.first_running("hello").await;
    let [pod_process, queue_proxy] = ["pod_pid", "queue_proxy_pid"].map(|which| pid(&pod, which));
    // TERM and the end of the queue-proxy are both there when `ebb pod` looks again.
    kill(pod_process, Signal::SIGSTOP).expect("stopping");
    world.scale("hello", 0);
    world.until("the pod to leave", |world| world.pods_of("hello").iter().all(|pod| pod.leaving)).await;
    world.release(&pod.name);
    eventually("its TERM", || has_pending(pod_process, Signal::SIGTERM)).await;
    kill(queue_proxy, Signal::SIGTERM).expect("ending");
    eventually("the end of the queue-proxy", || !is_alive(queue_proxy)).await;
    kill(pod_process, Signal::SIGCONT).expect("continuing");
    world
        .until("the pod to end", |world| {
            let pods = world.pods_of("hello");
            assert!(pods.iter().all(|pod| pod.trouble.is_none()), "{pods:?}");
            pods.is_empty()
        })
        .await;
    world.end().await;
}

/// Whether a signal waits for a process that is stopped.
fn has_pending(process: Pid, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let pending = pending.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    pending & (1 << (signal as u32 - 1)) != 0
}

async fn an_edit_rolls_over_when_the_new_pod_is_ready() {
    let mut world = World::new(&manifest("hello", "exec sleep 1000"));
    let old = world.first_running("hello").await;
    world.ready(&old.name);
    world.edit(&manifest("hello", "exec sleep 1001"));
    world.until("both", |world| world.running("hello").len() == 2).await;
    let new = world.running("hello").into_iter().find(|name| *name != old.name).expect("two pods");
    assert!(new.as_str().starts_with("hello-00002-"), "{new}");
    assert!(
        world.pods_of("hello").iter().all(|pod| !pod.leaving),
        "the old one serves until the new one is ready"
    );
    world.ready(&new);
    world
        .until("the old one to leave", |world| {
            world
                .pods_of("hello")
                .iter()
                .all(|pod| pod.leaving == (pod.name == old.name) && pod.outdated == pod.leaving)
        })
        .await;
    world.release(&old.name);
    world.until("the old one to end", |world| world.pods_of("hello").len() == 1).await;
    world.end().await;
}

async fn a_bad_edit_keeps_the_last_good() {
    let good = manifest("hello", "exec sleep 1000");
    let mut world = World::new(&good);
    let pod = world.first_running("hello").await;
    world.edit(&good.replace("min-scale", "min-scal"));
    world.until("a problem", |world| !world.problems.is_empty()).await;
    assert!(world.problems[0].contains("all.yaml:6:30: "), "{:?}", world.problems);
    world.edit(&format!("{good}\n{{"));
    world
        .until("another problem", |world| world.problems.iter().any(|text| text.contains("is not YAML")))
        .await;
    assert_eq!(world.running("hello"), [pod.name]);
    world.edit(&good);
    world.until("all well", |world| world.problems.is_empty()).await;
    world.end().await;
}

async fn a_removed_service_is_stopped() {
    let (one, two) = (manifest("one", "exec sleep 1000"), manifest("two", "exec sleep 1000"));
    let mut world = World::new(&format!("{one}---\n{two}"));
    world.first_running("one").await;
    world.first_running("two").await;
    assert_eq!(world.revisions[&revision("one")].hosts().len(), 3);
    world.edit(&one);
    world.until("the pod to leave", |world| world.pods_of("two").iter().all(|pod| pod.leaving)).await;
    for pod in world.pods_of("two").to_vec() {
        world.release(&pod.name);
    }
    world.until("the revision to go", |world| !world.revisions.contains_key(&revision("two"))).await;
    world.until("the single hosts", |world| world.revisions[&revision("one")].hosts().len() == 6).await;
    assert_eq!(world.running("one").len(), 1);
    world.end().await;
}

async fn drain_ends_everything() {
    let mut world = World::new(&manifest("hello", "exec sleep 1000"));
    let pod = world.first_running("hello").await;
    let World { platform, subscription, .. } = world;
    // No process listens any more, so there is none to wait for.
    drop(subscription);
    tokio::time::timeout(PATIENCE, platform.drain()).await.expect("it drains");
    for which in ["pod_pid", "app_pid", "queue_proxy_pid"] {
        assert!(!is_alive(pid(&pod, which)), "{which}");
    }
}

async fn pods_that_wait_for_their_start_end_without_it() {
    const MANY: u32 = 1000;
    let mut world = World::new(&manifest("hello", "exec sleep 1000"));
    let first = world.first_running("hello").await;
    world.scale("hello", MANY);
    world.until("all of them", |world| world.pods_of("hello").len() == MANY as usize).await;
    world.scale("hello", 1);
    world
        .until("the others to end", |world| {
            for pod in world.pods_of("hello").iter().filter(|pod| pod.leaving) {
                world.release(&pod.name);
            }
            world.pods_of("hello").len() == 1
        })
        .await;
    assert_eq!(world.running("hello"), [first.name], "the oldest stays");
    // In the middle of it, everything ends.
    world.scale("hello", MANY);
    world.until("all of them again", |world| world.pods_of("hello").len() == MANY as usize).await;
    world.end().await;
}

/// A bug in the supervisor that shows when it says that a file was edited: what listens to its log panics in
/// its task.
struct EditBug;

impl tracing::Subscriber for EditBug {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "platform_local::supervisor::edits"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        panic!("a bug that a test has put here");
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Pods without a supervisor would run on as they are, whatever load and files say: so the process ends, with
/// them, and the program that started it starts it again.
async fn a_panic_in_the_supervisor_ends_the_process_with_a_code_of_its_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (file, words) = (directory.path().join("hello.yaml"), directory.path().join("words"));
    std::fs::write(&file, manifest("hello", "sleep 91823")).expect("writing");
    let mut supervisor = Command::new(std::env::current_exe().expect("this executable"))
        .arg("supervise-with-a-bug")
        .arg(&file)
        .stdin(Stdio::null())
        .stderr(std::fs::File::create(&words).expect("a file for its words"))
        .spawn()
        .expect("starting");
    eventually("the app", || !with_argument("91823").is_empty()).await;
    std::fs::write(&file, manifest("hello", "sleep 91824")).expect("writing");
    eventually("its end", || supervisor.try_wait().expect("waiting").is_some()).await;
    let said = std::fs::read_to_string(&words).expect("its words");
    assert_eq!(supervisor.wait().expect("it has ended").code(), Some(70), "{said}");
    assert!(
        said.contains("error: the supervisor of the pods failed (a bug that a test has put here)"),
        "{said}"
    );
    let is_nobody_left = || ["91823", "91824"].iter().all(|app| with_argument(app).is_empty());
    eventually("every process to end", is_nobody_left).await;
}

async fn nothing_outlives_a_killed_supervisor() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("hello.yaml");
    let script = "sleep 91819 & setsid sleep 91819 & (setsid sleep 91819 &) ; sleep 91819";
    std::fs::write(&file, manifest("hello", script)).expect("writing");
    let mut supervisor = Command::new(std::env::current_exe().expect("this executable"))
        .arg("supervise")
        .arg(&file)
        .stdin(Stdio::null())
        .spawn()
        .expect("starting");
    eventually("the app's children", || with_argument("91819").len() == 4).await;
    supervisor.kill().expect("killing");
    supervisor.wait().expect("waiting");
    eventually("every process to end", || with_argument("91819").is_empty()).await;
}

async fn pods_start_though_the_executable_was_replaced() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (file, starts) = (directory.path().join("hello.yaml"), directory.path().join("starts"));
    let script = format!("echo >> {}; exit 3", starts.display());
    std::fs::write(&file, manifest("hello", &script)).expect("writing");
    let executable = directory.path().join("ebb");
    std::fs::copy(std::env::current_exe().expect("this executable"), &executable).expect("copying");
    let mut supervisor =
        Command::new(&executable).arg("supervise").arg(&file).stdin(Stdio::null()).spawn().expect("starting");
    let count = || std::fs::read_to_string(&starts).map_or(0, |text| text.lines().count());
    eventually("a start", || count() > 0).await;
    std::fs::remove_file(&executable).expect("removing");
    std::fs::write(&executable, "not a program").expect("writing");
    let before = count();
    // One may have been under way.
    eventually("more starts", || count() > before + 1).await;
    supervisor.kill().expect("killing");
    supervisor.wait().expect("waiting");
}
