//! Many pods on a machine without an idle core: starts wait for starts that use the cores, and say so; starts
//! that sleep hold up none. What is shown is the order of events, not how long they took.

use std::num::NonZero;
use std::process::{Child, Command};
use std::thread::available_parallelism;
use std::time::Duration;

use tests::{ConfigMap, Ebb, Service, eventually};

const PATIENCE: Duration = Duration::from_secs(60);

fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// More than may be under way at once, which is two for each core.
fn pods() -> usize {
    15.max(3 * cores())
}

/// Processes that are no pods and keep every core busy, until this is dropped.
struct BusyCores(Vec<Child>);

impl BusyCores {
    fn all() -> Self {
        let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        Self((0..cores()).map(|_| busy()).collect())
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A service that wants all its pods at once, and whose app does this before it listens.
fn slow(name: &str, start: [&str; 2]) -> Service {
    Service::new(name).args(&start).scaling("min-scale", &pods().to_string())
}

/// The apps sleep for so long that none is ready meanwhile: no start waits for the end of another.
#[tokio::test]
async fn pods_that_sleep_before_they_listen_are_all_started_on_a_busy_machine_before_one_is_ready() {
    let _busy = BusyCores::all();
    let services = [slow("sleeper", ["--start-delay-ms", "120000"])];
    let ebb = Ebb::up(&services, &ConfigMap::short()).await;
    let all = ebb
        .until_within("sleeper", "an app in each pod", PATIENCE, |revision| {
            revision.pids("app_pid").len() == pods()
        })
        .await;
    assert_eq!((all.ready(), all.pods().len()), (0, pods()));
    assert_eq!(all.field("awaiting_core_pods"), 0, "{all:?}");
}

/// Each start uses a core for so long that the others cannot begin meanwhile.
#[tokio::test]
async fn starts_that_wait_for_a_core_are_counted_and_explained_and_are_not_unheard() {
    let ebb = Ebb::up(&[slow("worker", ["--start-work-ms", "120000"])], &ConfigMap::short()).await;
    let waits = ebb
        .until_within("worker", "starts that wait for a core", PATIENCE, |revision| {
            revision.field("awaiting_core_pods").as_u64().is_some_and(|pods| pods > 0)
        })
        .await;
    let waiting: Vec<_> = waits.pods().iter().filter(|pod| pod["awaits_core"] == true).collect();
    assert!(waiting.iter().all(|pod| pod["state"] == "starting" && pod["trouble"].is_null()), "{waiting:?}");
    for (arguments, expected) in [
        (["get", "worker"], ["0 ready, ", " waiting for a core"]),
        (
            ["explain", "worker"],
            [" for a core: starts of pods use the cores", "autoscaling.knative.dev/max-scale"],
        ),
    ] {
        eventually("the reason", PATIENCE, || async {
            let wide = [&arguments[..], &["-o", "wide"]].concat();
            let (_, text, _) = ebb.run(&wide).await;
            if expected.iter().all(|part| text.contains(part)) { Ok(()) } else { Err(text) }
        })
        .await;
    }
}
