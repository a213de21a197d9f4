//! Class hpa on real processes: by what apps use, by requests, and by both; and how fast the count may
//! follow.

use std::time::Duration;

use runtime::Clock;
use tests::{ConfigMap, Ebb, Revision, Service};

const CLASS: &str = "hpa.autoscaling.knative.dev";
/// A CPU value is the mean of 15 s, and a busy machine may take several of them.
const LONG: Duration = Duration::from_secs(120);

/// Syncs every second, and windows of seconds.
fn quick() -> ConfigMap {
    ConfigMap::short().set("hpa-sync-period", "1s").set("hpa-downscale-stabilization", "3s")
}

fn with_document(service: Service, document: &str) -> Service {
    service.annotation("ebb.dev/hpa", document)
}

fn requests_cpu(service: Service, amount: &str) -> Service {
    service.container(&format!("resources:\n  requests:\n    cpu: {amount}"))
}

fn metrics(revision: &Revision) -> String {
    revision.field("metrics").as_str().unwrap_or_default().to_owned()
}

/// 17.5 % of a core in all, where each pod is meant to use 5 %: between three and four pods, whichever gets
/// which request.
#[tokio::test]
async fn cpu_alone_finds_the_right_count_and_comes_back() {
    let service =
        Service::new("burner").scaling("class", CLASS).scaling("metric", "cpu").scaling("target", "50");
    // A pod that has just begun counts for nothing yet: longer than that, so that its siblings are not taken
    // for too many (as with Kubernetes).
    let config = quick().set("hpa-downscale-stabilization", "30s");
    let ebb = Ebb::up(&[requests_cpu(service, "100m")], &config).await;
    ebb.until_pods("burner", 1).await;
    let burning = ebb.load("burner").path("/?burn=35").in_background(5);
    ebb.until_within("burner", "four pods", LONG, |revision| revision.wanted() == 4 && revision.ready() == 4)
        .await;
    let settled = ebb.until_within("burner", "on target", LONG, |revision| {
        let metrics = metrics(revision);
        let percent =
            metrics.strip_prefix("cpu ").and_then(|rest| rest.split('%').next()?.parse::<u32>().ok());
        revision.wanted() == 4 && percent.is_some_and(|percent| (30..=55).contains(&percent))
    });
    let settled = settled.await;
    assert_eq!(settled.field("class"), "hpa");
    let (_, table, _) = ebb.run(&["get", "-o", "wide"]).await;
    assert!(table.contains("METRICS") && table.contains("%/50%"), "{table}");
    let (_, explained, _) = ebb.run(&["explain", "burner"]).await;
    assert!(explained.contains("metrics    cpu ") && explained.contains("metric: cpu"), "{explained}");
    burning.end().await.assert_none_lost();
    ebb.until_within("burner", "one pod again", LONG, |revision| revision.wanted() == 1).await;
}

#[tokio::test]
async fn cpu_and_requests_together_go_to_zero_and_back_and_lose_nothing() {
    let document = "{minReplicas: 0, maxReplicas: 6, metrics: [\
        {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}, \
        {type: Pods, pods: {metric: {name: ebb.concurrency}, target: {type: AverageValue, averageValue: 4}}}]}";
    let service = requests_cpu(with_document(Service::new("both"), document), "1");
    let ebb = Ebb::up(&[service], &quick()).await;
    ebb.until_pods("both", 1).await;
    for _ in 0..2 {
        let load = ebb.load("both").path("/?sleep=500");
        let tally = load.steady(30, Duration::from_secs(12));
        // 15 requests at once, four in each pod.
        let up = ebb.until("both", "four pods", |revision| revision.wanted() >= 4);
        let (tally, _) = tokio::join!(tally, up);
        tally.assert_all_answered();
        // The last pod may be gone before the next pass, which finds none to measure.
        ebb.until_within("both", "asleep, with no pod to measure", LONG, |revision| {
            let is_asleep = revision.wanted() == 0 && revision.pods().is_empty();
            is_asleep && metrics(revision).contains("cpu <unknown>/80%")
        })
        .await;
    }
}

/// The counts that were asked for, oldest first, each with the milliseconds since then, once the `last` of
/// them is reached.
async fn time_line(ebb: &Ebb, service: &str, last: u64) -> Vec<(u64, u64)> {
    let reached = format!("{last} wanted");
    let revision = ebb.until_within(service, &reached, LONG, |revision| revision.wanted() == last).await;
    let decisions = revision.field("decisions").as_array().cloned().unwrap_or_default();
    let mut line: Vec<(u64, u64)> = decisions
        .iter()
        .filter_map(|decision| Some((decision["age_ms"].as_u64()?, decision["wanted"].as_u64()?)))
        .collect();
    line.dedup_by_key(|(_, count)| *count);
    line
}

