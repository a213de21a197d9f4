use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::*;
use crate::{PodOrder, PodReport};

async fn acceptor() -> (Acceptor<PodOrder, PodReport>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (Acceptor::new(listener), address)
}

#[tokio::test]
async fn only_a_connection_that_spoke_becomes_the_link() {
    let (mut acceptor, address) = acceptor().await;
    let silent = TcpStream::connect(address).await.unwrap();
    let mut scanner = TcpStream::connect(address).await.unwrap();
    scanner.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let (mut reader, mut writer) = crate::dial::<PodReport, PodOrder>(address).await.unwrap();
    writer.send(&PodOrder::Heartbeat).await.unwrap();
    let mut accepted = acceptor.accept().await;
    assert_eq!(accepted.first, PodOrder::Heartbeat);
    let report = PodReport::Present(vocabulary::PresentCount { in_flight: 1, waiting: 0 });
    accepted.writer.send(&report).await.unwrap();
    assert_eq!(reader.next().await.unwrap(), Some(report));
    drop((silent, scanner));
}

#[tokio::test]
async fn a_new_link_comes_beside_the_old_one() {
    let (mut acceptor, address) = acceptor().await;
    let (_first_reader, mut first) = crate::dial::<PodReport, PodOrder>(address).await.unwrap();
    first.send(&PodOrder::Heartbeat).await.unwrap();
    let mut old = acceptor.accept().await;
    let (_second_reader, mut second) = crate::dial::<PodReport, PodOrder>(address).await.unwrap();
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
    for _ in 0..5 * CANDIDATES_MAX {
        crowd.push(TcpStream::connect(address).await.unwrap());
    }
    let (_reader, mut writer) = crate::dial::<PodReport, PodOrder>(address).await.unwrap();
    writer.send(&PodOrder::Heartbeat).await.unwrap();
    assert_eq!(acceptor.accept().await.first, PodOrder::Heartbeat);
    assert!(acceptor.oldest_first.len() <= CANDIDATES_MAX);
}
