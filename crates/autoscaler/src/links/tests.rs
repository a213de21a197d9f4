mod foreign;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::BoxFuture;
use link::{ByteStream, FromActivator};
use orchestration::{LinkNews, Peer};
use runtime::MetricsRegistry;
use vocabulary::{ActivatorHello, ActivatorWord, BootId, LinkVersion, PodName, Timestamp};

use super::peer::{AWAITED_FOR, REFUSALS_WITHIN};
use super::*;

/// What an attempt to dial meets.
#[derive(Clone, Copy, Debug)]
enum DialAnswer {
    /// The host refuses the connection: no process listens.
    Refusal,
    /// The same, heard of so late.
    LateRefusal(Duration),
    /// A process does, and cuts the connection.
    Reset,
    /// Neither one nor the other, ever.
    Silence,
    /// An activator that says hello.
    Hello,
}

/// What a look beside a link meets.
#[derive(Clone, Copy, Debug)]
enum ReachAnswer {
    /// The look did not come about, which says nothing of the peer.
    Unknown,
    /// The kernel of the peer's host takes the connection.
    Accepted,
    /// The host says that no process listens.
    Refusal,
    /// A router says that the host is not there.
    Unreachable,
    /// No answer to the SYN.
    Silence,
}

/// Answers in an order, and then with silence; to looks in an order of their own, and then always alike.
#[derive(Debug)]
struct ScriptedDialler {
    answers: Mutex<VecDeque<DialAnswer>>,
    looks: Mutex<VecDeque<ReachAnswer>>,
    linked: mpsc::Sender<FromActivator>,
}

impl ScriptedDialler {
    fn new(answers: VecDeque<DialAnswer>, linked: mpsc::Sender<FromActivator>) -> Self {
        Self { answers: Mutex::new(answers), looks: Mutex::default(), linked }
    }
}

impl Dial for ScriptedDialler {
    fn reach(&self, _: LinkAddress) -> BoxFuture<'static, io::Result<()>> {
        let mut looks = self.looks.lock().unwrap();
        let last = looks.front().copied().unwrap_or(ReachAnswer::Unknown);
        if looks.len() > 1 {
            looks.pop_front();
        }
        Box::pin(async move {
            match last {
                ReachAnswer::Unknown => Err(ErrorKind::Other.into()),
                ReachAnswer::Accepted => Ok(()),
                ReachAnswer::Refusal => Err(ErrorKind::ConnectionRefused.into()),
                ReachAnswer::Unreachable => Err(ErrorKind::HostUnreachable.into()),
                ReachAnswer::Silence => std::future::pending().await,
            }
        })
    }

    fn connect(&self, _: LinkAddress) -> BoxFuture<'static, io::Result<ByteStream>> {
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(DialAnswer::Silence);
        let linked = self.linked.clone();
        Box::pin(async move {
            match answer {
                DialAnswer::Refusal => Err(ErrorKind::ConnectionRefused.into()),
                DialAnswer::LateRefusal(after) => {
                    tokio::time::sleep(after).await;
                    Err(ErrorKind::ConnectionRefused.into())
                }
                DialAnswer::Reset => Err(ErrorKind::ConnectionReset.into()),
                DialAnswer::Silence => std::future::pending().await,
                DialAnswer::Hello => {
                    let (ours, theirs) = tokio::io::duplex(1 << 16);
                    let mut side: FromActivator = link::accept(ByteStream::of(theirs));
                    side.1.send(&ActivatorWord::Hello(hello())).await.unwrap();
                    linked.send(side).await.unwrap();
                    Ok(ByteStream::of(ours))
                }
            }
        })
    }
}

fn hello() -> ActivatorHello {
    ActivatorHello {
        speaks: LinkVersion::CURRENT,
        activator: ReplicaName::new("a"),
        boot: BootId(1),
        current_second: 0,
        history: Vec::new(),
        present: Vec::new(),
        routings: Vec::new(),
    }
}

/// What is told of an activator whose link stands after the attempts of `before`, breaks after `lived`, and
/// meets `after` when it is dialled again.
async fn told(before: &[DialAnswer], lived: Duration, after: &[DialAnswer]) -> Vec<LinkNews> {
    let answers = before.iter().chain(&[DialAnswer::Hello]).chain(after).copied().collect();
    let (sender, mut linked) = mpsc::channel(8);
    let dialler = Arc::new(ScriptedDialler::new(answers, sender));
    let metrics = AutoscalerMetrics::register(&MetricsRegistry::default());
    let stop = CancellationToken::new();
    let name = ReplicaName::new("autoscaler");
    let (links, mut events) = Links::new(name, Clock::start(), dialler, (metrics, StatDesk::default()), stop);
    let address = SocketAddr::from(([10, 0, 0, 1], 8024)).into();
    let peer = Peer::Activator { name: ReplicaName::new("a") };
    let handle = links.open(LinkId(1), peer, address, Priority::Activator);
    let first = linked.recv().await.unwrap();
    tokio::time::sleep(lived).await;
    drop(first);
    // Less than a link, or an attempt, may be silent.
    tokio::time::sleep(Duration::from_secs(9)).await;
    drop(handle);
    links.close().await;
    let events = std::iter::from_fn(|| events.try_recv().ok());
    let news =
        events.filter_map(
            |event| if let ControlEvent::LinkChanged { news, .. } = event { Some(news) } else { None },
        );
    news.collect()
}

