//! With one request at a time in a pod, no slot stays idle while anything waits, whichever activator holds
//! it. How long one is idle, the benchmark `slots` measures; here no clock is looked at.

use std::path::Path;
use std::time::Duration;

use rstest::rstest;
use tests::slots::{Connection, Handled, SLOTS, read_journal, service};
use tests::{ConfigMap, Ebb, ebb, eventually};
use tokio::task::JoinSet;

/// Requests that wait when every slot is taken.
const WAITING: usize = 5;
const PATIENCE: Duration = Duration::from_secs(60);

/// What began so far, in the order of the beginnings, once it is as much as that.
async fn begun(journal: &Path, count: usize) -> Vec<Handled> {
    eventually(&format!("{count} requests in pods"), PATIENCE, || async {
        let journal = read_journal(journal).map_err(|error| format!("{error:#}"))?;
        let mut all: Vec<Handled> = journal.into_values().flatten().collect();
        all.sort_by_key(|handled| handled.begun);
        if all.len() == count { Ok(all) } else { Err(format!("{} have begun", all.len())) }
    })
    .await
}

/// All requests come on one connection, so to one activator, while three divide the slots among themselves:
/// most of them are in the slices of the other two, which hold nothing. Requests end only when they are told
/// to, one by one, and each time the slot takes the next of those that wait.
#[rstest]
#[tokio::test]
async fn waiting_requests_of_one_activator_take_every_slot_that_becomes_free(
    #[values(1, 3)] activators: u32,
) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (journal, gates) = (folder.path().join("journal"), folder.path().join("gates"));
    std::fs::create_dir(&gates).expect("the folder can be written");
    let service = service("slots", &ebb::test_app(), &journal);
    let arguments = ["--activators", &activators.to_string()];
    let ebb = Ebb::up_with(std::slice::from_ref(&service), &ConfigMap::short(), &arguments).await;
    ebb.until_pods("slots", SLOTS).await;
    let connection = Connection::http2(ebb.requests).await.expect("it listens");
    let mut asking = JoinSet::new();
    for number in 0..SLOTS + WAITING {
        let mut connection = connection.share().expect("HTTP/2 has room");
        let target = format!("/?until={}", gates.join(number.to_string()).display());
        let host = service.host();
        asking.spawn(async move { connection.ask(&host, &target).await });
    }
    for ended in 0..=WAITING {
        let begun = begun(&journal, SLOTS + ended).await;
        let (_, gate) = begun[ended].target.split_once('=').expect("as it was sent");
        std::fs::write(gate, "").expect("the folder can be written");
    }
    for number in 0..SLOTS + WAITING {
        std::fs::write(gates.join(number.to_string()), "").expect("the folder can be written");
    }
    while let Some(asked) = asking.join_next().await {
        asked.expect("it does not panic").expect("each is answered");
    }
    let journal = read_journal(&journal).expect("it was read before");
    assert_eq!(journal.len(), SLOTS, "every pod took some");
    for pod in journal.values() {
        let ends = pod.iter().map(|handled| handled.ended.expect("all are answered"));
        let next = pod.iter().skip(1).map(|handled| handled.begun);
        assert!(ends.zip(next).all(|(ended, begun)| ended <= begun), "two at once: {pod:?}");
    }
}
