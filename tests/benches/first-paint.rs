//! How soon the dashboard shows a fleet of 1,000 revisions, beside a static page with a table of as many
//! rows.
//!
//! `cargo bench -p tests --bench first-paint`. Both pages are loaded by turns in one browser; what counts is
//! the frame in which all rows are there. It needs Chromium (`apt-get install -y chromium`).

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use axum::Router;
use axum::response::Html;
use serde_json::json;
use tests::bench::up::{Up, asleep, executables, service};
use tests::bench::{Goal, Options, Report, Samples, Table};
use tests::browser::Tab;
use tokio::net::TcpListener;

const ROWS: usize = 1000;
/// How much later than the static page the dashboard may show its rows.
const RATIO_MAX: f64 = 3.0;

/// Notes the time of the frame in which all rows are on the page.
const WATCH: &str = "{
  const look = () => {
    if (document.querySelectorAll('tbody tr').length >= 1000) window.rowsAt = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}";

fn main() -> anyhow::Result<()> {
    let options = Options::read_whole();
    let rounds = options.rounds(10, 2);
    let [ebb, app] = executables()?;
    let services: Vec<_> = (0..ROWS).map(|number| service(&format!("app-{number:03}"), &app)).collect();
    let up = Up::start(&ebb, &services, &asleep())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (dashboard, page) = runtime.block_on(measured(up.ebb().api, rounds))?;
    up.end()?;
    let mut report = Report::new("first-paint", options.quick, rounds);
    let mut table = Table::new("1,000 rows on the page, ms after the navigation", &["page", "found"]);
    for (name, samples) in [("dashboard", &dashboard), ("static page", &page)] {
        table.row([name.to_owned(), samples.summary(0)]);
        report.measured("1,000 rows", name, "ms", samples);
    }
    report.table(table);
    let ratio = dashboard.median() / page.median();
    report.goal(Goal::at_most("times as long as the static page until all rows are there", ratio, RATIO_MAX));
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
