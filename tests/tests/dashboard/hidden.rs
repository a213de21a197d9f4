//! A tab that is not shown keeps no stream open, so that many tabs take few places.

use std::time::Duration;

use serde_json::json;
use tests::bench::up::asleep;
use tests::browser::Tab;
use tests::{Ebb, Service, eventually};

const GENEROUS: Duration = Duration::from_secs(60);

/// A tab is hidden and shown when the test says so, and its streams are noted.
const HIDDEN_BY_TEST: &str = "
  window.isHidden = false;
  Object.defineProperty(document, 'hidden', { get: () => window.isHidden });
  window.hide = (isHidden) => { window.isHidden = isHidden; document.dispatchEvent(new Event('visibilitychange')); };
  const ask = window.fetch;
  window.streams = [];
  window.fetch = (path, options) => {
    if (path === '/v1/stream') window.streams.push({ last: options.headers['Last-Event-ID'], signal: options.signal });
    return ask(path, options);
  };";

/// More than the connections that a browser opens to one host, which are six.
const TABS: usize = 10;

#[tokio::test]
async fn ten_tabs_of_one_browser_are_live_in_turn() {
    let ebb = Ebb::up(&[Service::new("hello")], &asleep()).await;
    let mut tab = Tab::open().await;
    for number in 0..TABS {
        if number > 0 {
            tab.open_another().await;
        }
        tab.tell("Page.addScriptToEvaluateOnNewDocument", json!({"source": HIDDEN_BY_TEST})).await;
        tab.load(&format!("http://{}/", ebb.api)).await;
        tab.until("document.getElementById('state')?.textContent === 'live'").await;
        tab.until("document.querySelectorAll('tbody tr').length === 1").await;
        tab.value("window.hide(true)").await;
        tab.until("window.streams.length === 1 && window.streams[0].signal.aborted").await;
    }
    assert_eq!(tab.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_hidden_tab_closes_its_stream_and_hears_of_the_changes_since_then_when_it_is_shown() {
    let ebb = Ebb::up(&[Service::new("hello")], &asleep()).await;
    let mut tab = Tab::open().await;
    tab.tell("Page.addScriptToEvaluateOnNewDocument", json!({"source": HIDDEN_BY_TEST})).await;
    tab.load(&format!("http://{}/", ebb.api)).await;
    tab.until("document.getElementById('state')?.textContent === 'live'").await;
    tab.value("window.hide(true)").await;
    tab.until("window.streams.length === 1 && window.streams[0].signal.aborted").await;
    ebb.configure(&asleep().set("stable-window", "5"));
    eventually("the mistake is told", GENEROUS, async || {
        let list = ebb.json(&["get", "-o", "json"]).await?;
        let is_told = list["problems"].as_array().is_some_and(|problems| !problems.is_empty());
        if is_told { Ok(()) } else { Err(list.to_string()) }
    })
    .await;
    let count = "document.getElementById('problem-count').textContent";
    assert_eq!(tab.value(count).await, json!(""));
    tab.value("window.hide(false)").await;
    tab.until(&format!("{count} !== ''")).await;
    assert_eq!(tab.value("window.streams.map(({ last }) => Boolean(last))").await, json!([false, true]));
    // The reader went on, so nothing tells it of a rebuilt autoscaler.
    assert_eq!(tab.value("document.getElementById('state').textContent").await, json!("live"));
    assert_eq!(tab.value("document.querySelectorAll('tbody tr').length").await, json!(1));
    assert_eq!(tab.complaints().await, Vec::<String>::new());
}
