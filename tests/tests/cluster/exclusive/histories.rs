//! With the component `kept-histories` the past of a revision outlives the autoscaler that measured it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tests::cluster::{
    PATIENCE, SYSTEM, TestNamespace, WorkloadPlan, ebb, in_namespace, kubectl, succeeds, text,
};
use tests::eventually;

/// A lease, which its holder may have renewed a moment before, and a second to notice.
const FOLLOWED_AFTER_KILL: Duration = Duration::from_secs(16);
/// The number of days whose requests are imported.
const DAYS: u8 = 8;
/// What is measured during the test changes what is expected of the last of the 24 hours that come.
const HOURS_COMPARED: usize = 20;

/// The files of the component.
fn component() -> [String; 2] {
    ["rights.yaml", "policy.yaml"].map(|name| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/components/kept-histories");
        folder.join(name).to_str().expect("its path is text").to_owned()
    })
}

/// Replaces all autoscalers, as a new version of ebb does.
async fn roll(namespace: &TestNamespace) {
    kubectl(&["-n", SYSTEM, "rollout", "restart", "deployment/autoscaler"]).await;
    kubectl(&["-n", SYSTEM, "rollout", "status", "deployment/autoscaler", "--timeout=90s"]).await;
    namespace.settled_owner().await;
}

/// Requests of these days until now, each hour of the day with another number of them.
fn past() -> String {
    let begins = jiff::Timestamp::now() - Duration::from_secs(86_400 * u64::from(DAYS));
    let begins = begins.strftime("%Y-%m-%dT%H:%MZ");
    let count = |line: usize| (6000 * (line / 6 % 24 + 1)).to_string();
    let counts: Vec<String> = (0..usize::from(DAYS) * 24 * 6).map(count).collect();
    format!("# begins {begins}\n# bin 10m\n# service-time 100ms\n{}\n", counts.join("\n"))
}

/// What is expected of `hello` in the hours that come, by their local times; `Err` while some is not known.
async fn expected(namespace: &TestNamespace) -> Result<BTreeMap<String, String>, String> {
    let output = ebb(namespace, &["forecast", "hello", "-o", "json"]).await;
    let forecast: Value = serde_json::from_slice(&output.stdout).map_err(|_| text(&output))?;
    let hours = forecast["hours"].as_array().ok_or_else(|| forecast.to_string())?;
    // The first hour has begun, perhaps by another minute.
    let compared = hours.iter().skip(1).take(HOURS_COMPARED).map(|hour| {
        let numbers = [&hour["usual"], &hour["high"], &hour["pods"]];
        if numbers.iter().any(|number| number.is_null()) {
            return Err(forecast.to_string());
        }
        let local_time = hour["local_time"].as_str().unwrap_or_default().to_owned();
        Ok((local_time, format!("{} {} {}", numbers[0], numbers[1], numbers[2])))
    });
    let compared: BTreeMap<String, String> = compared.collect::<Result<_, _>>()?;
    if compared.len() == HOURS_COMPARED { Ok(compared) } else { Err(forecast.to_string()) }
}

/// Waits until the owner that decides by now expects what the former one did.
async fn expects_as(namespace: &TestNamespace, former: &BTreeMap<String, String>) {
    eventually("the next owner's forecast equals the former's", PATIENCE, || async {
        let present = expected(namespace).await?;
        let common = present.iter().filter(|(at, _)| former.contains_key(*at));
        let equal = common.filter(|(at, numbers)| former.get(*at) == Some(*numbers)).count();
        // An hour may have passed meanwhile.
        if equal + 1 >= HOURS_COMPARED { Ok(()) } else { Err(format!("{present:?} after {former:?}")) }
    })
    .await;
}

#[test]
fn a_past_outlives_a_rolled_autoscaler_and_a_killed_owner() {
    in_namespace("histories", async |namespace| {
        for file in component() {
            kubectl(&["apply", "-f", &file]).await;
        }
        // An autoscaler that decided without these rights tries again in ten minutes, and the next one reads
        // at once.
        roll(&namespace).await;
        let hello = WorkloadPlan::new("hello").annotated("ebb.dev/prediction", "auto");
        let hello = hello.annotated("ebb.dev/time-zone", "UTC").create(&namespace).await;
        hello.has_pods(0).await;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("hello.past");
        std::fs::write(&file, past()).expect("the disk has room");
        let file = file.to_str().expect("its path is text");
        let said = succeeds(&namespace, &["forecast", "hello", "--import", file]).await;
        assert!(said.contains("measured minutes more"), "{said}");
        let known = eventually("the past is foreseen", PATIENCE, || expected(&namespace)).await;
        let different: BTreeSet<&String> = known.values().collect();
        assert!(different.len() > HOURS_COMPARED / 2, "each hour has another load: {known:?}");
        eventually("the past is in ConfigMaps", PATIENCE, || async {
            let labels = "ebb.dev/history-bucket";
            let maps = kubectl(&["-n", SYSTEM, "get", "configmaps", "-l", labels, "-o", "name"]).await;
            if maps.lines().count() > usize::from(DAYS) { Ok(()) } else { Err(maps) }
        })
        .await;

        roll(&namespace).await;
        expects_as(&namespace, &known).await;

        let owner = namespace.settled_owner().await;
        namespace.kill_autoscaler(&owner.name).await;
        eventually("another autoscaler decides", FOLLOWED_AFTER_KILL, || async {
            namespace.successor_of(&owner).await
        })
        .await;
        expects_as(&namespace, &known).await;

        for file in component() {
            kubectl(&["delete", "-f", &file]).await;
        }
        kubectl(&["-n", SYSTEM, "delete", "configmaps", "-l", "ebb.dev/history-bucket"]).await;
    });
}
