//! A stream that lasts keeps its pod, whatever the metric.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tests::bench::clock;
use tests::{ConfigMap, Ebb, Service};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Long enough for a window, a grace period, a drain and more: without a reason to stay the pod is wanted no
/// more after 9 s.
const LONG: Duration = Duration::from_secs(25);

async fn connect(ebb: &Ebb, service: &Service) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(ebb.requests).await.expect("ebb listens");
    let url = format!("ws://{}/websocket", service.host());
    let (socket, response) = tokio_tungstenite::client_async(url, stream).await.expect("the app upgrades");
    assert_eq!(response.status(), 101);
    socket
}

async fn expect_echo(socket: &mut WebSocketStream<TcpStream>, name: &str) {
    let message = Message::text("ping");
    socket.send(message.clone()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let echo = tokio::time::timeout(Duration::from_secs(10), socket.next()).await;
    let echo = echo.unwrap_or_else(|_| panic!("{name}: no echo")).expect("the socket is open");
    assert_eq!(echo.unwrap_or_else(|error| panic!("{name}: {error}")), message, "{name}");
}

#[tokio::test]
async fn an_open_websocket_keeps_its_pod_under_metric_rps_as_under_concurrency() {
    let services = ["rps", "concurrency"].map(|metric| {
        let service = Service::new(metric).scaling("metric", metric).spec("timeoutSeconds: 0");
        service.annotation("ebb.dev/drain-limit", "1s")
    });
    let ebb = Ebb::up(&services, &ConfigMap::short().set("routing-dwell", "0s")).await;
    let mut sockets = Vec::new();
    // A pod that has ended again by then is started for the socket.
    for service in &services {
        sockets.push((service.name(), connect(&ebb, service).await));
    }
    let opened = clock::now();
    let mut second = tokio::time::interval(Duration::from_secs(1));
    while clock::since(opened) < LONG {
        second.tick().await;
        for (name, socket) in &mut sockets {
            expect_echo(socket, name).await;
            let revision = ebb.revision(name).await.expect("ebb answers");
            assert_eq!(
                revision.wanted(),
                1,
                "{name} after {:?}: {}",
                clock::since(opened),
                revision.decisions()
            );
        }
    }
    let (_, text, _) = ebb.run(&["explain", "rps"]).await;
    assert!(text.contains("not zero   1 request in flight for "), "{text}");
    drop(sockets);
    for service in &services {
        ebb.until_pods(service.name(), 0).await;
    }
}
