use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vocabulary::{ActivatorWord, LinkAddress, PodWord};

use super::*;
use crate::wire::{Fragment, Greeting};
use crate::{ActivatorOrder, PodOrder};

async fn acceptor() -> (Acceptor<PodOrder, PodWord>, LinkAddress) {
    acceptor_with(Some(LinkToken::new([7; 16])), RefusedLinks::default()).await
}

async fn acceptor_with<In: Message, Out: Message>(
    token: Option<LinkToken>,
    refused: RefusedLinks,
) -> (Acceptor<In, Out>, LinkAddress) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = listener.local_addr().unwrap();
    (Acceptor::new(listener, token, refused), LinkAddress { token, ..socket.into() })
}

fn framed(payload: &[u8]) -> Vec<u8> {
    [&u32::try_from(payload.len()).unwrap().to_be_bytes()[..], payload].concat()
}

/// What was refused, as `/metrics` says it.
fn refused(counts: &RefusedLinks) -> String {
    let registry = runtime::MetricsRegistry::default();
    registry.with(|registry| counts.register(registry, "refused_links"));
    let text = registry.encode();
    let mut lines: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("refused_links_total"))
        .filter(|line| !line.ends_with(" 0"))
        .collect();
    lines.sort_unstable();
    lines.join(" ")
}

#[tokio::test]
async fn only_a_connection_that_spoke_becomes_the_link() {
    let (mut acceptor, address) = acceptor().await;
    let silent = TcpStream::connect(address.socket).await.unwrap();
    let mut scanner = TcpStream::connect(address.socket).await.unwrap();
    scanner.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let (mut reader, mut writer) = crate::dial::<PodWord, PodOrder>(address).await.unwrap();
    writer.send(&PodOrder::Heartbeat).await.unwrap();
    let mut accepted = acceptor.accept().await;
    assert_eq!(accepted.first, PodOrder::Heartbeat);
    let report = PodWord::Present(vocabulary::PresentCount { in_flight: 1, waiting: 0 });
    accepted.writer.send(&report).await.unwrap();
    assert_eq!(reader.next().await.unwrap(), Some(report));
    drop((silent, scanner));
}

#[tokio::test]
async fn a_new_link_comes_beside_the_old_one() {
    let (mut acceptor, address) = acceptor().await;
    let (_first_reader, mut first) = crate::dial::<PodWord, PodOrder>(address).await.unwrap();
    first.send(&PodOrder::Heartbeat).await.unwrap();
    let mut old = acceptor.accept().await;
    let (_second_reader, mut second) = crate::dial::<PodWord, PodOrder>(address).await.unwrap();
    second.send(&PodOrder::Heartbeat).await.unwrap();
    // The owner polls both; the new one is there although the old one is healthy.
    let new = tokio::select! {
        new = acceptor.accept() => new,
        end = old.reader.next() => panic!("the old link ended by itself: {end:?}"),
    };
    assert_eq!(new.first, PodOrder::Heartbeat);
}

#[tokio::test]
async fn a_crowd_of_silent_connections_keeps_nobody_out() {
    let (mut acceptor, address) = acceptor().await;
    let mut crowd = Vec::new();
    for _ in 0..2 * CANDIDATES_MAX {
        crowd.push(TcpStream::connect(address.socket).await.unwrap());
    }
    let (_reader, mut writer) = crate::dial::<PodWord, PodOrder>(address).await.unwrap();
    writer.send(&PodOrder::Heartbeat).await.unwrap();
    assert_eq!(acceptor.accept().await.first, PodOrder::Heartbeat);
    assert!(acceptor.oldest_first.len() <= CANDIDATES_MAX);
}

#[tokio::test]
async fn a_caller_without_the_token_is_not_taken_for_the_autoscaler() {
    let counts = RefusedLinks::default();
    let (mut acceptor, address) =
        acceptor_with::<ActivatorOrder, ActivatorWord>(Some(LinkToken::new([7; 16])), counts.clone()).await;
    let wrong = LinkAddress { token: Some(LinkToken::new([8; 16])), ..address };
    let mut strangers = Vec::new();
    for stranger in [LinkAddress::from(address.socket), wrong, wrong] {
        let (reader, mut writer) = crate::dial::<ActivatorWord, ActivatorOrder>(stranger).await.unwrap();
        writer.send(&ActivatorOrder::SyncEnd).await.unwrap();
        strangers.push((reader, writer));
    }
    let (_reader, mut writer) = crate::dial::<ActivatorWord, ActivatorOrder>(address).await.unwrap();
    for (mut reader, _writer) in strangers {
        let closed = tokio::select! {
            closed = reader.next() => closed,
            _ = acceptor.accept() => panic!("a stranger became the link"),
        };
        assert!(!matches!(closed, Ok(Some(_))), "it was told {closed:?}");
    }
    writer.send(&ActivatorOrder::Heartbeat).await.unwrap();
    assert_eq!(acceptor.accept().await.first, ActivatorOrder::Heartbeat);
    assert_eq!(refused(&counts), "{reason=\"token\"} 3");
    assert_eq!(acceptor.refusals.unsaid(), 2, "the log spoke of the first and counts the others");
}

