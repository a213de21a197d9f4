//! Class hpa beside Kubernetes' own autoscaler: the same answers, the same pods, the same counts, conditions
//! and reasons.
//!
//! The metrics APIs are served by this process ([`crate::metrics_adapter`]). The test that serves them holds
//! kube-controller-manager's autoscaler in its hand: a pass over one autoscaler asks for its first metric
//! after it has read the scale, and waits for the answer. While it waits, its former pass is over to the last
//! write, so what the API server holds then is exactly what that pass came to, and the count is exactly the
//! one that this pass has read ([`player`]). Nothing is guessed from watches.
//!
//! Three things cannot be known to the instant. *Pods* come to the controller by a watch: a pass in which the
//! script changes one may see it or not, and is held against both, and so is one in which Kubernetes' pod
//! garbage collector says `Failed` of pods that are deleted; every other pass has one truth. *Its clock* is
//! read between the first of a pass's answers and what it writes then; when that was stands in the API
//! server's log ([`writes`]). A pass is evaluated at the last answer, and if it does not agree, at other
//! instants in between, which matters only where an age crosses a window, a period or a start-up time. *When
//! it wrote a count*, from which its policies look back, stands there too; where that leaves two instants,
//! histories that differ in them are carried on side by side, and each pass leaves those that agree with it.
//! Each pass that needed one of these is shown with that cause; every other one has to agree exactly.

mod dice;
mod plan;
mod player;
mod script;
mod verdict;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use kube::Api;
use kube::api::DynamicObject;
use runtime::Clock;
use tests::cluster::{TestNamespace, in_namespace};
use tests::eventually;

use self::plan::{Plan, plans};
use self::player::Player;
use self::writes::WriteLog;
use crate::metrics_adapter::{Adapter, Answering, create};

/// Passes to be compared, and from each of the autoscalers.
const PASSES_MIN: usize = 1100;
const PASSES_OF_EACH_MIN: usize = 30;
/// It only bounds how long a failing test takes.
const PATIENCE: Duration = Duration::from_secs(150);
/// Passes that may need to be explained by the instant at which something was seen: a few in a hundred.
const EXPLAINED_MAX_PERCENT: usize = 10;

/// Whatever an autoscaler may say is said by one of them, so that nothing agrees because it never happened.
const SAID_BY_SOME: [&str; 20] = [
    "ReadyForNewScale",
    "ScaleDownStabilized",
    "ScaleUpStabilized",
    "SucceededRescale",
    "FailedUpdateScale",
    "ValidMetricFound",
    "ScalingDisabled",
    "FailedGetResourceMetric",
    "FailedGetContainerResourceMetric",
    "FailedGetPodsMetric",
    "FailedGetObjectMetric",
    "FailedGetExternalMetric",
    "DesiredWithinRange",
    "ScaleUpLimit",
    "TooManyReplicas",
    "ScaleDownLimit",
    "TooFewReplicas",
    "ScaledToZero",
    "NotScaledToZero",
    "SucceededGetScale",
];

#[test]
fn counts_conditions_and_reasons_are_those_of_kubernetes_own_autoscaler() {
    let _turn = crate::metrics_apis::turn();
    in_namespace("hpa-compared", compare);
}

async fn compare(namespace: TestNamespace) {
    plan::know_targets(&namespace.client).await;
    let log = Arc::new(std::sync::Mutex::new(WriteLog::open(&namespace.name)));
    let mut players = Vec::new();
    for plan in plans(&namespace.name) {
        let player = Player::new(plan, &namespace, Arc::clone(&log)).await;
        players.push(Arc::new(tokio::sync::Mutex::new(player)));
    }
    let adapter = Adapter::start(&namespace, answering(&namespace, &players).await).await;
    until_targets_are_scaled(&namespace, log).await;
    for player in &players {
        player.lock().await.begin().await;
    }
    let clock = Clock::start();
    let began = clock.now();
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut counts = Vec::new();
        for player in &players {
            let mut player = player.lock().await;
            player.change_between_passes().await;
            player.resume_if_paused().await;
            counts.push(player.record.passes);
        }
        let enough = counts.iter().sum::<usize>() >= PASSES_MIN
            && counts.iter().all(|passes| *passes >= PASSES_OF_EACH_MIN);
        if enough || clock.now().saturating_since(began) > PATIENCE {
            break;
        }
    }
    adapter.stop().await;
    for player in &players {
        player.lock().await.end().await;
    }
    report(&players).await;
}

