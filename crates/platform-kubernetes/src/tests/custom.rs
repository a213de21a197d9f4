//! Workloads of a kind that only the API server knows: their watch may break and expire as any other.

use super::*;

const ROLLOUTS: &str = "apis/argoproj.io/v1alpha1/rollouts";
const PATH: &str = "/apis/argoproj.io/v1alpha1/rollouts";

fn rollout(name: &str, replicas: u32) -> Value {
    let metadata = json!({"name": name, "namespace": "shop"});
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": metadata, "spec": {"replicas": replicas, "selector": format!("app={name}")}})
}

fn custom(name: &str) -> RevisionName {
    RevisionName::new("shop", "rollouts.argoproj.io", name).expect("a name")
}

fn is_told(fact: &PlatformFact, name: &str, count: u32) -> bool {
    let PlatformFact::RevisionChanged(facts) = fact else { return false };
    facts.name == custom(name) && facts.wanted == PodCount::new(count)
}

/// With `one` and `two` of a kind that a person has installed.
async fn start() -> Laboratory {
    let mut laboratory = Laboratory::start().await;
    laboratory.server.bring_kind("argoproj.io", "v1alpha1", "rollouts", "Rollout");
    for name in ["one", "two"] {
        laboratory.server.put(ROLLOUTS, rollout(name, 1));
        let mut service = service(name);
        service["metadata"]["annotations"]["ebb.dev/revision"] =
            json!(format!("rollouts.argoproj.io/{name}"));
        laboratory.server.put(SERVICES, service);
    }
    let (mut one, mut two) = (false, false);
    laboratory
        .wait("both are known", |fact| {
            one |= is_told(fact, "one", 1);
            two |= is_told(fact, "two", 1);
            (one && two).then_some(())
        })
        .await;
    // They stood in the list; what the watch brings proves that there is one, which can be ended.
    laboratory.server.put(ROLLOUTS, rollout("two", 2));
    knows(&mut laboratory, "two", 2).await;
    laboratory
}

async fn knows(laboratory: &mut Laboratory, name: &str, count: u32) {
    let what = format!("{name} is known to have {count}");
    laboratory.wait(&what, |fact| is_told(fact, name, count).then_some(())).await;
}

#[tokio::test]
async fn a_watch_of_a_custom_kind_that_breaks_goes_on_where_it_was() {
    for end in [WatchEnd::Clean, WatchEnd::MidObject] {
        let mut laboratory = start().await;
        laboratory.server.put(ROLLOUTS, rollout("two", 4));
        laboratory.server.end_watches(ROLLOUTS, end);
        laboratory.server.put(ROLLOUTS, rollout("one", 5));
        knows(&mut laboratory, "one", 5).await;
        laboratory.server.put(ROLLOUTS, rollout("one", 6));
        knows(&mut laboratory, "one", 6).await;
    }
}

#[tokio::test]
async fn a_watch_of_a_custom_kind_that_expired_finds_what_came_and_what_went() {
    for end in [WatchEnd::GoneInStream, WatchEnd::GoneAsStatus] {
        let mut laboratory = start().await;
        laboratory.server.change_unseen(ROLLOUTS, rollout("one", 5));
        laboratory.server.remove_unseen(ROLLOUTS, "shop", "two");
        laboratory.server.end_watches(ROLLOUTS, end);
        let (mut is_changed, mut is_removed) = (false, false);
        laboratory
            .wait("both are known", |fact| {
                is_changed |= is_told(fact, "one", 5);
                is_removed |= matches!(fact, PlatformFact::RevisionRemoved(name) if *name == custom("two"));
                (is_changed && is_removed).then_some(())
            })
            .await;
        laboratory.server.put(ROLLOUTS, rollout("one", 6));
        knows(&mut laboratory, "one", 6).await;
    }
}

#[tokio::test]
async fn a_list_of_a_custom_kind_that_fails_is_asked_for_again_and_takes_nothing_away() {
    let mut laboratory = start().await;
    laboratory.server.fail(PATH, Fault::Status(500));
    let before = laboratory.server.asked("GET", PATH).len();
    laboratory.server.change_unseen(ROLLOUTS, rollout("one", 5));
    laboratory.server.end_watches(ROLLOUTS, WatchEnd::GoneInStream);
    let asked = async {
        while laboratory.server.asked("GET", PATH).len() < before + 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("it is asked for again");
    laboratory.server.heal(PATH);
    laboratory
        .wait("the count that no watch showed", |fact| {
            assert!(!matches!(fact, PlatformFact::RevisionRemoved(_)), "{fact:?}");
            is_told(fact, "one", 5).then_some(())
        })
        .await;
}

/// The paths of kinds at which ebb may not look.
const FORBIDDEN: &str = "/apis/argoproj.io/v1alpha1/forbidden";

/// A Service that names a workload of this kind.
fn naming(name: &str, kind: &str) -> Value {
    let mut service = service(name);
    service["metadata"]["annotations"]["ebb.dev/revision"] = json!(format!("{kind}/{name}"));
    service
}

async fn is_told_of(laboratory: &mut Laboratory, name: &str, text: &str) {
    let what = format!("{name} is told of {text}");
    let about = format!("Service shop/{name}: ");
    laboratory
        .wait(&what, |fact| {
            let PlatformFact::ProblemsChanged { problems, .. } = fact else { return None };
            problems.iter().any(|problem| problem.starts_with(&about) && problem.contains(text)).then_some(())
        })
        .await;
}

#[tokio::test]
async fn kinds_that_are_not_there_or_forbidden_cost_few_requests_and_keep_none_out() {
    let mut laboratory = Laboratory::start().await;
    laboratory.server.bring_kind("argoproj.io", "v1alpha1", "forbidden", "Forbidden");
    laboratory.server.fail(FORBIDDEN, Fault::Status(403));
    for number in 0..40 {
        let name = format!("bogus-{number}");
        let kind = match number % 3 {
            0 => format!("things{number}.example.com"),
            1 => format!("things{number}.argoproj.io"),
            _ => "forbidden.argoproj.io".to_owned(),
        };
        laboratory.server.put(SERVICES, naming(&name, &kind));
    }
    is_told_of(&mut laboratory, "bogus-0", "the cluster has no API group example.com").await;
    is_told_of(&mut laboratory, "bogus-1", "API group argoproj.io has no things1").await;
    is_told_of(&mut laboratory, "bogus-2", "ebb may not look at forbidden.argoproj.io").await;
    let asked = laboratory.server.asked("GET", "/apis").len();
    assert!(asked <= 8, "not once for each of 40 Services: {asked}");

    laboratory.server.bring_kind("argoproj.io", "v1alpha1", "rollouts", "Rollout");
    laboratory.server.put(ROLLOUTS, rollout("one", 3));
    laboratory.server.put(SERVICES, naming("one", "rollouts.argoproj.io"));
    knows(&mut laboratory, "one", 3).await;
}
