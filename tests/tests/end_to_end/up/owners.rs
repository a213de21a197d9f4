//! Several autoscalers: they divide the services among them, and one that stops, hangs or dies is replaced
//! without a trace in traffic and counts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tests::grip::Grip;
use tests::{ConfigMap, Ebb, Revision, Service};

const NAMES: [&str; 6] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
/// A lease, with time for a busy machine to notice that it ran out.
const TAKEN_OVER: Duration = Duration::from_secs(60);

/// Services of which each has a pod at least, in the buckets of both autoscalers.
fn services() -> Vec<Service> {
    NAMES.map(|name| Service::new(name).scaling("min-scale", "1").scaling("target", "10")).to_vec()
}

/// A window of usual length, because a busy machine's jitter is load too, and short windows rightly follow
/// it.
fn config() -> ConfigMap {
    ConfigMap::short().set("stable-window", "30s")
}

/// Who decides about what: service by service, the name and the epoch.
async fn owners(ebb: &Ebb) -> BTreeMap<String, (String, u64)> {
    let list = ebb.json(&["get", "-o", "json"]).await.expect("ebb answers");
    let revisions = list["revisions"].as_array().expect("a list").iter();
    let owner = |revision: &Value| {
        let name = revision["name"].as_str().expect("a name").rsplit('/').next().expect("a part");
        let owner = &revision["owner"];
        let owner =
            (owner["name"].as_str().expect("a name").to_owned(), owner["epoch"].as_u64().expect("one"));
        (name.to_owned(), owner)
    };
    revisions.map(owner).collect()
}

fn owner_of(revision: &Revision) -> &str {
    revision.field("owner")["name"].as_str().unwrap_or_default()
}

/// The value of a metric of the process.
async fn metric(ebb: &Ebb, series: &str) -> u64 {
    let page = tests::client::whole_answer(ebb.api, &ebb.api.to_string(), "/metrics").await.expect("a page");
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    line.unwrap_or_else(|| panic!("{series} is not in\n{page}"))
}

async fn all_up(ebb: &Ebb) {
    for name in NAMES {
        ebb.until_pods(name, 1).await;
    }
}