/// That the last counts are these, and that between any two of them at least so much time passed.
fn assert_paced(line: &[(u64, u64)], counts: &[u64], apart: Duration) {
    let end = &line[line.len().saturating_sub(counts.len())..];
    assert_eq!(end.iter().map(|(_, count)| *count).collect::<Vec<_>>(), counts, "{line:?}");
    for pair in end.windows(2) {
        let gap = Duration::from_millis(pair[0].0 - pair[1].0);
        // Ages are cut to milliseconds.
        assert!(gap + Duration::from_millis(2) >= apart, "{gap:?} in {line:?}");
    }
}

/// That within no `period` more than half of the pods went, rounded as Kubernetes rounds, or one; and that
/// more than one went in some, so that it was not the policy of one pod that held.
fn assert_at_most_halved(line: &[(u64, u64)], period: Duration) {
    let period = u64::try_from(period.as_millis()).expect("seconds");
    let mut most = 0;
    for &(age, count) in line {
        // What was wanted as the period began. A change that is as old as that counts either way.
        let began = line.iter().rev().find(|(other, _)| *other > age + period).or(line.first());
        let began = began.expect("it is one of them").1;
        let falls = count < began;
        assert!(!falls || count + 1 >= began || count >= began / 2, "{began} → {count} in {line:?}");
        most = most.max(began.saturating_sub(count));
    }
    assert!(most > 1, "{line:?}");
}

/// Two pods in five seconds on the way up, whatever requests ask for; on the way down the smaller of one pod
/// and half of them.
#[tokio::test]
async fn policies_of_a_document_are_seen_in_the_time_line() {
    let document = "{minReplicas: 1, maxReplicas: 7, metrics: [\
        {type: Pods, pods: {metric: {name: ebb.concurrency}, target: {type: AverageValue, averageValue: 1}}}], \
        behavior: {\
        scaleUp: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 2, periodSeconds: 5}]}, \
        scaleDown: {stabilizationWindowSeconds: 2, selectPolicy: Min, policies: [\
        {type: Pods, value: 1, periodSeconds: 4}, {type: Percent, value: 50, periodSeconds: 4}]}}}";
    let ebb = Ebb::up(&[with_document(Service::new("paced"), document)], &quick()).await;
    ebb.until_pods("paced", 1).await;
    let load = ebb.load("paced").path("/?sleep=25000").patience(LONG);
    let held = tokio::spawn(async move { load.burst(7).await });
    let up = time_line(&ebb, "paced", 7).await;
    assert_paced(&up, &[3, 5, 7], Duration::from_secs(5));
    held.await.expect("the requests end").assert_all_answered();
    let down = time_line(&ebb, "paced", 1).await;
    assert_paced(&down, &[6, 5, 4, 3, 2, 1], Duration::from_secs(4));
    let (_, explained, _) = ebb.run(&["explain", "paced"]).await;
    assert!(explained.contains("scaling_policy"), "{explained}");
}

/// Half of the pods in four seconds on the way down, where the larger of two policies rules; and a rise only
/// after it was asked for over a whole window.
#[tokio::test]
async fn percent_policies_and_windows_of_a_document_are_seen_in_the_time_line() {
    let document = "{minReplicas: 1, maxReplicas: 8, metrics: [\
        {type: Pods, pods: {metric: {name: ebb.concurrency}, target: {type: AverageValue, averageValue: 1}}}], \
        behavior: {\
        scaleUp: {stabilizationWindowSeconds: 5, policies: [{type: Pods, value: 8, periodSeconds: 5}]}, \
        scaleDown: {stabilizationWindowSeconds: 6, selectPolicy: Max, policies: [\
        {type: Pods, value: 1, periodSeconds: 4}, {type: Percent, value: 50, periodSeconds: 4}]}}}";
    let ebb = Ebb::up(&[with_document(Service::new("halved"), document)], &quick()).await;
    ebb.until_pods("halved", 1).await;
    ebb.until("halved", "a sync", |revision| metrics(revision).contains("concurrency 0/1")).await;
    let clock = Clock::start();
    let begun = clock.now();
    let load = ebb.load("halved").path("/?sleep=20000").patience(LONG);
    let held = tokio::spawn(async move { load.burst(8).await });
    let up = time_line(&ebb, "halved", 8).await;
    let (rose, _) = up.iter().find(|(_, count)| *count > 1).expect("it rose");
    // The last sync that asked for one pod was up to a second before the requests.
    let waited = clock.now().saturating_since(begun).saturating_sub(Duration::from_millis(*rose));
    assert!(waited >= Duration::from_secs(4), "{waited:?}: {up:?}");
    held.await.expect("the requests end").assert_all_answered();
    let ended = clock.now();
    let down = time_line(&ebb, "halved", 1).await;
    let top = down.iter().position(|(_, count)| *count == 8).expect("it was there");
    assert_at_most_halved(&down[top..], Duration::from_secs(4));
    let fell = down[top + 1].0;
    let waited = clock.now().saturating_since(ended).saturating_sub(Duration::from_millis(fell));
    assert!(waited >= Duration::from_secs(5), "{waited:?} after the last request: {down:?}");
}

