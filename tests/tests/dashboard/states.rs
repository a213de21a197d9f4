//! Pages of a fleet in panic mode, in trouble and with requests that wait, for people who use them by
//! keyboard or by ear.

use serde_json::json;
use tests::browser::Tab;

use crate::axe::{findings, source};
use crate::fixed_api::{Fleet, serve};

/// No timer runs: a page that asks nothing again keeps its elements.
const NO_TIMERS: &str = "window.setTimeout = () => 0; window.setInterval = () => 0;";

/// What takes input on the page. Of buttons of which one is chosen the chosen one takes the focus, and arrow
/// keys choose another.
const WATCH: &str = "
  window.wanted = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]')]
    .filter((one) => one.type !== 'radio' || one.checked);
  window.reached = new Set();
  window.wanted.length";
const MISSED: &str =
    "window.wanted.filter((one) => !window.reached.has(one)).map((one) => one.outerHTML.slice(0, 120))";
/// So many more elements may take the focus on the way: a browser lets the keyboard into what scrolls.
const FURTHER_STOPS: u64 = 10;

/// A page, and the expression that is true once it is whole.
struct WholePage {
    path: &'static str,
    is_whole: &'static str,
}

const ROWS: &str = "document.querySelectorAll('tbody tr').length === 6";
const REVISION: WholePage = WholePage {
    path: "#/revision/shop/service/checkout",
    is_whole: "document.querySelector('svg.chart path.line.ready') !== null && \
               document.querySelector('.forecast dl') !== null",
};
const FLEET: WholePage = WholePage { path: "#/", is_whole: ROWS };
const PAGES: [WholePage; 5] = [
    FLEET,
    WholePage { path: "#/cold-starts", is_whole: ROWS },
    WholePage { path: "#/cost", is_whole: ROWS },
    WholePage { path: "#/problems", is_whole: "document.querySelectorAll('.problems > li').length === 3" },
    REVISION,
];

impl WholePage {
    /// Shows the page of an API in which much is wrong.
    async fn show(&self, tab: &mut Tab) {
        let address = serve(Fleet::Usual).await;
        tab.load(&format!("http://{address}/{}", self.path)).await;
        tab.until(self.is_whole).await;
    }
}

async fn tab_without_timers() -> Tab {
    let mut tab = Tab::open().await;
    tab.tell("Page.addScriptToEvaluateOnNewDocument", json!({"source": NO_TIMERS})).await;
    tab
}

#[tokio::test]
async fn tab_reaches_everything_that_takes_input_on_each_page() {
    let mut tab = tab_without_timers().await;
    for page in &PAGES {
        page.show(&mut tab).await;
        let count = tab.value(WATCH).await.as_u64().expect("a number");
        assert!(count > 6, "{}: {count} elements", page.path);
        for _ in 0..count + FURTHER_STOPS {
            tab.press("Tab").await;
            tab.value("window.reached.add(document.activeElement).size").await;
        }
        assert_eq!(tab.value(MISSED).await, json!([]), "{}", page.path);
        assert_eq!(tab.complaints().await, Vec::<String>::new(), "{}", page.path);
    }
}

#[tokio::test]
async fn the_keyboard_sorts_rows_chooses_a_range_and_opens_a_table() {
    let mut tab = tab_without_timers().await;
    FLEET.show(&mut tab).await;
    tab.focus_by_keyboard("e.matches('thead button')").await;
    tab.press("Enter").await;
    tab.until("document.querySelector('thead th').getAttribute('aria-sort') === 'descending'").await;
    REVISION.show(&mut tab).await;
    tab.focus_by_keyboard("e.matches('input[type=radio]')").await;
    tab.press("ArrowRight").await;
    tab.until("document.querySelector('input[value=\"1h\"]').checked").await;
    tab.until(
        "document.querySelector('svg.chart')?.getAttribute('aria-label').includes('the last 1 h') === true",
    )
    .await;
    tab.focus_by_keyboard("e.matches('.behind summary')").await;
    tab.press("Enter").await;
    tab.until("document.querySelectorAll('.behind tbody tr').length > 10").await;
    assert_eq!(tab.complaints().await, Vec::<String>::new());
}

/// The place of the chart, in pixels of the window, at which this part of its time lies. Left of its lines it
/// has 48 units for numbers, and right of them 12.
async fn place_on_chart(tab: &mut Tab, part: f64) -> (f64, f64) {
    let place = format!(
        "((chart) => {{
          chart.scrollIntoView({{ block: 'center' }});
          const [{{ left, top, width, height }}, whole] = [chart.getBoundingClientRect(), chart.viewBox.baseVal.width];
          return [left + (48 + {part} * (whole - 60)) / whole * width, top + height / 2];
        }})(document.querySelector('svg.chart'))"
    );
    let place = tab.value(&place).await;
    (place[0].as_f64().expect("a number"), place[1].as_f64().expect("a number"))
}

/// Decisions were made 280, 230 and 130 s ago, and the chart shows five minutes.
#[tokio::test]
async fn pointer_and_keys_choose_the_decision_of_a_moment_with_its_reasons() {
    let mut tab = tab_without_timers().await;
    REVISION.show(&mut tab).await;
    let reason = |text: &str| {
        let reasons =
            "[...document.querySelectorAll('.moment ol li')].map((one) => one.textContent).join('; ')";
        format!("{reasons} === {}", json!(text))
    };
    tab.until(&reason("panic mode: 58 in flight need 9 pods (window, 6 → 9)")).await;
    let early = place_on_chart(&mut tab, 0.2).await;
    tab.point_at(early).await;
    tab.until(&reason("the stable average of 34.9 needs 5 pods (window, 6 → 5)")).await;
    tab.until("document.querySelector('.moment').textContent.includes('mode stable')").await;
    // Away from the chart, which moves below the pointer when the page scrolls.
    tab.point_at((0.0, 0.0)).await;
    tab.focus_by_keyboard("e.matches('svg.chart[role=slider]')").await;
    tab.press("Home").await;
    tab.until("document.querySelector('.moment').textContent.includes('is not kept')").await;
    tab.press("End").await;
    tab.until(&reason("panic mode: 58 in flight need 9 pods (window, 6 → 9)")).await;
    assert_eq!(tab.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn axe_finds_nothing_on_pages_of_a_fleet_in_trouble() {
    let mut tab = Tab::open().await;
    // axe-core is put into the page from outside, which its policy forbids to everybody else.
    tab.tell("Page.setBypassCSP", json!({"enabled": true})).await;
    for (scheme, width) in [("light", 1280), ("dark", 360)] {
        tab.show_as(scheme, width).await;
        for page in &PAGES {
            page.show(&mut tab).await;
            assert_eq!(findings(&mut tab, source()).await, json!([]), "{} {scheme} {width}", page.path);
        }
    }
}