#[tokio::test]
async fn two_autoscalers_divide_the_services_and_are_rebuilt_one_by_one_under_load() {
    let ebb = Ebb::up_with(&services(), &config(), &["--autoscalers", "2", "--activators", "2"]).await;
    all_up(&ebb).await;
    let before = owners(&ebb).await;
    for name in ["autoscaler-1", "autoscaler-2"] {
        assert!(before.values().any(|(owner, _)| owner == name), "{name} has nothing to do: {before:?}");
        assert_eq!(metric(&ebb, &format!("autoscaler_owned_buckets{{owner=\"{name}\"}}")).await, 1);
        let service = before.iter().find(|(_, (owner, _))| owner == name).expect("just seen").0;
        let (_, text, _) = ebb.run(&["explain", service]).await;
        assert!(text.contains(&format!("owner      {name} (bucket ")), "{text}");
    }
    let traffic = NAMES.map(|name| ebb.load(name).path("/?sleep=20").in_background(20));
    let pids = ebb.revision("alpha").await.expect("ebb answers").pids("app_pid");
    for _ in 0..2 {
        let (code, _, stderr) = ebb.run(&["restart", "autoscaler"]).await;
        assert_eq!(code, 0, "{stderr}");
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    for traffic in traffic {
        traffic.end().await.assert_all_answered();
    }
    all_up(&ebb).await;
    assert_eq!(
        ebb.revision("alpha").await.expect("ebb answers").pids("app_pid"),
        pids,
        "its pod was left alone"
    );
    for (service, (owner, epoch)) in owners(&ebb).await {
        let (owner_before, epoch_before) = &before[&service];
        assert_eq!(owner, *owner_before, "{service} is decided about by who was rebuilt");
        assert!(epoch > *epoch_before, "{service}");
    }
}

#[tokio::test]
async fn an_owner_that_hangs_past_its_lease_is_replaced_and_its_late_orders_change_nothing() {
    let mut grip = Grip::listen().await;
    // No pod ends because the load has varied: what ends one within the test is an order.
    let services = services().into_iter().map(|service| service.scaling("scale-down-delay", "10m"));
    let services: Vec<Service> = services.collect();
    let ebb = Ebb::up_gripped(&grip, &services, &config(), &["--autoscalers", "2"]).await;
    all_up(&ebb).await;
    let revision = ebb.revision("alpha").await.expect("ebb answers");
    let hung = owner_of(&revision).to_owned();
    assert_eq!((revision.wanted(), metric(&ebb, "autoscaler_late_orders_total").await), (1, 0));
    grip.hold(&hung).await;
    // 20 in flight at 7 per pod: three pods, an order that stands still on its way.
    let traffic = ebb.load("alpha").path("/?sleep=500").in_background(40);
    grip.until_held(&hung).await;
    let taken_over = ebb
        .until_within("alpha", "another owner, which gives the order", TAKEN_OVER, |revision| {
            owner_of(revision) != hung && revision.wanted() >= 3
        })
        .await;
    // Twice the load: the present owner wants more than the order that still stands.
    let more = ebb.load("alpha").path("/?sleep=500").in_background(40);
    let most = ebb
        .until("alpha", "pods for twice the load", |revision| revision.wanted() >= 5 && revision.ready() >= 5)
        .await;
    grip.let_go(&hung).await;
    let late = tests::eventually("the refusal of the late order", Duration::from_secs(30), || async {
        let late = metric(&ebb, "autoscaler_late_orders_total").await;
        if late >= 1 { Ok(late) } else { Err(late.to_string()) }
    })
    .await;
    for _ in 0..50 {
        let revision = ebb.revision("alpha").await.expect("ebb answers");
        assert!(revision.wanted() >= 5, "after {late} late orders: {}", revision.decisions());
        assert_eq!(owner_of(&revision), owner_of(&taken_over), "it stays where it went");
        assert!(most.pids("app_pid").iter().all(|pid| tests::ebb::is_alive(*pid)), "no pod was ended");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(metric(&ebb, &format!("autoscaler_owned_buckets{{owner=\"{hung}\"}}")).await, 0);
    more.end().await.assert_all_answered();
    traffic.end().await.assert_all_answered();
}

#[tokio::test]
async fn an_owner_killed_under_load_changes_no_count_and_loses_nothing() {
    let mut grip = Grip::listen().await;
    let ebb = Ebb::up_gripped(&grip, &services(), &config(), &["--autoscalers", "2"]).await;
    all_up(&ebb).await;
    let owner = owner_of(&ebb.revision("alpha").await.expect("ebb answers")).to_owned();
    // 17.5 in flight at 7 per pod: in the middle of what 3 pods take.
    let traffic = ebb.load("alpha").path("/?sleep=500").in_background(35);
    ebb.until("alpha", "a load that calls for three pods", |revision| {
        revision.is_settled_at(3) && revision.field("stable_value").as_f64().is_some_and(|value| value > 14.5)
    })
    .await;
    grip.kill(&owner).await;
    tests::eventually("another owner", TAKEN_OVER, || async {
        // Until its lease ends, no autoscaler decides about what was its own.
        match ebb.revision("alpha").await {
            Ok(revision) if owner_of(&revision) != owner => Ok(()),
            Ok(_) => Err("the killed one still".to_owned()),
            Err(error) => Err(error),
        }
    })
    .await;
    for _ in 0..100 {
        let revision = ebb.revision("alpha").await.expect("ebb answers");
        assert_eq!(revision.wanted(), 3, "{}", revision.decisions());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let three = ebb.until("alpha", "the same three pods", |revision| revision.is_settled_at(3)).await;
    assert_eq!(three.pids("app_pid").len(), 3);
    traffic.end().await.assert_all_answered();
}