/// With a sync a minute away, requests alone wake it and raise it; the last pod is retained.
#[tokio::test]
async fn requests_need_no_sync_to_wake_and_to_raise() {
    let document = "{minReplicas: 0, maxReplicas: 6, metrics: [\
        {type: Pods, pods: {metric: {name: ebb.concurrency}, target: {type: AverageValue, averageValue: 2}}}]}";
    let service = with_document(Service::new("asleep"), document).scaling("initial-scale", "0");
    let config = quick().set("hpa-sync-period", "60s").set("allow-zero-initial-scale", "true");
    let ebb = Ebb::up(&[service], &config).await;
    ebb.until("asleep", "asleep", |revision| revision.wanted() == 0 && revision.pods().is_empty()).await;
    let load = ebb.load("asleep").path("/?sleep=4000").patience(LONG);
    let (tally, four) =
        tokio::join!(load.burst(8), ebb.until("asleep", "four pods", |revision| revision.wanted() == 4));
    tally.assert_all_answered();
    let decisions = four.field("decisions").as_array().cloned().unwrap_or_default();
    assert!(decisions.iter().all(|decision| decision["trigger"] != "sync"), "{decisions:?}");
}

#[tokio::test]
async fn the_last_pod_of_class_hpa_is_retained() {
    let document = "{minReplicas: 0, maxReplicas: 6, metrics: [\
        {type: Pods, pods: {metric: {name: ebb.concurrency}, target: {type: AverageValue, averageValue: 2}}}]}";
    let service =
        with_document(Service::new("retained"), document).scaling("scale-to-zero-pod-retention-period", "8s");
    let ebb = Ebb::up(&[service], &quick()).await;
    ebb.load("retained").one().await.assert_all_answered();
    ebb.until_within("retained", "its retention", LONG, |revision| {
        let why = revision.field("why_not_zero").as_str().unwrap_or_default();
        revision.wanted() == 1 && why.contains("the last pod is retained for 8s")
    })
    .await;
    ebb.until_within("retained", "asleep", LONG, |revision| revision.wanted() == 0).await;
}

/// The kinds of metric that the suites above have not: memory, one container's use, requests per second.
#[tokio::test]
async fn memory_one_container_and_requests_per_second_are_measured_too() {
    let metric = |text: &str| format!("{{minReplicas: 1, maxReplicas: 3, metrics: [{text}]}}");
    let fat =
        metric("{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Mi}}}");
    let boxed = metric(
        "{type: ContainerResource, containerResource: {name: cpu, container: user-container, target: {type: AverageValue, averageValue: 50m}}}",
    );
    let counted = metric(
        "{type: Pods, pods: {metric: {name: ebb.rps}, target: {type: AverageValue, averageValue: 4}}}",
    );
    let services = [
        with_document(Service::new("fat"), &fat),
        with_document(Service::new("boxed"), &boxed),
        with_document(Service::new("counted"), &counted),
    ];
    let ebb = Ebb::up(&services, &quick()).await;
    ebb.until_pods("boxed", 1).await;
    ebb.until_within("boxed", "a value", LONG, |revision| {
        let metrics = metrics(revision);
        metrics.starts_with("cpu ") && !metrics.contains("<unknown>")
    })
    .await;
    // Any app is larger than that.
    let fat = ebb.until_within("fat", "three pods", LONG, |revision| revision.wanted() == 3).await;
    assert!(metrics(&fat).ends_with("Mi/1Mi"), "{}", metrics(&fat));
    let load = ebb.load("counted");
    let many = tokio::spawn(async move { load.steady(10, Duration::from_secs(20)).await });
    ebb.until_within("counted", "three pods", LONG, |revision| revision.wanted() == 3).await;
    many.await.expect("the load ends").assert_all_answered();
}

