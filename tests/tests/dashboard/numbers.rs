//! Every number of a page is that of the API's answer, which `ebb … -o json` prints.

use serde_json::{Value, json};
use tests::browser::Tab;
use tests::{ConfigMap, Ebb, Service};

use crate::fixed_api::{Fleet, serve};

/// So many lists of the command are compared with the page until one is of the page's snapshot.
const TRIES: usize = 100;
/// The rows of the fleet, and the number of the snapshot that they are of.
const FLEET: &str = "({
  snapshot: document.getElementById('content').dataset.snapshot,
  rows: [...document.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)),
})";

/// The list that the command prints, and the rows of a page of the same snapshot.
async fn of_one_snapshot(ebb: &Ebb, tab: &mut Tab) -> (Value, Value) {
    for _ in 0..TRIES {
        let list = ebb.json(&["get", "-o", "json"]).await.expect("a list");
        let number = list["snapshot"].to_string();
        tab.until(&format!("Number(document.getElementById('content').dataset.snapshot) >= {number}")).await;
        let mut page = tab.value(FLEET).await;
        if page["snapshot"] == json!(number) {
            return (list, page["rows"].take());
        }
    }
    panic!("the page and the command were of one snapshot in none of {TRIES} tries");
}

/// A number in as few digits as a page shows is that of the API.
fn assert_shows(text: &str, value: f64) {
    let shown: f64 = text.parse().unwrap_or_else(|error| panic!("{error}: {text:?}"));
    assert!((shown - value).abs() <= 0.005 * value.abs().max(1.0) + 1e-9, "{text} stands for {value}");
}

/// The reason that a row gives: trouble first.
fn reason(one: &Value) -> &str {
    let fields: &[&str] = if one["mode"] == "panic" {
        &["why_not_ready", "last_reason"]
    } else {
        &["why_not_ready", "why_not_zero", "last_reason"]
    };
    let mut texts = fields.iter().filter_map(|&field| one[field].as_str());
    texts.find(|text| !text.is_empty()).unwrap_or_default()
}

#[tokio::test]
async fn the_numbers_of_a_row_are_those_of_the_command_with_the_same_snapshot() {
    let ebb = Ebb::up(&[Service::new("hello").scaling("min-scale", "2")], &ConfigMap::short()).await;
    ebb.until_pods("hello", 2).await;
    // With requests there is news in each second, so the page hears of each snapshot.
    let load = ebb.load("hello").path("/?sleep=50").closed_loop_in_background(3);
    let mut tab = Tab::open().await;
    tab.go(&format!("http://{}/", ebb.api)).await;
    tab.until("document.querySelectorAll('tbody tr').length === 1").await;
    for _ in 0..3 {
        let (list, rows) = of_one_snapshot(&ebb, &mut tab).await;
        let (one, row) = (&list["revisions"][0], &rows[0]);
        // Name, load, ready, wanted, waiting, mode and reason.
        for (cell, field) in [(0, "name"), (2, "ready_pods"), (3, "wanted"), (4, "waiting"), (5, "mode")] {
            let told = one[field].as_str().map_or_else(|| one[field].to_string(), ToOwned::to_owned);
            assert_eq!(row[cell], json!(told), "{field} in {row}");
        }
        assert_eq!(row[6], json!(reason(one)), "{row}");
        let (demand, capacity) = row[1].as_str().and_then(|text| text.split_once(" of ")).expect("both");
        let number = |field: &str| one[field].as_f64().unwrap_or_default();
        assert_shows(demand, number("stable_value"));
        assert_shows(capacity, number("target_per_pod") * number("ready_pods"));
    }
    load.end().await.assert_none_lost();
}

/// The texts of the first row of a page, cell by cell.
async fn first_row(tab: &mut Tab, page: &str) -> Value {
    let address = serve(Fleet::Usual).await;
    tab.load(&format!("http://{address}/{page}")).await;
    tab.until("document.querySelectorAll('tbody tr').length === 6").await;
    // The second cell of the costs is a bar, whose text stands in the cells behind it.
    let cells =
        "[...document.querySelector('tbody tr').cells].filter((cell) => cell.querySelector('svg') === null)";
    tab.value(&format!("{cells}.map((cell) => cell.textContent)")).await
}

#[tokio::test]
async fn costs_and_cold_starts_are_those_of_the_ledger() {
    let advice = "min-scale 1 costs 23.1 pod-hours a day more and avoids 4 cold starts of 1.9 s: keep 0";
    let mut tab = Tab::open().await;
    // 900, 300,000, 90,000 and 3,000 seconds of pods.
    let cost = ["shop/service/checkout", "109", "0.25", "83.3", "25", "0.83", "1.25 USD", "1", advice];
    assert_eq!(first_row(&mut tab, "#/cost").await, json!(cost));
    // Four starts that took 7.6 s together, and 40 requests that waited 77 s.
    let starts = ["shop/service/checkout", "4", "12", "2", "1", "1.9s", "3.1s", "40", "1m17s", advice];
    assert_eq!(first_row(&mut tab, "#/cold-starts").await, json!(starts));
}

#[tokio::test]
async fn the_facts_of_a_revision_are_those_of_its_answer() {
    let address = serve(Fleet::Usual).await;
    let mut tab = Tab::open().await;
    tab.load(&format!("http://{address}/#/revision/shop/service/checkout")).await;
    tab.until("document.querySelectorAll('.facts dt').length > 9").await;
    let facts = "Object.fromEntries([...document.querySelectorAll('.facts dl > div')]\
                 .map((fact) => [...fact.children].map((part) => part.textContent)))";
    let shown = tab.value(facts).await;
    for (term, text) in [
        ("Ready", "6 of 9 wanted"),
        ("Starting", "3"),
        ("Ending", "0"),
        ("Waiting requests", "12"),
        ("Load", "48.5 (concurrency), 7 a pod is the target"),
        ("Mode", "panic"),
        ("Class", "kpa"),
        ("Requests go", "to pods directly"),
        ("Last change", "panic mode: 58 in flight need 9 pods"),
        ("Why not zero", "requests came within the stable window"),
        ("Before demand", "1 pod that the load does not call for yet"),
    ] {
        assert_eq!(shown[term], json!(text), "{shown}");
    }
}
