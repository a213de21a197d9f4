//! A page that is open for half an hour keeps its memory. Its timers run faster than a clock, and the changes
//! of that time come one behind the other.

use serde_json::json;
use tests::browser::Tab;

use crate::fixed_api::{CHECKOUT, Fleet, serve};

/// The stream of changes has two events a second; in each of these twenty revisions have changed.
const EVENTS: u32 = 30 * 60 * 2;
/// The page of a revision asks for its detail and its series every 2 s each.
const QUESTIONS: u32 = 30 * 60;
/// By so many bytes the heap of a page may have grown.
const GROWTH_MAX: f64 = 1_000_000.0;

/// Timers that repeat run when the test says so, others a hundred times as soon; questions are counted.
const FAST_TIMERS: &str = "
  window.setInterval = (turn) => { window.turnOfTest = turn; return 0; };
  const later = window.setTimeout;
  window.setTimeout = (turn, after) => later(turn, after / 100);
  const ask = window.fetch;
  window.questions = 0;
  window.fetch = (...all) => { window.questions += 1; return ask(...all); };";

/// The bytes that scripts hold once nothing is left that could be freed.
async fn heap(tab: &mut Tab) -> f64 {
    tab.tell("HeapProfiler.collectGarbage", json!({})).await;
    tab.tell("Runtime.getHeapUsage", json!({})).await["usedSize"].as_f64().expect("a number")
}

/// The heap of the fleet's page after so many events, and half as many seconds of its sparklines.
async fn heap_after(tab: &mut Tab, events: u32) -> f64 {
    let address = serve(Fleet::Changing { events }).await;
    tab.load(&format!("http://{address}/")).await;
    tab.until(&format!("document.querySelector('tbody .of')?.textContent === '{events} of 7'")).await;
    let seconds = events / 2;
    tab.value(&format!("for (let turn = 0; turn < {seconds}; turn += 1) window.turnOfTest()")).await;
    heap(tab).await
}

#[tokio::test]
async fn pages_that_are_open_for_half_an_hour_keep_their_memory() {
    let mut tab = Tab::open().await;
    tab.tell("Page.addScriptToEvaluateOnNewDocument", json!({"source": FAST_TIMERS})).await;
    // A sparkline has its sixty values by then.
    let (young, old) = (heap_after(&mut tab, 200).await, heap_after(&mut tab, EVENTS).await);
    assert!(old - young <= GROWTH_MAX, "the page of the fleet has grown from {young} to {old} bytes");

    let address = serve(Fleet::Usual).await;
    tab.load(&format!("http://{address}/#/revision/{CHECKOUT}")).await;
    tab.until("window.questions > 100").await;
    let young = heap(&mut tab).await;
    tab.until(&format!("window.questions > {}", 100 + QUESTIONS)).await;
    let old = heap(&mut tab).await;
    assert!(old - young <= GROWTH_MAX, "the page of a revision has grown from {young} to {old} bytes");
    assert_eq!(tab.complaints().await, Vec::<String>::new());
}