/// Each player answers what is asked for its own target.
async fn answering(namespace: &TestNamespace, players: &[Arc<tokio::sync::Mutex<Player>>]) -> Answering {
    let mut named = Vec::new();
    for player in players {
        let name = player.lock().await.name().to_owned();
        named.push((name, Arc::clone(player)));
    }
    // What an earlier run left behind has autoscalers of the same names.
    let here = format!("/namespaces/{}/", namespace.name);
    Arc::new(move |asked: String| {
        let player = named.iter().find(|(name, _)| asked.contains(&here) && is_asked_for(&asked, name));
        let player = player.map(|(_, player)| Arc::clone(player));
        async move { Some(player?.lock().await.answer().await) }.boxed()
    })
}

/// A selector of pods, or the name of the metric, says whose it is.
fn is_asked_for(asked: &str, name: &str) -> bool {
    let ends = |pattern: String| {
        asked.match_indices(&pattern).any(|(at, found)| {
            asked[at + found.len()..].chars().next().is_none_or(|next| !next.is_ascii_alphanumeric())
        })
    };
    ends(format!("app%3D{name}"))
        || ends(format!("app={name}"))
        || ends(format!("jobs-{name}"))
        || ends(format!("hits-{name}"))
}

/// The controller learns of a new kind within half a minute.
async fn until_targets_are_scaled(namespace: &TestNamespace, log: Arc<std::sync::Mutex<WriteLog>>) {
    let probe = Plan::probe();
    let mut player = Player::new(probe, namespace, log).await;
    player.begin().await;
    let api: Api<DynamicObject> = plan::autoscalers(namespace);
    eventually("the controller knows the kind of our targets", Duration::from_secs(60), || async {
        let probe = api.get("probe").await.expect("it is there");
        let said = verdict::conditions(&probe.data["status"]);
        if said.iter().any(|line| line.contains("AbleToScale True")) {
            Ok(())
        } else {
            Err(format!("{said:?}"))
        }
    })
    .await;
    api.delete("probe", &kube::api::DeleteParams::default()).await.expect("it can be deleted");
}

async fn report(players: &[Arc<tokio::sync::Mutex<Player>>]) {
    let (mut passes, mut explained, mut differing) = (0, Vec::new(), Vec::new());
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    for player in players {
        let record = &player.lock().await.record;
        passes += record.passes;
        explained.extend(record.explained.clone());
        differing.extend(record.differing.clone());
        for (reason, times) in &record.reasons {
            *said.entry(reason.clone()).or_default() += times;
        }
    }
    println!(
        "{passes} passes compared; {} agree with what was seen a moment earlier or later:",
        explained.len()
    );
    for line in &explained {
        println!("  {line}");
    }
    println!("passes in which a reason was said: {said:?}");
    assert!(differing.is_empty(), "{} of {passes} differ:\n{}", differing.len(), differing.join("\n"));
    assert!(passes >= PASSES_MIN, "{passes} passes within {PATIENCE:?}");
    assert!(explained.len() * 100 <= passes * EXPLAINED_MAX_PERCENT, "too many had to be explained");
    let unsaid: Vec<&&str> = SAID_BY_SOME.iter().filter(|reason| !said.contains_key(**reason)).collect();
    assert!(unsaid.is_empty(), "never said: {unsaid:?}");
}
