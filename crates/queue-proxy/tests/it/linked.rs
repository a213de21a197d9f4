//! The link of a queue-proxy, seen from the autoscaler's end.

use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use link::PodOrder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vocabulary::{
    Epoch, LinkAddress, LinkToken, PodName, PodSettings, PodState, PodWord, PresentCount, Routing, Version,
};

use crate::world::{
    App, HOP_KEY, Proxy, UnlinkedProxy, answer, ask, eventually, http2, link_address, parse, read_until, run,
};

#[test]
fn the_hello_says_who_how_and_what_was() {
    run(async {
        let app = App::hello().await;
        let changes = [("CONTAINER_CONCURRENCY", "7"), ("REVISION_IDLE_TIMEOUT_SECONDS", "9")];
        let mut proxy = Proxy::start(app.port, &changes).await;
        let hello = proxy.hello.clone();
        assert_eq!((hello.pod, hello.container_concurrency), (PodName::new("hello-1"), 7));
        assert_eq!(hello.timeouts.request, Some(Duration::from_secs(300)));
        assert_eq!(hello.timeouts.idle, Some(Duration::from_secs(9)));
        assert_eq!((hello.state, hello.current_second, hello.history.len()), (PodState::Ready, 0, 0));
        let first = loop {
            if let PodWord::Load { sample, .. } = proxy.heard().await {
                break sample;
            }
        };
        assert_eq!(first.second, 0);
        // Another call: the same life, with its past.
        let (mut reader, mut writer) =
            link::dial::<PodWord, PodOrder>(link_address(&proxy.ports)).await.expect("it listens");
        writer.send(&PodOrder::Heartbeat).await.expect("open");
        let PodWord::Hello(again) = reader.next().await.expect("open").expect("a report") else {
            panic!("the hello comes first");
        };
        assert_eq!(again.boot, hello.boot);
        assert_eq!(again.history.first(), Some(&first));
    });
}

/// An app that is not well says so; that it is well is for the platform to say, which asks more.
#[test]
fn a_proxy_that_does_not_judge_readiness_leaves_it_to_the_platform() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[("EBB_READINESS_JUDGE", "platform")]).await;
        assert_eq!(proxy.hello.state, PodState::Unheard);
        assert_eq!(
            ask(proxy.ports.admin, "GET", "/ready", &[], b"").await.status,
            200,
            "the platform asks that"
        );
        let probe = r#"{"tcpSocket":{"port":9},"successThreshold":1}"#;
        let changes = [("EBB_READINESS_JUDGE", "platform"), ("SERVING_READINESS_PROBE", probe)];
        assert_eq!(Proxy::start(app.port, &changes).await.hello.state, PodState::Starting);
    });
}

#[test]
fn each_second_is_reported_and_a_rise_at_once() {
    run(async {
        let app = App::start(|_| Box::pin(std::future::pending())).await;
        let mut proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "1")]).await;
        proxy.order(Routing::Direct, Some(3)).await;
        let mut clients = Vec::new();
        for _ in 0..4 {
            let mut client = proxy.connect().await;
            client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
            clients.push(client);
        }
        let mut hop = proxy.connect().await;
        let request = format!(
            "GET / HTTP/1.1\r\nHost: h\r\nEbb-Hop-Key: {HOP_KEY}\r\nK-Proxy-Request: activator\r\n\r\n"
        );
        hop.write_all(request.as_bytes()).await.expect("open");
        loop {
            if let PodWord::Present(count) = proxy.heard().await {
                assert!(count.in_flight >= 3, "{count:?}");
                if count.in_flight == 4 {
                    assert_eq!(count, PresentCount { in_flight: 4, waiting: 3 }, "without the activator's");
                    break;
                }
            }
        }
        loop {
            if let PodWord::Load { sample, .. } = proxy.heard().await
                && (sample.load.concurrency.value() - 5.0).abs() < 1e-9
            {
                assert!((sample.load.proxied_concurrency.value() - 1.0).abs() < 1e-9);
                assert_eq!(sample.load.queued, 4);
                break;
            }
        }
    });
}

/// Activators go by the platform's word, which may come before the link: taken for clients' then, what they
/// send would count twice, here and there.
#[test]
fn requests_of_our_hops_wait_for_the_owners_first_settings_and_those_of_clients_do_not() {
    run(async {
        let app = App::hello().await;
        let proxy = UnlinkedProxy::start(app.port, &[]);
        let mut hop = TcpStream::connect(("127.0.0.1", proxy.ports.requests)).await.expect("it listens");
        let request = format!(
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nEbb-Hop-Key: {HOP_KEY}\r\nK-Proxy-Request: activator\r\n\r\n"
        );
        hop.write_all(request.as_bytes()).await.expect("open");
        for _ in 0..3 {
            assert_eq!(ask(proxy.ports.requests, "GET", "/", &[], b"").await.status, 200);
        }
        assert_eq!(app.state.seen.get(), 3, "only what clients sent");
        let _proxy = proxy.linked().await;
        assert_eq!(answer(&mut hop).await.status, 200);
        assert_eq!((app.state.seen.get(), app.state.saw("k-proxy-request").as_str()), (4, "activator"));
    });
}