/// A document of its own kind in the files; `Disabled` keeps what there is.
#[tokio::test]
async fn a_document_in_the_files_scales_its_service_and_a_disabled_direction_stays() {
    let service = Service::new("kept");
    let ebb = Ebb::up(std::slice::from_ref(&service), &quick()).await;
    let document = |policy: &str| {
        format!(
            "{}---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: kept}}\nspec:\n  \
             scaleTargetRef: {{apiVersion: serving.knative.dev/v1, kind: Service, name: kept}}\n  \
             minReplicas: 1\n  maxReplicas: 3\n  metrics:\n  - type: Pods\n    pods:\n      metric: {{name: ebb.concurrency}}\n      \
             target: {{type: AverageValue, averageValue: 2}}\n  behavior:\n    scaleDown: {{selectPolicy: {policy}}}\n",
            service.yaml()
        )
    };
    ebb.write("kept.yaml", &document("Disabled"));
    ebb.until("kept", "its class", |revision| revision.field("class") == "hpa").await;
    ebb.load("kept").path("/?sleep=3000").burst(6).await.assert_all_answered();
    ebb.until_pods("kept", 3).await;
    // Twenty seconds, in which windows and all rules of zero would have had their time.
    for _ in 0..40 {
        assert_eq!(ebb.revision("kept").await.expect("ebb answers").wanted(), 3);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    ebb.write("kept.yaml", &document("Max"));
    ebb.until_pods("kept", 1).await;
    ebb.rewrite(&service);
    ebb.until("kept", "its former class", |revision| revision.field("class") == "kpa").await;
}

/// The load asks for three pods; the one that there is stays, serves, and the report says how often and why
/// it would have been otherwise.
#[tokio::test]
async fn in_shadow_everything_is_decided_and_nothing_done() {
    let document = "{minReplicas: 1, maxReplicas: 5, metrics: [\
        {type: Pods, pods: {metric: {name: ebb.concurrency}, target: {type: AverageValue, averageValue: 2}}}]}";
    let service = with_document(Service::new("watched"), document);
    let ebb = Ebb::up_with(&[service], &quick(), &["--shadow"]).await;
    ebb.until_pods("watched", 1).await;
    let load = ebb.load("watched").path("/?sleep=10000").patience(LONG);
    let held = tokio::spawn(async move { load.burst(6).await });
    tests::eventually("the report says three", LONG, || async {
        let (code, report, errors) = ebb.run(&["shadow", "report"]).await;
        let is_right = code == 0 && report.contains("watched") && report.contains(" 3 instead of 1: ");
        if is_right { Ok(()) } else { Err(report + &errors) }
    })
    .await;
    let (_, table, _) = ebb.run(&["get"]).await;
    assert!(table.contains("in shadow: "), "{table}");
    held.await.expect("the requests end").assert_all_answered();
    let revision = ebb.revision("watched").await.expect("ebb answers");
    assert_eq!((revision.wanted(), revision.pods().len()), (1, 1));
    assert_eq!(revision.field("routing"), "direct");
}

/// Both places are named, at once, before anything runs.
#[tokio::test]
async fn a_document_that_says_something_twice_or_cannot_be_read_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let both = with_document(Service::new("both").scaling("min-scale", "1"), "maxReplicas: 3");
    let broken = with_document(Service::new("broken"), "{maxReplicas: 2, minReplicas: 3, behaviour: {}}");
    let stray = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: stray}\nspec:\n  \
                 scaleTargetRef: {kind: Deployment, name: web}\n  maxReplicas: 3\n";
    let text = format!("{}---\n{}---\n{stray}", both.yaml(), broken.yaml());
    std::fs::write(folder.path().join("all.yaml"), text).expect("the folder can be written");
    let output = tokio::process::Command::new(tests::ebb::executable())
        .args(["lint", "-f", "all.yaml"])
        .current_dir(folder.path())
        .output()
        .await
        .expect("the executable starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for text in [
        "annotation autoscaling.knative.dev/min-scale is \"1\", which annotation ebb.dev/hpa says too (minReplicas)",
        "annotation ebb.dev/hpa.maxReplicas is 2, which is below minReplicas 3",
        "annotation ebb.dev/hpa.behaviour",
        "all.yaml:32:19:",
        "spec.scaleTargetRef is Deployment web; on one machine an autoscaler scales a Service",
    ] {
        assert!(said.contains(text), "{text:?} is missing in\n{said}");
    }
}
