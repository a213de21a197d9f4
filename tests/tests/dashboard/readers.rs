//! Places for readers of the stream are few, and a page that finds none says so.

use std::time::Duration;

use tests::bench::up::asleep;
use tests::browser::Tab;
use tests::client::answer_until;
use tests::{Ebb, Service};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const GENEROUS: Duration = Duration::from_secs(60);
const PLACES: usize = 32;

/// A reader of the stream that has its first event.
async fn reader(ebb: &Ebb) -> TcpStream {
    let mut stream = TcpStream::connect(ebb.api).await.expect("it listens");
    stream.write_all(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("it is open");
    let answer = answer_until(&mut stream, "\n\n", GENEROUS).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    stream
}

#[tokio::test]
async fn a_page_that_is_the_33rd_reader_says_so_and_is_live_once_a_place_is_free() {
    let ebb = Ebb::up(&[Service::new("hello")], &asleep()).await;
    let mut readers = Vec::new();
    for _ in 0..PLACES {
        readers.push(reader(&ebb).await);
    }
    let mut tab = Tab::open().await;
    tab.load(&format!("http://{}/", ebb.api)).await;
    let state = "document.getElementById('state')?.textContent";
    tab.until(&format!("{state}?.includes('32 long reads are under way') === true")).await;
    drop(readers);
    tab.until(&format!("{state} === 'live'")).await;
    tab.until("document.querySelectorAll('tbody tr').length === 1").await;
}
