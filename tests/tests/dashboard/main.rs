//! The pages of `ebb up` in a real browser: Debian's Chromium, and axe-core for those who use a page by ear
//! or by keyboard.
//!
//! `cargo suite dashboard`. It needs Chromium (`apt-get install -y chromium`) and npm, which fetches
//! `axe-core` as `tests/interop/axe` pins it; the first time that takes the network.

mod axe;
mod fixed_api;
mod hidden;
mod memory;
mod numbers;
mod pictures;
mod readers;
mod report;
mod states;
mod token;

use axe::{findings, source};
use serde_json::json;
use tests::bench::up::asleep;
use tests::browser::Tab;
use tests::{ConfigMap, Ebb, Service};

/// The pages that need no revision.
const PAGES: [&str; 4] = ["#/", "#/cold-starts", "#/cost", "#/problems"];
const HELLO: &str = "#/revision/default/service/hello";

fn address(ebb: &Ebb, page: &str) -> String {
    format!("http://{}/{page}", ebb.api)
}

/// Loads a page anew, and waits until it is live and has a heading.
async fn load(tab: &mut Tab, ebb: &Ebb, page: &str) {
    tab.load(&address(ebb, page)).await;
    until_live(tab).await;
    tab.until("document.querySelector('main h2') !== null").await;
}

async fn until_live(tab: &mut Tab) {
    tab.until("document.getElementById('state')?.textContent.startsWith('live') === true").await;
}

#[tokio::test]
async fn pages_of_one_revision_are_whole_in_light_and_dark_on_a_telephone_and_on_a_wall() {
    let ebb = Ebb::up(&[Service::new("hello")], &asleep()).await;
    // Its first pod is there by an order, so that each step of its start is known.
    ebb.load("hello").burst(1).await.assert_all_answered();
    let mut tab = Tab::open().await;
    for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 360), ("dark", 3840)] {
        tab.show_as(scheme, width).await;
        for page in PAGES.into_iter().chain([HELLO]) {
            load(&mut tab, &ebb, page).await;
            if page == HELLO {
                tab.until("document.querySelector('svg.chart path.line.ready')?.getAttribute('d') > ''")
                    .await;
                let captions = "[...document.querySelectorAll('.starts caption')]";
                let is_there = "(caption) => caption.textContent.startsWith('Where the time of each start')";
                tab.until(&format!("{captions}.some({is_there})")).await;
            }
            let widest = tab.value("document.documentElement.scrollWidth").await;
            assert!(widest.as_u64() <= Some(u64::from(width)), "{page} is {widest} wide at {width}");
            assert_eq!(tab.complaints().await, Vec::<String>::new(), "{page} {scheme} {width}");
        }
    }
}

#[tokio::test]
async fn axe_finds_nothing_on_any_page() {
    let ebb = Ebb::up(&[Service::new("hello").scaling("min-scale", "1")], &ConfigMap::short()).await;
    ebb.until_pods("hello", 1).await;
    let axe = source();
    let mut tab = Tab::open().await;
    // axe-core is put into the page from outside, which its policy forbids to everybody else.
    tab.tell("Page.setBypassCSP", json!({"enabled": true})).await;
    for scheme in ["light", "dark"] {
        tab.show_as(scheme, 1280).await;
        for page in PAGES.into_iter().chain([HELLO]) {
            load(&mut tab, &ebb, page).await;
            if page == HELLO {
                tab.until("document.querySelector('svg.chart path.line.ready') !== null").await;
            }
            assert_eq!(findings(&mut tab, axe).await, json!([]), "{page} {scheme}");
        }
    }
}

#[tokio::test]
async fn markup_in_a_text_is_shown_as_text() {
    let ebb = Ebb::up(&[Service::new("hello")], &asleep()).await;
    let markup = "<img src=x onerror=alert(1)>";
    ebb.configure(&asleep().set("stable-window", markup));
    let mut tab = Tab::open().await;
    tab.go(&address(&ebb, "#/problems")).await;
    tab.until(&format!("document.querySelector('main').innerText.includes({})", json!(markup))).await;
    assert_eq!(tab.value("document.querySelectorAll('main img').length").await, json!(0));
    assert_eq!(tab.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_keyboard_alone_reaches_a_revision_and_its_decisions() {
    let ebb = Ebb::up(&[Service::new("hello").scaling("min-scale", "1")], &ConfigMap::short()).await;
    ebb.until_pods("hello", 1).await;
    let mut tab = Tab::open().await;
    tab.go(&address(&ebb, "")).await;
    tab.until("document.querySelectorAll('tbody tr').length === 1").await;
    for reached in ["e.matches('nav a')", "e.matches('input[type=search]')", "e.matches('thead button')"] {
        tab.focus_by_keyboard(reached).await;
    }
    tab.focus_by_keyboard("e.matches('tbody a')").await;
    tab.press("Enter").await;
    tab.until("document.querySelector('svg.chart[role=slider]') !== null").await;
    tab.focus_by_keyboard("e.matches('svg.chart[role=slider]')").await;
    tab.press("ArrowLeft").await;
    tab.until("Number(document.querySelector('svg.chart[role=slider]').getAttribute('aria-valuenow')) < 100")
        .await;
    tab.until("document.querySelector('.moment').innerText.includes('ago')").await;
    tab.focus_by_keyboard("e.matches('.command button')").await;
    assert_eq!(tab.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn none_and_a_thousand_revisions_are_shown_sorted_and_filtered() {
    let none = Ebb::up(&[], &asleep()).await;
    let mut tab = Tab::open().await;
    tab.go(&address(&none, "")).await;
    tab.until("document.querySelector('caption')?.textContent === 'No revision yet'").await;
    until_live(&mut tab).await;
    let services: Vec<Service> = (0..1000).map(|number| Service::new(&format!("app-{number:03}"))).collect();
    let many = Ebb::up(&services, &asleep()).await;
    tab.go(&address(&many, "")).await;
    tab.until("document.querySelectorAll('tbody tr').length === 1000").await;
    let first = "document.querySelector('tbody tr th').textContent";
    assert_eq!(tab.value(first).await, json!("default/service/app-000"));
    tab.value("document.querySelector('thead button').click()").await;
    assert_eq!(tab.value(first).await, json!("default/service/app-999"));
    for (filter, shown) in [("app-01", 10), ("panic", 0), ("waiting>0", 0), ("default/", 1000), ("other/", 0)]
    {
        let typed = format!(
            "((e) => {{ e.value = {}; e.dispatchEvent(new Event('input')); }})(document.querySelector('input'))",
            json!(filter)
        );
        tab.value(&typed).await;
        let count = tab.value("document.querySelectorAll('tbody tr').length").await;
        assert_eq!(count, json!(shown), "{filter}");
    }
    assert_eq!(tab.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_rebuilt_autoscaler_is_said_and_the_numbers_are_kept() {
    let ebb = Ebb::up(&[Service::new("hello")], &asleep()).await;
    let mut tab = Tab::open().await;
    tab.go(&address(&ebb, "")).await;
    tab.until("document.querySelectorAll('tbody tr').length === 1").await;
    let (code, _, error) = ebb.run(&["restart", "autoscaler"]).await;
    assert_eq!(code, 0, "{error}");
    tab.until("document.getElementById('state').textContent.includes('was rebuilt')").await;
    assert_eq!(tab.value("document.querySelectorAll('tbody tr').length").await, json!(1));
}