/// A link that lives so long begins the waits anew ([`GOOD_LINK`]).
const LONG: Duration = Duration::from_secs(6);
/// One that lives so long does not.
const SHORT: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn two_refusals_in_a_row_where_a_link_stood_are_told_once() {
    use DialAnswer::{Hello, LateRefusal, Refusal, Reset, Silence};
    let late = LateRefusal(REFUSALS_WITHIN + Duration::from_millis(1));
    let table: &[(&str, &[DialAnswer], bool)] = &[
        ("twice", &[Refusal, Refusal], true),
        ("on and on", &[Refusal; 20], true),
        ("and then one that listens", &[Refusal, Refusal, Hello], true),
        ("after a cut", &[Reset, Refusal, Refusal], true),
        ("once", &[Refusal, Hello], false),
        ("once, and silence", &[Refusal, Silence], false),
        ("silence", &[Silence], false),
        ("cut", &[Reset, Reset, Reset, Hello], false),
        ("not in a row", &[Refusal, Reset, Refusal, Reset, Refusal, Hello], false),
        ("too far apart", &[late, late, late, Hello], false),
    ];
    for (what, after, is_told) in table {
        let expected = if *is_told { vec![LinkNews::Lost, LinkNews::Refused] } else { vec![LinkNews::Lost] };
        assert_eq!(told(&[], LONG, after).await, expected, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_before_the_first_link_say_nothing_and_delay_no_later_word() {
    use DialAnswer::Refusal;
    // Their waits have grown to a second, and a short link does not end that.
    let before = [Refusal; 12];
    assert_eq!(told(&before, SHORT, &[]).await, [LinkNews::Lost]);
    assert_eq!(told(&before, SHORT, &[Refusal; 2]).await, [LinkNews::Lost, LinkNews::Refused]);
}

/// How often a pod is dialled in each of `spans`, one after the other, while no process listens.
async fn dialled_within<const N: usize>(priority: Priority, spans: [Duration; N]) -> [usize; N] {
    const ENOUGH: usize = 10_000;
    let (linked, _nobody) = mpsc::channel(1);
    let dialler = Arc::new(ScriptedDialler::new(VecDeque::from(vec![DialAnswer::Refusal; ENOUGH]), linked));
    let metrics = AutoscalerMetrics::register(&MetricsRegistry::default());
    let name = ReplicaName::new("autoscaler");
    let clock = Clock::start();
    let (links, _events) = Links::new(
        name,
        clock,
        Arc::<ScriptedDialler>::clone(&dialler),
        (metrics, StatDesk::default()),
        CancellationToken::new(),
    );
    let address = SocketAddr::from(([10, 0, 0, 1], 8024)).into();
    let peer = Peer::Pod { name: PodName::new("a"), settings: Arc::default() };
    let _handle = links.open(LinkId(1), peer, address, priority);
    let mut counts = [0; N];
    let (mut left, mut until) = (ENOUGH, clock.now());
    for (count, span) in counts.iter_mut().zip(spans) {
        until += span;
        clock.sleep_until(until).await;
        let now_left = dialler.answers.lock().unwrap().len();
        *count = left - now_left;
        left = now_left;
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_requests_wait_for_is_dialled_until_it_listens_and_then_as_rarely_as_others() {
    let spans = [AWAITED_FOR, Duration::from_secs(2), Duration::from_secs(10)];
    let [at_first, _, later] = dialled_within(Priority::Awaited, spans).await;
    // A wait lasts a millisecond more where timers are of one.
    assert!((400..=500).contains(&at_first), "{at_first}");
    assert!((9..=11).contains(&later), "{later}");
    let [at_first, _, later] = dialled_within(Priority::Rest, spans).await;
    assert!((9..=12).contains(&at_first) && (9..=11).contains(&later), "{at_first} {later}");
}

/// How the test stops a link.
#[derive(Clone, Copy, Debug)]
enum LinkStop {
    /// Nothing more arrives on it.
    Silence,
    /// The test cuts the link's connection.
    Break,
}

/// What the looks beside a link tell, and when after its last frame: of one that stood, stopped, and heard
/// nothing more for nine seconds.
async fn looked(stop: LinkStop, looks: &[ReachAnswer]) -> Vec<(u128, LinkNews)> {
    let (sender, mut linked) = mpsc::channel(8);
    let dialler = Arc::new(ScriptedDialler::new(VecDeque::from([DialAnswer::Hello]), sender));
    *dialler.looks.lock().unwrap() = looks.iter().copied().collect();
    let metrics = AutoscalerMetrics::register(&MetricsRegistry::default());
    let clock = Clock::start();
    let stopping = CancellationToken::new();
    let name = ReplicaName::new("autoscaler");
    let (links, mut events) = Links::new(name, clock, dialler, (metrics, StatDesk::default()), stopping);
    let address = SocketAddr::from(([10, 0, 0, 1], 8024)).into();
    let peer = Peer::Activator { name: ReplicaName::new("a") };
    let handle = links.open(LinkId(1), peer, address, Priority::Activator);
    let activator = linked.recv().await.unwrap();
    let last_frame = clock.now();
    let _kept = match stop {
        LinkStop::Silence => Some(activator),
        LinkStop::Break => {
            drop(activator);
            None
        }
    };
    let mut told = Vec::new();
    let until = last_frame + Duration::from_secs(9);
    loop {
        let event = tokio::select! {
            event = events.recv() => event.unwrap(),
            () = clock.sleep_until(until) => break,
        };
        if let ControlEvent::LinkChanged {
            news: news @ (LinkNews::Accepting | LinkNews::Unreachable { .. }),
            ..
        } = event
        {
            told.push((clock.now().saturating_since(last_frame).as_millis(), news));
        }
    }
    drop(handle);
    links.close().await;
    told
}

#[tokio::test(start_paused = true)]
async fn two_looks_that_fail_in_a_row_beside_a_silent_or_broken_link_are_told_within_a_second() {
    use ReachAnswer::{Accepted, Refusal, Silence, Unknown, Unreachable};
    // The link is late 2.5 s after its last frame.
    let table: &[(&str, LinkStop, &[ReachAnswer], Option<u128>)] = &[
        ("no answer to a SYN", LinkStop::Silence, &[Silence], Some(3_500)),
        ("unreachable", LinkStop::Silence, &[Unreachable], Some(3_000)),
        ("refused", LinkStop::Silence, &[Refusal], Some(3_000)),
        ("one of each", LinkStop::Silence, &[Refusal, Silence], Some(3_500)),
        ("broken", LinkStop::Break, &[Silence], Some(1_000)),
        ("broken, and refused", LinkStop::Break, &[Refusal], Some(500)),
        ("a process that stalls", LinkStop::Silence, &[Accepted], None),
        ("a process that was restarted", LinkStop::Break, &[Accepted], None),
        ("one failure", LinkStop::Silence, &[Silence, Accepted], None),
        ("failures apart", LinkStop::Silence, &[Silence, Accepted, Silence, Accepted], None),
        ("no descriptor left here", LinkStop::Silence, &[Unknown], None),
        ("a node that dies while its process stalls", LinkStop::Silence, &[Accepted, Silence], Some(4_500)),
    ];
    for (what, stop, looks, expected) in table {
        let told = looked(*stop, looks).await;
        let first = told.iter().find(|(_, news)| matches!(news, LinkNews::Unreachable { .. }));
        let first = first.map(|(at, _)| *at);
        // Timers are of a millisecond.
        let is_near = first.zip(*expected).is_some_and(|(first, expected)| first.abs_diff(expected) <= 15);
        assert!(is_near || first.is_none() && expected.is_none(), "{what}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_peer_is_told_again_with_what_was_found_since() {
    let told = looked(LinkStop::Silence, &[ReachAnswer::Silence]).await;
    let since: Vec<Timestamp> = told
        .iter()
        .filter_map(|(_, news)| match news {
            LinkNews::Unreachable { since } => Some(*since),
            LinkNews::Accepting | LinkNews::Lost | LinkNews::Refused | LinkNews::Blocked(_) => None,
        })
        .collect();
    assert!(since.len() >= 2, "told again: {told:?}");
    assert!(since.is_sorted_by(|one, next| *next >= *one + Duration::from_secs(1)), "{told:?}");
}

#[tokio::test]
async fn a_links_task_is_kept_once() {
    let task = async {
        let room = [0_u8; 4096];
        std::future::pending::<()>().await;
        std::hint::black_box(&room);
    };
    assert!(size_of_val(&task) >= 4096);
    let around = size_of_val(&until(CancellationToken::new(), task));
    assert!(around < 1024, "{around} bytes around a task that lies elsewhere");
}
