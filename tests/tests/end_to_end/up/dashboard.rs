//! What the pages show comes from the API: the ledger, the stream of changes, and the address of the pages.

use std::time::Duration;

use serde_json::{Value, json};
use tests::client::{answer_until, whole_answer};
use tests::{ConfigMap, Ebb, Service, eventually};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const GENEROUS: Duration = Duration::from_secs(60);

/// A stream of changes from its first byte on, after the event of this id.
async fn stream(ebb: &Ebb, last: Option<&str>) -> TcpStream {
    let mut stream = TcpStream::connect(ebb.api).await.expect("it listens");
    let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let request = format!("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n{last}\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is open");
    stream
}

/// The id and the data of the first event in an answer.
fn first_event(answer: &str) -> (String, Value) {
    let field = |name: &str| {
        let found = answer.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("no {name} in {answer}")).to_owned()
    };
    (field("id: "), serde_json::from_str(&field("data: ")).expect("data is JSON"))
}

#[tokio::test]
async fn the_ledger_adds_up_the_seconds_of_pods_and_knows_the_worth_and_the_price() {
    let hello = Service::new("hello")
        .scaling("min-scale", "1")
        .annotation("ebb.dev/cold-start-worth", "5m")
        .container("resources: {requests: {cpu: 500m}}");
    let config = ConfigMap::short().set("price-per-cpu-hour", "0.02 USD");
    let ebb = Ebb::up(&[hello], &config).await;
    ebb.until_pods("hello", 1).await;
    ebb.load("hello").burst(3).await.assert_all_answered();
    let ledger = eventually("the requests are in the ledger", GENEROUS, async || {
        let list = ebb.json(&["ledger", "hello", "-o", "json"]).await?;
        let ledger = list["revisions"][0].clone();
        if ledger["requests"].as_f64() >= Some(3.0) { Ok(ledger) } else { Err(ledger.to_string()) }
    })
    .await;
    let sum: u64 = ["starting", "busy", "idle", "ending"]
        .iter()
        .map(|state| ledger["pod_seconds"][*state].as_u64().expect("a number"))
        .sum();
    let seconds = ledger["seconds"].as_u64().expect("a number");
    // One pod, which was there from the first measured second on, or one second later.
    assert!(sum <= seconds && sum + 1 >= seconds, "{ledger}");
    assert_eq!(ledger["cold_start_worth_ms"], json!(300_000));
    assert_eq!(ledger["pod_price"], json!(0.01));
    let (code, text, _) = ebb.run(&["ledger", "hello"]).await;
    assert!(code == 0 && text.contains("pod-hours") && text.contains("USD"), "{text}");
}

#[tokio::test]
async fn a_stream_goes_on_after_the_last_event_and_the_33rd_reader_is_refused() {
    let ebb = Ebb::up(&[Service::new("hello").scaling("min-scale", "1")], &ConfigMap::short()).await;
    ebb.until_pods("hello", 1).await;
    let mut first = stream(&ebb, None).await;
    let (id, event) = first_event(&answer_until(&mut first, "\n\n", GENEROUS).await);
    assert_eq!((&event["whole"], &event["names"]), (&json!(true), &Value::Null), "{event}");
    let mut again = stream(&ebb, Some(&id)).await;
    let (_, event) = first_event(&answer_until(&mut again, "\n\n", GENEROUS).await);
    assert_eq!((&event["whole"], &event["names"]), (&json!(false), &json!(["default/service/hello"])));
    drop((first, again));
    let mut readers = Vec::new();
    eventually("the places of those that left are free", GENEROUS, async || {
        let mut reader = stream(&ebb, None).await;
        let answer = answer_until(&mut reader, "\r\n\r\n", GENEROUS).await;
        if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
    })
    .await;
    for _ in 0..40 {
        let mut reader = stream(&ebb, None).await;
        let answer = answer_until(&mut reader, "\r\n\r\n", GENEROUS).await;
        if answer.starts_with("HTTP/1.1 503") {
            assert!(
                answer.contains("32 long reads")
                    || answer_until(&mut reader, "32 long reads", GENEROUS).await.len() > 1
            );
            break;
        }
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        readers.push(reader);
    }
    assert!((31..=32).contains(&readers.len()), "{} streams", readers.len());
    let list = whole_answer(ebb.api, "localhost", "/v1/revisions").await.expect("pages have other places");
    assert!(list.starts_with("HTTP/1.1 200"), "{list}");
}

#[tokio::test]
async fn the_address_of_the_pages_has_the_token_where_no_request_carries_it() {
    let ebb = Ebb::up(&[Service::new("hello")], &ConfigMap::short()).await;
    let (code, text, error) = ebb.run(&["dashboard", "--print-only"]).await;
    assert_eq!(code, 0, "{error}");
    let address = format!("http://{}/#ebb_", ebb.api);
    assert!(text.starts_with(&address), "{text}");
    let page = whole_answer(ebb.api, "localhost", "/").await.expect("there is a page");
    assert!(
        page.contains("require-trusted-types-for 'script'") && page.contains("/dashboard/app.js"),
        "{page}"
    );
}
