//! Requests of user agents that are ignored: they are held to the app's limit like all others, and the
//! autoscaler hears nothing of them.

use queue_proxy::ProcessEnd;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use vocabulary::{Load, PodState, PodWord, PresentCount, Routing};

use crate::world::{App, HOP_KEY, Proxy, answer, eventually, metric, run, text};

const CHECK: (&str, &str) = ("User-Agent", "kube-probe/1.31");

/// An app that never answers.
async fn silent_app() -> App {
    App::start(|_| Box::pin(std::future::pending())).await
}

/// Sends a request with these headers and returns its connection while the request is under way.
async fn begun(proxy: &Proxy, headers: &[(&str, &str)]) -> TcpStream {
    let mut client = proxy.connect().await;
    let mut head = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n".to_owned();
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    client.write_all(head.as_bytes()).await.expect("open");
    client
}

/// The load of the first whole second from now on.
async fn next_whole_second(proxy: &mut Proxy) -> Load {
    // Its seconds began after that, so the one that runs has no greater number than this has. Reports about
    // earlier ones may still lie there.
    let running = proxy.clock.now().saturating_since(proxy.started_at).as_secs();
    loop {
        if let PodWord::Load { sample, .. } = proxy.heard().await
            && sample.second > running
        {
            return sample.load;
        }
    }
}

/// The slot is the health check's, and who waits for it is seen by the autoscaler. The other way round it is
/// the health check that waits, and no request is seen to wait.
#[test]
fn they_have_a_slot_or_wait_for_one_and_are_no_load() {
    run(async {
        let app = silent_app().await;
        let mut proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "1")]).await;
        proxy.order(Routing::Direct, Some(1)).await;
        let checking = begun(&proxy, &[CHECK]).await;
        eventually("it runs", || app.state.running.get() == 1).await;
        let second = begun(&proxy, &[CHECK]).await;
        while metric(&proxy, "queue_proxy_waiting_requests").await != "1" {}
        assert_eq!(metric(&proxy, "queue_proxy_in_flight_requests").await, "2", "people see all of them");
        assert!(
            next_whole_second(&mut proxy).await.is_zero(),
            "neither the one that runs nor the one that waits"
        );

        let waiting = begun(&proxy, &[]).await;
        let present = loop {
            if let PodWord::Present(count) = proxy.heard().await {
                break count;
            }
        };
        assert_eq!(present.in_flight, 1, "the ordinary one alone");
        let load = next_whole_second(&mut proxy).await;
        assert!((load.concurrency.value() - 1.0).abs() < 1e-9, "{load:?}");
        assert_eq!(load.queued, 1);

        assert_eq!(app.state.running_max.get(), 1);
        drop(second);
        while metric(&proxy, "queue_proxy_waiting_requests").await != "1" {}
        drop(checking);
        eventually("the ordinary one runs", || app.state.seen.get() == 2 && app.state.running.get() == 1)
            .await;
        let late = begun(&proxy, &[CHECK]).await;
        while metric(&proxy, "queue_proxy_waiting_requests").await != "1" {}
        let load = next_whole_second(&mut proxy).await;
        assert!((load.concurrency.value() - 1.0).abs() < 1e-9, "{load:?}");
        assert_eq!((load.queued, app.state.seen.get()), (0, 2));
        drop((waiting, late));
    });
}

#[test]
fn ignored_user_agents_come_from_the_environment_and_from_our_hops() {
    run(async {
        let app = silent_app().await;
        let changes = [("EBB_IGNORE_USER_AGENTS", "Scraper/, HAProxy")];
        let mut proxy = Proxy::start(app.port, &changes).await;
        proxy.order(Routing::Direct, Some(1)).await;
        let hop = ("Ebb-Hop-Key", HOP_KEY);
        let unmeasured = [
            begun(&proxy, &[("User-Agent", "Scraper/2.1 (every 15 s)")]).await,
            begun(&proxy, &[("user-agent", "HAProxy")]).await,
            // An activator that ignores others counts it itself.
            begun(&proxy, &[("User-Agent", "HAProxy"), hop, ("K-Proxy-Request", "activator")]).await,
        ];
        eventually("all run", || app.state.running.get() == 3).await;
        let told = begun(&proxy, &[CHECK, hop, ("Ebb-Unmeasured", "1")]).await;
        eventually("so does the one of which our hop says it", || app.state.running.get() == 4).await;
        assert_eq!(
            (app.state.saw("ebb-unmeasured"), app.state.saw("user-agent")),
            ("-".into(), CHECK.1.into())
        );
        assert!(next_whole_second(&mut proxy).await.is_zero());
        // No client hides from the autoscaler by a word of ours, and the default was replaced.
        let lying = begun(&proxy, &[("Ebb-Unmeasured", "1")]).await;
        eventually("it runs", || app.state.running.get() == 5).await;
        assert_eq!(app.state.saw("ebb-unmeasured"), "-");
        let measured = [
            begun(&proxy, &[CHECK]).await,
            begun(&proxy, &[("User-Agent", "curl/8 Scraper/2.1")]).await,
            begun(&proxy, &[]).await,
        ];
        loop {
            if proxy.heard().await == PodWord::Present(PresentCount { in_flight: 4, waiting: 0 }) {
                break;
            }
        }
        drop((unmeasured, told, lying, measured));
    });
}

#[test]
fn a_pod_that_drains_finishes_them() {
    run(async {
        let gate = std::rc::Rc::new(tokio::sync::Notify::new());
        let opened = std::rc::Rc::clone(&gate);
        let app = App::start(move |_| {
            let opened = std::rc::Rc::clone(&opened);
            Box::pin(async move {
                opened.notified().await;
                text(200, "done")
            })
        })
        .await;
        let mut proxy = Proxy::start(app.port, &[]).await;
        let mut checking = begun(&proxy, &[CHECK]).await;
        eventually("it runs", || app.state.running.get() == 1).await;
        proxy.leaving.cancel();
        loop {
            if let PodWord::State { state: PodState::Draining, .. } = proxy.heard().await {
                break;
            }
        }
        gate.notify_waiters();
        let answered = answer(&mut checking).await;
        assert_eq!((answered.status, answered.body.as_str(), answered.is_whole), (200, "done", true));
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained);
    });
}

#[test]
fn people_see_them_in_the_metrics() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        assert_eq!(proxy.get("/", &[CHECK]).await.body, "hello");
        assert_eq!(proxy.get("/", &[]).await.body, "hello");
        assert_eq!(metric(&proxy, "queue_proxy_requests_total{outcome=\"answered\"}").await, "2");
    });
}
