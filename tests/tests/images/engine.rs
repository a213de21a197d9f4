//! Podman as the suite uses it: its settings, the image, and the containers that are there.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use tests::ebb::{is_alive, test_app};
use tests::podman::{Podman, SETTINGS_VARIABLE};
use tests::{ConfigMap, Ebb, Service, eventually};

/// The image of the suite: the test's app, and what it is linked with.
pub(crate) const IMAGE: &str = "localhost/ebb-test-app:1";
/// The options with which containers are in the network of the host.
pub(crate) const IN_HOST_NETWORK: [&str; 4] = ["--images", "podman", "--images-network", "host"];
/// How long a slow, busy machine may take for what normally takes a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Podman with its settings and the image, once that is made.
fn podman() -> &'static Podman {
    static PODMAN: OnceLock<Podman> = OnceLock::new();
    PODMAN.get_or_init(|| {
        let podman = Podman::in_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("images"));
        podman.make_image(IMAGE, Path::new(&test_app()));
        podman
    })
}

/// The text that podman prints when it is run so.
pub(crate) fn said(words: &[&str]) -> String {
    podman().run(words).unwrap_or_else(|error| panic!("{error}"))
}

/// What a shell does first, so that `ebb` and its engine have the suite's settings.
pub(crate) fn preparation() -> String {
    format!("export {SETTINGS_VARIABLE}='{}'", podman().settings().display())
}

/// `ebb up` with these Services, whose containers are in this network.
pub(crate) async fn up(services: &[Service], config: &ConfigMap, network: &str) -> Ebb {
    let arguments = ["--images", "podman", "--images-network", network];
    Ebb::up_after_with(&preparation(), services, config, &arguments).await
}

/// A Service of the image that always has a pod.
pub(crate) fn kept(name: &str, arguments: &[&str]) -> Service {
    Service::of_image(name, IMAGE, arguments).scaling("min-scale", "1")
}

/// The containers of the pods of a Service, running or not.
pub(crate) fn containers(service: &str) -> Vec<String> {
    let all = said(&["ps", "--all", "--filter", "label=ebb.dev/instance", "--format", "{{.Names}}"]);
    let prefix = format!("-{service}-");
    all.lines().map(str::trim).filter(|name| name.contains(&prefix)).map(str::to_owned).collect()
}

/// The first process of a container, by its number on this machine.
pub(crate) fn process_of(container: &str) -> u32 {
    let number = said(&["container", "inspect", "--format", "{{.State.Pid}}", container]);
    number.trim().parse().expect("a number")
}

/// Waits until nothing is left of a Service's containers, which had these processes.
pub(crate) async fn until_none(service: &str, processes: &[u32]) {
    eventually(&format!("no container of {service}"), PATIENCE, || async {
        let left = containers(service);
        let alive: Vec<u32> = processes.iter().copied().filter(|pid| is_alive(*pid)).collect();
        if left.is_empty() && alive.is_empty() { Ok(()) } else { Err(format!("{left:?}, {alive:?}")) }
    })
    .await;
}

/// The only container of a Service and its process, once the pod is ready.
pub(crate) async fn only_container(ebb: &Ebb, service: &str) -> (String, u32) {
    ebb.until_pods(service, 1).await;
    let found = containers(service);
    let [container] = &found[..] else { panic!("{found:?}") };
    (container.clone(), process_of(container))
}