#[test]
fn after_a_path_switch_clients_are_told_to_come_back_and_activators_are_not() {
    run(async {
        let app = App::hello().await;
        let mut proxy = Proxy::start(app.port, &[]).await;
        let mut client = proxy.connect().await;
        let mut ask = async |extra: &str| {
            let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{extra}\r\n");
            client.write_all(request.as_bytes()).await.expect("open");
            parse(read_until(&mut client, "hello").await.as_bytes(), true).header("connection").to_owned()
        };
        assert_eq!(ask("").await, "-");
        proxy.order(Routing::ThroughActivator, None).await;
        let hop = format!("Ebb-Hop-Key: {HOP_KEY}\r\n");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(ask(&hop).await, "-");
        let mut connection = ask("").await;
        while connection == "-" {
            connection = ask("").await;
        }
        assert_eq!(connection, "close");
        assert_eq!(client.read(&mut [0]).await.expect("a clean end"), 0);
        eventually("it goes on", || app.state.seen.get() >= 3).await;
        assert_eq!(proxy.get("/", &[]).await.status, 200, "new connections are served");
    });
}

/// Nothing has to be said to a connection that carries nothing: its next request is served, and with the
/// answer it hears that it is to come back elsewhere.
#[test]
fn after_a_path_switch_an_http2_client_is_told_with_its_next_answer() {
    run(async {
        let app = App::hello().await;
        let mut proxy = Proxy::start(app.port, &[]).await;
        let mut client = http2(proxy.ports.requests).await;
        let mut hop = http2(proxy.ports.requests).await;
        let get = |key: Option<&str>| {
            let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
            let request = key
                .iter()
                .fold(Request::get("http://h/"), |request, key| request.header("ebb-hop-key", *key));
            request.body(body).expect("legal")
        };
        assert_eq!(client.send_request(get(None)).await.expect("an answer").status(), 200);
        proxy.order(Routing::ThroughActivator, None).await;
        let mut answered = 0;
        while client.ready().await.is_ok() {
            assert_eq!(hop.send_request(get(Some(HOP_KEY))).await.expect("an answer").status(), 200);
            // Refused by its own library once that has heard; until then every request has its answer.
            let Ok(response) = client.send_request(get(None)).await else { break };
            assert_eq!(response.status(), 200);
            answered += 1;
        }
        assert!(answered > 0, "the request that was on its way is served");
        assert_eq!(hop.send_request(get(Some(HOP_KEY))).await.expect("an answer").status(), 200);
    });
}

/// `127.0.0.2` stands for every address that is not the listener's own: what is bound to all interfaces
/// answers there, what is bound to `127.0.0.1` does not.
#[test]
fn without_a_token_the_link_is_for_this_machine_alone() {
    run(async {
        for (token, is_reachable) in [("", false), ("000102030405060708090a0b0c0d0e0f", true)] {
            let changes = [("EBB_BIND", "0.0.0.0"), ("EBB_LINK_TOKEN", token)];
            let proxy = Proxy::start(1, &changes).await;
            let reach = async |port| TcpStream::connect(("127.0.0.2", port)).await.is_ok();
            assert!(reach(proxy.ports.requests).await);
            assert_eq!(reach(proxy.ports.link).await, is_reachable, "{token:?}");
        }
    });
}

/// An owner that hangs dials on by itself: it must not take the link from its successor again and again.
#[test]
fn a_former_owners_call_leaves_its_successors_link_alone() {
    run(async {
        let app = App::hello().await;
        let mut proxy = Proxy::start(app.port, &[]).await;
        let settings = |epoch| {
            let version = Version { epoch: Epoch(epoch), counter: 1 };
            PodOrder::Settings(PodSettings { version, ..PodSettings::default() }.into())
        };
        proxy.writer.send(&settings(2)).await.expect("open");
        while !matches!(proxy.heard().await, PodWord::SettingsAcknowledged(version) if version.epoch == Epoch(2))
        {
        }
        let (mut reader, mut writer) =
            link::dial::<PodWord, PodOrder>(link_address(&proxy.ports)).await.expect("it listens");
        writer.send(&settings(1)).await.expect("open");
        assert!(!matches!(reader.next().await, Ok(Some(_))), "it hears nothing");
        assert!(!matches!(proxy.heard().await, PodWord::Hello(_)), "the conversation goes on");
        let (mut reader, mut writer) =
            link::dial::<PodWord, PodOrder>(link_address(&proxy.ports)).await.expect("it listens");
        writer.send(&settings(3)).await.expect("open");
        assert!(matches!(reader.next().await, Ok(Some(PodWord::Hello(_)))), "the next owner does");
    });
}

#[test]
fn a_caller_without_the_token_is_closed_and_counted() {
    run(async {
        let app = App::hello().await;
        let mut proxy =
            Proxy::start(app.port, &[("EBB_LINK_TOKEN", "000102030405060708090a0b0c0d0e0f")]).await;
        for token in [None, Some(LinkToken::new([8; 16]))] {
            let address = LinkAddress { token, ..link_address(&proxy.ports) };
            let (mut reader, mut writer) =
                link::dial::<PodWord, PodOrder>(address).await.expect("it listens");
            writer.send(&PodOrder::Heartbeat).await.expect("open");
            assert!(!matches!(reader.next().await, Ok(Some(_))), "a stranger hears nothing");
        }
        let page = ask(proxy.ports.metrics, "GET", "/metrics", &[], b"").await;
        assert!(page.body.contains("queue_proxy_refused_links_total{reason=\"token\"} 2"), "{}", page.body);
        // The autoscaler's link stands.
        proxy.order(Routing::Direct, Some(3)).await;
        proxy.heard().await;
    });
}
