//! Histories in ConfigMaps: days in the places of others, by the owner of their bucket alone.

use orchestration::Subject;
use platform::{ShelfFault, ShelvedDay};

use super::*;

const CONFIG_MAPS: &str = "api/v1/configmaps";

fn day(day: u64, pieces: &[&str]) -> ShelvedDay {
    ShelvedDay { day, pieces: pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect() }
}

fn names(laboratory: &Laboratory) -> Vec<String> {
    let maps = laboratory.server.objects(CONFIG_MAPS);
    let names = maps.iter().filter_map(|map| map["metadata"]["name"].as_str().map(str::to_owned));
    names.filter(|name| name.starts_with("ebb-history-")).collect()
}

#[tokio::test]
async fn a_day_is_read_as_it_was_written_and_takes_the_place_of_former_parts_and_of_an_old_day() {
    let laboratory = Laboratory::start().await;
    let shelf = laboratory.platform.history_shelf().expect("a cluster keeps histories");
    laboratory.server.allow_everything();
    let fence = laboratory.fence;
    assert_eq!(shelf.read(fence.bucket).await, Ok(Vec::new()));
    let written =
        [day(20_000, &["old"]), day(20_015, &["a", "b", "c"]), day(20_016, &["x"]), day(20_015, &["d"])];
    for day in written {
        shelf.write(fence, day).await.expect("it is ours");
    }
    assert_eq!(shelf.read(fence.bucket).await, Ok(vec![day(20_015, &["d"]), day(20_016, &["x"])]));
    assert_eq!(shelf.read(Bucket(7)).await, Ok(Vec::new()), "another bucket's are another owner's");
    assert_eq!(names(&laboratory), ["ebb-history-0-0-0", "ebb-history-0-15-0"]);
}

#[tokio::test]
async fn without_the_right_to_list_nothing_is_listed() {
    let laboratory = Laboratory::start().await;
    let shelf = laboratory.platform.history_shelf().expect("a cluster keeps histories");
    // This server would give the list to anybody who asks for it.
    assert!(matches!(shelf.read(laboratory.fence.bucket).await, Err(ShelfFault::Forbidden(_))));
}

#[tokio::test]
async fn an_owner_that_is_none_any_more_writes_nothing_and_a_right_that_is_missing_is_told() {
    let laboratory = Laboratory::start().await;
    let shelf = laboratory.platform.history_shelf().expect("a cluster keeps histories");
    let former = Fence { epoch: vocabulary::Epoch(laboratory.fence.epoch.0 + 7), ..laboratory.fence };
    assert_eq!(shelf.write(former, day(20_000, &["late"])).await, Err(ShelfFault::NotOwner));
    laboratory.server.fail("/api/v1/namespaces/ebb-system/configmaps/ebb-history-0-0-0", Fault::Status(403));
    let refused = shelf.write(laboratory.fence, day(20_000, &["x"])).await;
    assert_eq!(refused, Err(ShelfFault::Forbidden(BECAUSE.to_owned())));
    assert_eq!(names(&laboratory), Vec::<String>::new());
}

#[tokio::test]
async fn histories_that_cannot_be_read_are_a_problem_and_an_event_where_prediction_reads_them() {
    let mut laboratory = Laboratory::start().await;
    laboratory.server.allow_everything();
    for (name, prediction) in [("hello", "observe"), ("other", "off")] {
        let mut predicted = deployment(name, 0);
        predicted["metadata"]["annotations"] = json!({"ebb.dev/prediction": prediction});
        laboratory.server.put(DEPLOYMENTS, predicted);
    }
    let known = laboratory.wait("prediction is on", |fact| {
        let PlatformFact::RevisionChanged(facts) = fact else { return None };
        (facts.name == revision("hello") && facts.settings.prediction.is_some()).then_some(())
    });
    known.await;
    let path = "/api/v1/namespaces/ebb-system/configmaps";
    laboratory.server.fail(path, Fault::Status(500));
    let shelf = laboratory.platform.history_shelf().expect("a cluster keeps histories");
    let Err(ShelfFault::Failed(why)) = shelf.read(laboratory.fence.bucket).await else {
        panic!("the server fails");
    };
    assert!(why.contains(BECAUSE), "{why}");
    let told = laboratory.event("HistoriesNotKept").await;
    let words = format!(
        "ConfigMaps ebb-history-…: {why}; they cannot be read, so class kpa alone decides where prediction reads them"
    );
    assert_eq!(told, words);
    let about_other =
        |event: &Value| event["reason"] == "HistoriesNotKept" && event["regarding"]["name"] == "other";
    assert!(!laboratory.server.objects(EVENTS).iter().any(about_other), "no prediction reads its history");
    laboratory.server.heal(path);
    assert_eq!(shelf.read(laboratory.fence.bucket).await, Ok(Vec::new()));
    let over = laboratory.wait("its end", |fact| {
        let PlatformFact::ProblemsChanged { about: Subject::Configuration, problems } = fact else {
            return None;
        };
        problems.is_empty().then_some(())
    });
    over.await;
}

#[tokio::test]
async fn no_more_objects_are_kept_than_were_promised_which_is_a_problem() {
    let mut laboratory = Laboratory::start().await;
    let shelf = laboratory.platform.history_shelf().expect("a cluster keeps histories");
    for part in 0..511 {
        let labels = json!({"ebb.dev/history-bucket": "3", "ebb.dev/history-slot": "0"});
        let name = format!("ebb-history-3-0-{part}");
        let metadata = json!({"name": name, "namespace": "ebb-system", "labels": labels});
        laboratory.server.put(CONFIG_MAPS, json!({"metadata": metadata}));
    }
    let full = shelf.write(laboratory.fence, day(20_000, &["a", "b"])).await;
    assert_eq!(full, Err(ShelfFault::Full { wanted: 513, most: 512 }));
    let told = laboratory.wait("a problem", |fact| {
        let PlatformFact::ProblemsChanged { about: Subject::Configuration, problems } = fact else {
            return None;
        };
        problems.iter().find(|problem| problem.contains("513 objects would be needed")).cloned()
    });
    assert!(told.await.starts_with("ConfigMaps ebb-history-…: "));
    assert_eq!(shelf.write(laboratory.fence, day(20_000, &["a"])).await, Ok(()));
    let over = laboratory.wait("its end", |fact| {
        let PlatformFact::ProblemsChanged { about: Subject::Configuration, problems } = fact else {
            return None;
        };
        problems.is_empty().then_some(())
    });
    over.await;
}