/// A message may be 64 MiB from the autoscaler; from a stranger nothing is
/// collected.
#[tokio::test]
async fn strangers_are_read_one_small_frame() {
    let token = LinkToken::new([7; 16]);
    let greeting = Greeting { token: token.expose().to_vec() }.encode();
    let part = Fragment { part: vec![0; 1000], last: false }.encode();
    for (name, sent) in [
        ("a long frame", framed(&[greeting.as_slice(), &[0; 4096]].concat())),
        ("the length of a long frame", (1_u32 << 20).to_be_bytes().to_vec()),
        ("a fragment", framed(&part)),
        ("a fragment after the token", framed(&[greeting.as_slice(), &part].concat())),
    ] {
        for token in [Some(token), None] {
            let counts = RefusedLinks::default();
            let (mut acceptor, address) =
                acceptor_with::<ActivatorOrder, ActivatorWord>(token, counts.clone()).await;
            let mut stranger = TcpStream::connect(address.socket).await.unwrap();
            stranger.write_all(&sent).await.unwrap();
            let closed = async {
                // A reset is an end as well: there may be unread bytes.
                while matches!(stranger.read(&mut [0; 16]).await, Ok(1..)) {}
            };
            tokio::select! {
                () = closed => {}
                _ = acceptor.accept() => panic!("{name} became the link"),
            }
            // The acceptor hears of it when it is asked again.
            assert!(tokio::time::timeout(Duration::from_millis(1), acceptor.accept()).await.is_err());
            assert_eq!(refused(&counts), "{reason=\"garbage\"} 1", "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_frame_has_three_seconds() {
    let counts = RefusedLinks::default();
    let (mut acceptor, address) =
        acceptor_with::<PodOrder, PodWord>(Some(LinkToken::new([7; 16])), counts.clone()).await;
    let mut slow = TcpStream::connect(address.socket).await.unwrap();
    slow.write_all(&[0, 0]).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(3_500), acceptor.accept()).await;
    assert!(waited.is_err(), "nobody became the link");
    assert_eq!(refused(&counts), "{reason=\"late\"} 1");
    assert_eq!(slow.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn after_its_first_frame_the_autoscaler_may_say_more_at_once() {
    let (mut acceptor, address) = acceptor_with::<ActivatorWord, ActivatorOrder>(
        Some(LinkToken::new([7; 16])),
        RefusedLinks::default(),
    )
    .await;
    let (_reader, mut writer) = crate::dial::<ActivatorOrder, ActivatorWord>(address).await.unwrap();
    let long = ActivatorWord::Loads {
        second: 1,
        loads: (0..1000)
            .map(|index| vocabulary::RevisionLoad {
                revision: vocabulary::RevisionName::new("default", "service", &format!("r{index}")).unwrap(),
                load: vocabulary::Load::default(),
                oldest_wait: Duration::ZERO,
                callers: Vec::new(),
            })
            .collect(),
    };
    let short = ActivatorWord::Loads { second: 0, loads: Vec::new() };
    writer.send(&short).await.unwrap();
    writer.send(&long).await.unwrap();
    let mut accepted = acceptor.accept().await;
    assert_eq!(accepted.first, short);
    assert_eq!(accepted.reader.next().await.unwrap(), Some(long));
}

#[tokio::test]
async fn without_a_token_anybody_on_the_machine_may_call() {
    let (mut acceptor, address) = acceptor_with::<PodOrder, PodWord>(None, RefusedLinks::default()).await;
    // One that knows a token all the same says nothing wrong.
    for address in [address, LinkAddress { token: Some(LinkToken::new([7; 16])), ..address }] {
        let (_reader, mut writer) = crate::dial::<PodWord, PodOrder>(address).await.unwrap();
        writer.send(&PodOrder::Heartbeat).await.unwrap();
        assert_eq!(acceptor.accept().await.first, PodOrder::Heartbeat);
    }
}
