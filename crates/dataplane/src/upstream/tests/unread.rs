//! A body of one client that an app does not read, on a connection that others share.

use super::*;

/// More than hyper takes on a connection before it is read (1 MiB).
const UNREAD: usize = 4 * 1024 * 1024;

/// It says how long bodies are, but for those to `/stuck`.
async fn app_that_reads_some() -> App {
    app_with_stuck(|request| async {
        let body = request.into_body().collect().await.expect("it comes whole").to_bytes();
        Bytes::from(body.len().to_string())
    })
    .await
}

/// A request, and what is answered.
async fn post(upstreams: &Upstreams, to: SocketAddr, path: &str, length: usize) -> Bytes {
    let body = Body::full(vec![b'x'; length]);
    let request = Request::post(format!("http://h{path}")).body(body).expect("legal");
    let response = upstreams.send(to, Protocol::Http2, request).await.expect("an answer");
    response.into_body().collect().await.expect("whole").to_bytes()
}

fn send_stuck(upstreams: &Upstreams, to: SocketAddr) {
    let upstreams = upstreams.clone();
    tokio::task::spawn_local(async move { post(&upstreams, to, "/stuck", UNREAD).await });
}

/// Returns once so many connections take no more bytes.
async fn until_choked(upstreams: &Upstreams, to: SocketAddr, count: usize) {
    let choked = || upstreams.0.with_host(to, |host| host.http2.choked());
    while choked() < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_body_that_an_app_does_not_read_keeps_up_no_body_of_others() {
    run(async {
        let app = app_that_reads_some().await;
        let upstreams = pool(UpstreamLimits::default());
        send_stuck(&upstreams, app.address);
        until_choked(&upstreams, app.address, 1).await;
        for _ in 0..20 {
            assert_eq!(post(&upstreams, app.address, "/", 5).await, "5");
        }
        assert_eq!(app.connections.get(), 2, "one connection does for all others");
        // Who sends no body minds nothing.
        assert_eq!(post(&upstreams, app.address, "/", 0).await, "0");
        send_stuck(&upstreams, app.address);
        until_choked(&upstreams, app.address, 2).await;
        assert_eq!(post(&upstreams, app.address, "/", 5).await, "5");
        assert_eq!(app.connections.get(), 3);
    });
}

#[test]
fn a_body_waits_for_those_before_it_if_no_further_connection_is_allowed() {
    run(async {
        let app = app_that_reads_some().await;
        let upstreams = pool(UpstreamLimits { connections_per_address: 1, ..UpstreamLimits::default() });
        send_stuck(&upstreams, app.address);
        until_choked(&upstreams, app.address, 1).await;
        let waits = tokio::time::timeout(Duration::from_millis(200), post(&upstreams, app.address, "/", 5));
        assert!(waits.await.is_err(), "it is neither refused nor sent");
        assert_eq!(app.connections.get(), 1);
    });
}
