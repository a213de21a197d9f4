//! Limits of memory and CPU, where a control group of version 2 can be had; elsewhere that they have no
//! effect is said, and that is what these tests show.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tests::{ConfigMap, Ebb, Revision, Service, eventually};

use crate::up::lifecycle::until_dead;

const PATIENCE: Duration = Duration::from_secs(60);

/// A group below one that limits memory and CPU; gone with this.
struct Delegated(PathBuf);

impl Delegated {
    /// `None`, with a word in the test's output, where this user may not make one.
    fn new(what_is_shown: &str) -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mount =
            mounts.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
        let mount = Path::new(mount.unwrap_or("/sys/fs/cgroup"));
        let below = mount.join(own);
        let limits = |group: &&Path| {
            let controllers =
                std::fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
            ["memory", "cpu"]
                .iter()
                .all(|name| controllers.split_ascii_whitespace().any(|word| word == *name))
        };
        let places = below.ancestors().take_while(|group| group.starts_with(mount)).filter(limits);
        for place in places {
            let group = place.join(format!("ebb-test-{}-{}", std::process::id(), what_is_shown.len()));
            if std::fs::create_dir(&group).is_ok() {
                return Some(Self(group));
            }
        }
        eprintln!(
            "not shown here, where no control group of version 2 for memory and CPU can be had: {what_is_shown}"
        );
        None
    }

    /// What a shell does to be in it.
    fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for group in ["pods", "ebb", ""] {
            let _ = std::fs::remove_dir(self.0.join(group));
        }
    }
}

fn limited(name: &str) -> Service {
    let limits = "resources: {limits: {memory: 64Mi, cpu: 500m}, requests: {cpu: 100m}}";
    Service::new(name).scaling("min-scale", "1").scaling("max-scale", "1").container(limits)
}

/// The group of a pod's app.
fn group_of(revision: &Revision) -> String {
    let pid = revision.pids("app_pid").first().copied().expect("an app");
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn limits_that_cannot_be_kept_are_warned_of_once_with_what_to_do() {
    // Whatever group the test is in, it is in the same.
    let services = [limited("one"), limited("two"), Service::new("free")];
    let ebb = Ebb::up(&services, &ConfigMap::short()).await;
    ebb.until_pods("one", 1).await;
    let output = ebb.output();
    let said: Vec<&str> = output.lines().filter(|line| line.contains("manifest have no effect: ")).collect();
    assert_eq!(said.len(), 1, "{output}");
    assert!(
        ["Delegate=yes", "systemd.unified_cgroup_hierarchy=1"].iter().any(|advice| said[0].contains(advice)),
        "{said:?}"
    );
    let (_, shown, _) = ebb.run(&["explain", "two"]).await;
    assert!(shown.contains("problem    service default/two: the limits of CPU and memory"), "{shown}");
    // They run all the same.
    ebb.load("one").burst(5).await.assert_all_answered();
}

#[tokio::test]
async fn an_app_that_needs_more_memory_than_its_limit_is_killed_and_that_is_said() {
    let Some(group) = Delegated::new("an app killed for memory") else { return };
    let hungry = Service::running("hungry", &["sh", "-c", "sleep 1; head -c 500000000 /dev/zero | tail"])
        .scaling("min-scale", "1")
        .container("readinessProbe: {exec: {command: [\"true\"]}}\nresources: {limits: {memory: 64Mi}}");
    let ebb = Ebb::up_after(&group.enter(), &[hungry], &ConfigMap::short()).await;
    let expected = "the app was killed for memory: it needed more than its limit of 64Mi";
    ebb.until("hungry", "its failure", |revision| revision.field("last_failure")["reason"] == expected).await;
    for command in [["explain", "hungry"], ["get", "hungry"]] {
        eventually("the reason", PATIENCE, || async {
            let (_, text, _) = ebb.run(&[&command[..], &["-o", "json"]].concat()).await;
            if text.contains("killed for memory") { Ok(()) } else { Err(text) }
        })
        .await;
    }
    drop(ebb);
}

#[tokio::test]
async fn limits_are_kept_before_and_after_a_take_over() {
    let Some(group) = Delegated::new("limits before and after a take-over") else { return };
    let services = [limited("kept"), Service::new("free").scaling("min-scale", "1")];
    let mut first = Ebb::up_after(&group.enter(), &services, &ConfigMap::short()).await;
    let before = first.until_pods("kept", 1).await;
    let of_pod = |revision: &Revision| {
        let own = group_of(revision);
        let leaf = own.rsplit('/').next().unwrap_or_default();
        let read = |file: &str| {
            std::fs::read_to_string(group.0.join("pods").join(leaf).join(file)).unwrap_or_default()
        };
        (read("memory.max"), read("cpu.max"))
    };
    let limits = ("67108864\n".to_owned(), "50000 100000\n".to_owned());
    assert_eq!(of_pod(&before), limits);
    assert!(group_of(&first.until_pods("free", 1).await).ends_with("/ebb"), "nothing is said of it");
    first.load("kept").burst(5).await.assert_all_answered();
    let second = first.successor().await;
    first.ended().await;
    assert_eq!(of_pod(&second.until_pods("kept", 1).await), limits);
    second.rewrite(&limited("kept").env("GREETING", "new"));
    let after = second.until("kept", "a new pod", |revision| {
        revision.ready() == 1
            && revision.pids("app_pid") != before.pids("app_pid")
            && revision.pods().len() == 1
    });
    let after = after.await;
    assert_eq!(of_pod(&after), limits, "whoever took over divides the same group");
    until_dead(&before.pids("app_pid")).await;
    let left = std::fs::read_dir(group.0.join("pods"))
        .expect("it is there")
        .flatten()
        .filter(|entry| entry.path().is_dir());
    assert_eq!(left.count(), 1, "groups go with their pods");
}
