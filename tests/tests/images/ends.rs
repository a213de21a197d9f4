//! However a part of `ebb` ends, no container of a pod outlives it for long.

use nix::sys::signal::Signal;
use tests::ebb::{is_alive, signal_process};
use tests::{ConfigMap, Ebb, eventually};

use crate::engine::{
    IN_HOST_NETWORK, PATIENCE, containers, kept, only_container, preparation, process_of, until_none, up,
};

/// The number of the `ebb pod` of a Service.
async fn pod_process(ebb: &Ebb, service: &str) -> u32 {
    let revision = ebb.until_pods(service, 1).await;
    revision.pids("pod_pid")[0]
}

/// Waits until a Service has another container in the place of this one, whose process is gone.
async fn until_replaced(service: &str, container: &str, process: u32) {
    eventually("another container", PATIENCE, || async {
        let found = containers(service);
        let is_gone = found.iter().all(|name| name != container) && !is_alive(process);
        if is_gone && !found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_killed_ebb_up_leaves_no_container() {
    let ebb = up(&[kept("orphaned", &[])], &ConfigMap::short(), "host").await;
    let (_, process) = only_container(&ebb, "orphaned").await;
    ebb.signal(Signal::SIGKILL);
    // Each `ebb pod` sees the end of its pipe.
    until_none("orphaned", &[process]).await;
}

#[tokio::test]
async fn a_killed_ebb_pod_leaves_its_container_to_ebb_up() {
    let ebb = up(&[kept("struck", &[])], &ConfigMap::short(), "host").await;
    let (container, process) = only_container(&ebb, "struck").await;
    signal_process(pod_process(&ebb, "struck").await, Signal::SIGKILL);
    until_replaced("struck", &container, process).await;
    only_container(&ebb, "struck").await;
    ebb.load("struck").burst(3).await.assert_all_answered();
}

#[tokio::test]
async fn the_next_ebb_up_removes_what_two_kills_have_left() {
    let services = [kept("left", &[])];
    let ebb = up(&services, &ConfigMap::short(), "host").await;
    let (container, process) = only_container(&ebb, "left").await;
    let pod = pod_process(&ebb, "left").await;
    // A stopped process does not see the end of its pipe before it is killed.
    signal_process(pod, Signal::SIGSTOP);
    ebb.signal(Signal::SIGKILL);
    signal_process(pod, Signal::SIGKILL);
    eventually("the end of both", PATIENCE, || async {
        if is_alive(pod) || is_alive(ebb.pid()) { Err("one lives".to_owned()) } else { Ok(()) }
    })
    .await;
    assert!(containers("left").contains(&container) && is_alive(process), "nothing is there to remove it");
    let next = up(&services, &ConfigMap::short(), "host").await;
    next.until_pods("left", 1).await;
    eventually("the container is gone", PATIENCE, || async {
        let found = containers("left");
        if found.contains(&container) || is_alive(process) { Err(format!("{found:?}")) } else { Ok(()) }
    })
    .await;
}

#[tokio::test]
async fn a_take_over_keeps_the_container_and_removes_it_when_its_pod_is_killed() {
    let mut first = up(&[kept("given", &[])], &ConfigMap::short(), "host").await;
    let (container, process) = only_container(&first, "given").await;
    let second = first.successor_after(&preparation(), &IN_HOST_NETWORK).await;
    assert_eq!(first.ended().await.code(), Some(0), "{}", first.output());
    second.load("given").burst(3).await.assert_all_answered();
    assert_eq!(containers("given"), std::slice::from_ref(&container), "it is the same");
    assert_eq!(process_of(&container), process);
    signal_process(pod_process(&second, "given").await, Signal::SIGKILL);
    until_replaced("given", &container, process).await;
    second.signal(Signal::SIGTERM);
    until_none("given", &[]).await;
}
