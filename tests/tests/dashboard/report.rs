//! `ebb simulate --html` in a browser: one file with the charts of the pages, which loads nothing.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use tests::browser::Tab;

use crate::axe::{findings, source};

/// Writes the report of a load in two variants.
fn write_report(file: &Path) {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/samples/autoscale-go.yaml");
    let mut command = Command::new(tests::ebb::executable());
    command.args(["simulate", "-f", sample, "--load", "autoscale-go=step,from=5rps,to=200rps,at=1m"]);
    command.args(["--service-time", "500ms", "--start-up", "2s", "--minutes", "3", "--compare", "target=5"]);
    let output = command.arg("--html").arg(file).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_report_of_simulate_has_its_charts_and_is_used_by_keyboard() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("report.html");
    write_report(&file);
    let address = format!("file://{}", file.display());
    let mut tab = Tab::open().await;
    for (scheme, width) in [("light", 1280), ("dark", 360)] {
        tab.show_as(scheme, width).await;
        tab.load(&address).await;
        tab.until("document.querySelectorAll('svg.chart path.line.variant1').length === 1").await;
        let widest = tab.value("document.documentElement.scrollWidth").await;
        assert!(widest.as_u64() <= Some(u64::from(width)), "{widest} wide at {width}");
    }
    tab.focus_by_keyboard("e.matches('svg.chart[role=slider]')").await;
    tab.press("ArrowRight").await;
    tab.until("/^after 1.8s/.test(document.querySelector('.moment').innerText)").await;
    tab.until("document.querySelectorAll('.moment li').length === 2").await;
    tab.focus_by_keyboard("e.matches('summary')").await;
    tab.press("Enter").await;
    tab.until("document.querySelectorAll('details tbody tr').length > 2").await;
    assert_eq!(tab.complaints().await, Vec::<String>::new());
    // axe-core is put into the page from outside, which the report's policy forbids to everybody else.
    tab.tell("Page.setBypassCSP", json!({"enabled": true})).await;
    tab.go(&address).await;
    tab.until("document.querySelectorAll('svg.chart path.line.variant1').length === 1").await;
    assert_eq!(findings(&mut tab, source()).await, json!([]));
}
