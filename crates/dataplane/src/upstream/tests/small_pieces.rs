//! Bodies in small pieces, to an app that keeps count of those it has not read, on a connection that others
//! share.

use futures_util::StreamExt;
use futures_util::stream::{Stream, iter, pending};
use tokio::sync::Notify;

use super::*;

/// It answers other requests than `/stuck` when it is let go on.
async fn app_that_does_not_read(go_on: Rc<Notify>) -> App {
    app_with_stuck(move |_| {
        let go_on = Rc::clone(&go_on);
        async move {
            go_on.notified().await;
            Bytes::from_static(b"ok")
        }
    })
    .await
}

/// Sends a request whose body has these pieces, and which the app does not read.
fn send_stuck(upstreams: &Upstreams, to: SocketAddr, pieces: impl Stream<Item = Bytes> + Unpin + 'static) {
    let body = Body::custom(StreamBody::new(pieces.map(|piece| Ok::<_, BodyError>(Frame::data(piece)))));
    let request = Request::post("http://h/stuck").body(body).expect("legal");
    let upstreams = upstreams.clone();
    tokio::task::spawn_local(async move { upstreams.send(to, Protocol::Http2, request).await });
}

#[test]
fn a_body_in_small_pieces_that_the_app_does_not_read_ends_no_request_of_others() {
    run(async {
        let go_on = Rc::new(Notify::new());
        let app = app_that_does_not_read(Rc::clone(&go_on)).await;
        let upstreams = pool(UpstreamLimits::default());
        let honest = tokio::task::spawn_local({
            let upstreams = upstreams.clone();
            async move { exchange(&upstreams, app.address, Protocol::Http2).await }
        });
        while app.connections.get() == 0 {
            tokio::task::yield_now().await;
        }
        let (sent, mut all_sent) = tokio::sync::oneshot::channel();
        let mut sent = Some(sent);
        // Ten times as many as what hyper allows.
        let pieces = (0..20_000).map(move |at| {
            if at == 19_999 {
                let _ = sent.take().map(|sent| sent.send(()));
            }
            Bytes::from_static(b"x")
        });
        send_stuck(&upstreams, app.address, iter(pieces).chain(pending()));
        tokio::time::timeout(Duration::from_secs(10), &mut all_sent).await.expect("in time").expect("sent");
        go_on.notify_waiters();
        go_on.notify_one();
        honest.await.expect("answered");
        assert_eq!(app.connections.get(), 1, "on the connection that both share");
    });
}

#[test]
fn a_connection_with_many_unread_small_pieces_takes_no_further_streams() {
    run(async {
        let go_on = Rc::new(Notify::new());
        let app = app_that_does_not_read(Rc::clone(&go_on)).await;
        let upstreams = pool(UpstreamLimits::default());
        // So few that they would share one connection with the next.
        for _ in 0..40 {
            let pieces = iter([const { Bytes::from_static(b"x") }; 8]);
            send_stuck(&upstreams, app.address, pieces.chain(pending()));
        }
        let mut requests = 0;
        while app.connections.get() < 2 {
            requests += 1;
            assert!(requests < 1_000, "no second connection");
            go_on.notify_one();
            exchange(&upstreams, app.address, Protocol::Http2).await;
        }
        for _ in 0..20 {
            go_on.notify_one();
            exchange(&upstreams, app.address, Protocol::Http2).await;
        }
        assert_eq!(app.connections.get(), 2, "the second one is not laden");
    });
}
