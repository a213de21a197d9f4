//! What stands in the place of links to programs of Knative's.

use std::collections::BTreeSet;

use link::StatReport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use vocabulary::{Concurrency, LinkChannel, Load, PodState, PodWord, RevisionName};

use super::*;

/// N8: concurrency 3.5, of which 1.25 came through activators, 7 requests, of which 2, after 61.5 s.
const STAT: &[u8] = b"\x0a\x1ahello-00001-deployment-abc\x11\0\0\0\0\0\0\x0c\x40\x19\0\0\0\0\0\0\xf4\x3f\x21\0\0\0\0\0\0\x1c\x40\x29\0\0\0\0\0\0\0\x40\x31\0\0\0\0\0\xc0\x4e\x40";

fn links(stats: StatDesk) -> (Links, mpsc::Receiver<ControlEvent>) {
    let (linked, _) = mpsc::channel(1);
    let dialler = Arc::new(ScriptedDialler::new(VecDeque::new(), linked));
    let metrics = AutoscalerMetrics::register(&MetricsRegistry::default());
    let name = ReplicaName::new("autoscaler");
    Links::new(name, Clock::start(), dialler, (metrics, stats), CancellationToken::new())
}

fn report(held: f64) -> Vec<StatReport> {
    let revision = RevisionName::parse("default/revision/hello-00001").expect("a name");
    let load = Load { concurrency: Concurrency::new(held).expect("a load"), ..Load::default() };
    vec![StatReport { revision, reporter: "a".to_owned(), load }]
}

/// The next word of an activator.
async fn next_word(events: &mut mpsc::Receiver<ControlEvent>) -> ActivatorWord {
    let Some(ControlEvent::ActivatorSpoke { link: LinkId(1), word }) = events.recv().await else {
        panic!("the activator said nothing")
    };
    word
}

#[tokio::test(start_paused = true)]
async fn pushed_loads_are_told_as_the_words_of_a_link_until_the_activator_leaves() {
    let desk = StatDesk::default();
    let (links, mut events) = links(desk.clone());
    let address = SocketAddr::from(([10, 1, 0, 1], 8012)).into();
    let address = LinkAddress { channel: LinkChannel::Pushed, ..address };
    let peer = Peer::Activator { name: ReplicaName::new("a") };
    let handle = links.open(LinkId(1), peer, address, Priority::Activator);
    assert!(matches!(handle, LinkHandle::Foreign(_)), "nothing is told to it");
    tokio::time::sleep(Duration::from_millis(1)).await;
    let mut known = BTreeSet::new();
    desk.take(report(2.5), &mut known).await;

    assert!(matches!(next_word(&mut events).await, ActivatorWord::Hello(_)));
    let ActivatorWord::Present { count, .. } = next_word(&mut events).await else { panic!("no count") };
    assert_eq!((count.in_flight, count.waiting), (3, 0));
    for held in [Some(2.5), Some(2.5), None] {
        let ActivatorWord::Loads { loads, .. } = next_word(&mut events).await else { panic!("no second") };
        assert_eq!(loads.first().map(|of| of.load.concurrency.value()), held);
    }
    desk.left(known);
    assert!(matches!(
        events.recv().await,
        Some(ControlEvent::LinkChanged { link: LinkId(1), news: LinkNews::Lost })
    ));
    drop(handle);
    links.close().await;
}

#[tokio::test]
async fn a_pod_without_a_link_is_asked_and_its_answer_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let socket = listener.local_addr().expect("it is bound");
    let (links, mut events) = links(StatDesk::default());
    let address = LinkAddress { channel: LinkChannel::Scraped, ..socket.into() };
    let peer = Peer::Pod { name: PodName::new("default/hello-a"), settings: Arc::default() };
    let handle = links.open(LinkId(1), peer, address, Priority::Rest);
    let (mut stream, _) = listener.accept().await.expect("it is asked");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a head"));
    }
    let head = String::from_utf8(head).expect("text").to_lowercase();
    assert!(head.starts_with("get /metrics ") && head.contains("accept: application/protobuf"), "{head}");
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", STAT.len());
    stream.write_all(answer.as_bytes()).await.expect("it is taken");
    stream.write_all(STAT).await.expect("it is taken");

    let Some(ControlEvent::PodSpoke { word: PodWord::Hello(hello), .. }) = events.recv().await else {
        panic!("no hello")
    };
    assert_eq!(hello.state, PodState::Unheard, "whether it is ready Kubernetes says");
    let Some(ControlEvent::PodSpoke { word: PodWord::Load { sample, .. }, .. }) = events.recv().await else {
        panic!("no load")
    };
    let load = sample.load;
    assert_eq!((load.concurrency.value(), load.proxied_concurrency.value()), (3.5, 1.25));
    assert_eq!((load.request_rate.value(), load.proxied_request_rate.value()), (7.0, 2.0));
    drop(handle);
    links.close().await;
}

/// Contract §7.2: no scrape where `target-burst-capacity` −1 keeps all requests in the activators' path.
#[tokio::test(start_paused = true)]
async fn a_pod_whose_requests_all_come_through_activators_is_heard_and_not_asked() {
    let (links, mut events) = links(StatDesk::default());
    // A question would meet a closed port, and no word would come.
    let address = SocketAddr::from(([127, 0, 0, 1], 1)).into();
    let address = LinkAddress { channel: LinkChannel::Unasked, ..address };
    let peer = Peer::Pod { name: PodName::new("default/hello-a"), settings: Arc::default() };
    let handle = links.open(LinkId(1), peer, address, Priority::Rest);
    let hello = events.recv().await;
    assert!(matches!(hello, Some(ControlEvent::PodSpoke { word: PodWord::Hello(_), .. })), "{hello:?}");
    for second in 0..2 {
        let Some(ControlEvent::PodSpoke { word: PodWord::Load { sample, .. }, .. }) = events.recv().await
        else {
            panic!("no load")
        };
        assert_eq!((sample.second, sample.load), (second, Load::default()));
    }
    drop(handle);
    links.close().await;
}
