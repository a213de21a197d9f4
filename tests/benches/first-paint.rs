//! How soon the dashboard shows a fleet of 1,000 revisions, beside a static page with a table of as many
//! rows; how soon an open page shows that a count has changed; and whether it stays smooth meanwhile.
//!
//! `cargo bench -p tests --bench first-paint`. Both pages are loaded by turns in one browser; what counts is
//! the frame in which all rows are there. A count changes because a request comes for a revision that is at
//! zero; what counts is the frame in which its row says that a pod is wanted, and the longest time for which
//! the page took no input. It needs Chromium (`apt-get install -y chromium`).

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use axum::Router;
use axum::response::Html;
use serde_json::json;
use tests::bench::up::{Up, asleep, executables, service};
use tests::bench::{Goal, Options, Report, Samples, Table, api, clock};
use tests::browser::Tab;
use tokio::net::TcpListener;

const ROWS: usize = 1000;
/// How much later than the static page the dashboard may show its rows.
const RATIO_MAX: f64 = 3.0;
/// How much later than the request that changes a count the page may show the change, in milliseconds.
const SEEN_WITHIN_MS: f64 = 1000.0;
/// For so long the open page may take no input, in milliseconds: people take an answer that comes within this
/// time for immediate.
const LONGEST_TASK_MS: f64 = 100.0;

/// Notes the time of the frame in which all rows are on the page.
const WATCH: &str = "{
  const look = () => {
    if (document.querySelectorAll('tbody tr').length >= 1000) window.rowsAt = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}";

/// Notes the longest task of the page from then on. A browser tells of those of more than 50 ms.
const WATCH_TASKS: &str = "{
  window.longestTask = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longestTask = Math.max(window.longestTask, duration);
  }).observe({ type: 'longtask' });
}";

/// What an open page was like while counts changed, in milliseconds.
struct SeenChanges {
    /// From each request until its row said that a pod is wanted.
    after: Samples,
    /// The longest task; 0 if none took more than 50 ms.
    longest_task: f64,
}

fn main() -> anyhow::Result<()> {
    let options = Options::read_whole();
    let rounds = options.rounds(10, 2);
    let [ebb, app] = executables()?;
    let services: Vec<_> = (0..ROWS).map(|number| service(&format!("app-{number:03}"), &app)).collect();
    let up = Up::start(&ebb, &services, &asleep())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (dashboard, page) = runtime.block_on(measured(up.ebb().api, rounds))?;
    let changes = runtime.block_on(changes_seen(&up, rounds))?;
    up.end()?;
    let mut report = Report::new("first-paint", options.quick, rounds);
    let mut table = Table::new("1,000 rows on the page, ms after the navigation", &["page", "found"]);
    for (name, samples) in [("dashboard", &dashboard), ("static page", &page)] {
        table.row([name.to_owned(), samples.summary(0)]);
        report.measured("1,000 rows", name, "ms", samples);
    }
    report.table(table);
    let mut table = Table::new("A change of a count on the open page, ms after the request", &["", "found"]);
    table.row(["until the row says it".to_owned(), changes.after.summary(0)]);
    table.row(["longest task meanwhile".to_owned(), format!("{:.0}", changes.longest_task)]);
    report.table(table);
    report.measured("a change of a count", "dashboard", "ms", &changes.after);
    let ratio = dashboard.median() / page.median();
    report.goal(Goal::at_most("times as long as the static page until all rows are there", ratio, RATIO_MAX));
    let goal = "ms after its request until each change of a count is on the open page";
    report.goal(Goal::at_most(goal, changes.after.most(), SEEN_WITHIN_MS));
    let goal = "ms of the longest task of the open page of 1,000 rows while counts change";
    report.goal(Goal::at_most(goal, changes.longest_task, LONGEST_TASK_MS));
    report.finish(options.json.as_deref())
}

/// The milliseconds until all rows are there: of the dashboard, and of the static page.
async fn measured(api: SocketAddr, rounds: usize) -> anyhow::Result<(Samples, Samples)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let (of_page, text) = (listener.local_addr()?, static_page());
    let router = Router::new().fallback(move || std::future::ready(Html(text.clone())));
    // The browser asks it while this waits for the browser. It ends with the runtime; if it ended before, the
    // browser would wait for the page in vain, which ends the benchmark.
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut tab = Tab::open().await;
    tab.tell("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH})).await;
    let (mut dashboard, mut page) = (Samples::new(), Samples::new());
    // The first load of each makes what a browser keeps, and does not count.
    for round in 0..=rounds {
        for (address, samples) in [(api, &mut dashboard), (of_page, &mut page)] {
            tab.load(&format!("http://{address}/")).await;
            tab.until("window.rowsAt > 0").await;
            let after = tab.value("window.rowsAt").await.as_f64().context("a time")?;
            if round > 0 {
                samples.push(after);
            }
        }
    }
    Ok((dashboard, page))
}

/// The milliseconds from a request for a revision that is at zero until its row says that a pod is wanted.
/// The decision is a part of them.
async fn changes_seen(up: &Up, rounds: usize) -> anyhow::Result<SeenChanges> {
    let mut tab = Tab::open().await;
    tab.load(&format!("http://{}/", up.ebb().api)).await;
    tab.until(&format!("document.querySelectorAll('tbody tr').length >= {ROWS}")).await;
    tab.value(WATCH_TASKS).await;
    let mut after = Samples::new();
    for round in 0..rounds {
        let name = format!("app-{round:03}");
        tab.value(&watch_of(&name)).await;
        let (requests, host) = (up.requests(), format!("{name}.default.example.com"));
        let asked = clock::since_epoch();
        let answer = tokio::task::spawn_blocking(move || api::get(requests, &host, "/"));
        tab.until("window.wantedAt > 0").await;
        let seen = tab.value("window.wantedAt").await.as_f64().context("a time")?;
        after.push(seen - clock::millis(asked));
        answer.await??;
    }
    let longest_task = tab.value("window.longestTask").await.as_f64().context("a time")?;
    Ok(SeenChanges { after, longest_task })
}

/// Notes the time of the frame in which the row of a revision says that a pod is wanted, since 1970.
fn watch_of(name: &str) -> String {
    format!(
        "(() => {{
          window.wantedAt = 0;
          const cells = document.querySelectorAll('tr[data-name=\"default/service/{name}\"] td.number');
          const look = () => {{
            if (cells[1].textContent !== '0') window.wantedAt = performance.timeOrigin + performance.now();
            else requestAnimationFrame(look);
          }};
          requestAnimationFrame(look);
        }})()"
    )
}

/// A table with the columns of the fleet.
fn static_page() -> String {
    let mut page = "<!doctype html><html lang=\"en\"><title>rows</title><table><tbody>".to_owned();
    for row in 0..ROWS {
        // A String takes whatever is written to it.
        let _ = write!(
            page,
            "<tr><th><a href=\"#{row}\">default/service/app-{row:03}</a><td>0 of 0<td>0<td>0<td>0<td>stable\
             <td>no request came yet"
        );
    }
    page + "</table></html>"
}
