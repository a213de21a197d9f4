//! A Service that is applied together with its workload.

use std::io::ErrorKind;
use std::time::Duration;

use tests::bench::clock;
use tests::cluster::{WorkloadPlan, in_namespace};
use tokio::net::TcpStream;

/// From the existence of the Service until no connection to it is refused: a Lease, a slice and kube-proxy,
/// which gathers changes for a tenth of a second.
const SERVED_WITHIN: Duration = Duration::from_millis(150);
const TRIES: u32 = 10;
/// A connection in so long.
const EACH: Duration = Duration::from_millis(10);
/// Longer than any pod takes to start.
const WATCHED_FOR: Duration = Duration::from_secs(3);

#[test]
fn connections_to_a_new_service_are_taken_within_150_ms_and_never_refused_afterwards() {
    in_namespace("newcomers", async |namespace| {
        let mut last_refusals = Vec::new();
        for number in 0..TRIES {
            // Before either object is there: what is measured is a little more than what is promised.
            let began = clock::now();
            let workload = WorkloadPlan::new(&format!("new{number}")).create(&namespace).await;
            let mut last = Duration::ZERO;
            while clock::since(began) < WATCHED_FOR {
                let at = clock::since(began);
                let dialled =
                    tokio::time::timeout(Duration::from_secs(1), TcpStream::connect(workload.at(80)));
                match dialled.await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => last = at,
                    other => panic!("neither taken nor refused: {other:?}"),
                }
                tokio::time::sleep((began + at + EACH).saturating_sub(clock::now())).await;
            }
            last_refusals.push(last);
        }
        last_refusals.sort();
        println!("last refusals after the Service existed: {last_refusals:?}");
        assert!(last_refusals.iter().all(|last| *last <= SERVED_WITHIN), "{last_refusals:?}");
    });
}
