//! The places by themselves, in paused time, and the door with real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::clock::Clock;

const FEW: PageLimits =
    PageLimits { connections: 3, probes: 2, long_reads: 2, own_long_reads: 1, ..PageLimits::STANDARD };
const MOMENT: Duration = Duration::from_millis(200);

fn places() -> PagePlaces {
    PagePlaces::new(FEW, Clock::start())
}

/// As much time as a connection must have rested to be closed for another one.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Serves nothing: it only goes when it has to.
fn resting(seat: PageSeat) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move { seat.must_go().await })
}

#[tokio::test(start_paused = true)]
async fn the_connection_that_rested_for_longest_makes_room() {
    let places = places();
    let first = resting(places.take().await);
    settle().await;
    let second = resting(places.take().await);
    settle().await;
    let third = resting(places.take().await);
    settle().await;
    let _fourth = timeout(MOMENT, places.take()).await.expect("the first one makes room");
    assert!(first.is_finished() && !second.is_finished() && !third.is_finished());
    assert_eq!(places.open(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_request_has_come_is_not_closed_for_another_one() {
    let places = places();
    let seats = [places.take().await, places.take().await, places.take().await];
    let mut turns = Vec::new();
    for seat in &seats {
        turns.push(seat.begin(PageKind::Ordinary).await.expect("there is room"));
    }
    settle().await;
    // The places of probes: whether they probe shows only once they were heard.
    let [prober, stranger] = [places.take().await, places.take().await];
    assert!(timeout(MOMENT / 10, places.take()).await.is_err(), "there is no place left");
    for seat in seats {
        assert!(timeout(MOMENT, seat.must_go()).await.is_err(), "it works");
    }
    assert!(prober.begin(PageKind::Probe).await.is_ok());
    let refused = stranger.begin(PageKind::Ordinary).await.expect_err("three work");
    assert!(refused.to_string().starts_with("3 requests are being answered"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_while_its_connection_is_to_go_takes_that_back() {
    let places = places();
    let seat = places.take().await;
    let _others = [places.take().await, places.take().await];
    settle().await;
    let newcomer = tokio::spawn({
        let places = places.clone();
        async move { places.take().await }
    });
    timeout(MOMENT, seat.must_go()).await.expect("the newcomer needs its place");
    let _turn = seat.begin(PageKind::Ordinary).await.expect("there is room");
    assert!(timeout(MOMENT, seat.must_go()).await.is_err(), "it works now");
    assert!(!newcomer.is_finished(), "the next one was asked to go, and has not gone yet");
}

#[tokio::test(start_paused = true)]
async fn long_reads_take_places_of_their_own_alone() {
    let places = places();
    let mut readers = Vec::new();
    for _ in 0..FEW.long_reads {
        let seat = places.take().await;
        readers.push((seat.begin(PageKind::LongRead).await.expect("there is room"), seat));
    }
    let mut seats = Vec::new();
    for _ in 0..FEW.connections {
        seats.push(places.take().await);
    }
    assert_eq!(places.open(), FEW.long_reads + FEW.connections);
    let refused = seats[0].begin(PageKind::LongRead).await.expect_err("two are under way");
    assert!(refused.to_string().starts_with("2 long reads are under way"), "{refused}");
    for seat in &seats {
        assert!(seat.begin(PageKind::Ordinary).await.is_ok(), "others are not in its way");
        assert!(seat.begin(PageKind::Probe).await.is_ok());
    }
    readers.pop();
    assert!(seats[0].begin(PageKind::LongRead).await.is_ok(), "one has ended");
}

#[tokio::test(start_paused = true)]
async fn long_reads_of_strangers_and_of_the_programs_own_side_take_no_place_of_each_other() {
    let places = places();
    let mut strangers = Vec::new();
    for _ in 0..FEW.long_reads {
        let seat = places.take().await;
        strangers.push((seat.begin(PageKind::LongRead).await.expect("there is room"), seat));
    }
    let (own, second) = (places.take().await, places.take().await);
    let turn = own.begin(PageKind::OwnLongRead).await.expect("its own place is free");
    let refused = second.begin(PageKind::OwnLongRead).await.expect_err("one is under way");
    assert!(refused.to_string().starts_with("1 long reads are under way"), "{refused}");
    strangers.pop();
    assert!(second.begin(PageKind::OwnLongRead).await.is_err(), "a stranger's place is no place of its own");
    assert!(second.begin(PageKind::LongRead).await.is_ok());
    // None of the three takes a place of a connection that rests.
    drop(second);
    let resting = [places.take().await, places.take().await, places.take().await];
    assert_eq!(places.open(), strangers.len() + 1 + resting.len());
    drop(turn);
    assert!(resting[0].begin(PageKind::OwnLongRead).await.is_ok(), "it has ended");
}

#[tokio::test(start_paused = true)]
async fn a_probe_waits_for_its_turn_and_not_for_ever() {
    let places = places();
    let [first, second, third] = [places.take().await, places.take().await, places.take().await];
    let turn = first.begin(PageKind::Probe).await.expect("there is room");
    let _other = second.begin(PageKind::Probe).await.expect("there is room");
    let waiting = tokio::spawn({
        let third = third.clone();
        async move { third.begin(PageKind::Probe).await.map(drop) }
    });
    settle().await;
    assert!(!waiting.is_finished());
    drop(turn);
    assert_eq!(waiting.await.expect("no panic"), Ok(()));
    let _turn = first.begin(PageKind::Probe).await.expect("there is room");
    let refused = timeout(Duration::from_secs(2), third.begin(PageKind::Probe)).await;
    assert!(refused.expect("it is not kept waiting").is_err());
}

#[tokio::test(start_paused = true)]
async fn resting_heads_and_answers_that_are_not_taken_have_their_times() {
    let places = places();
    let clock = Clock::start();
    let lasts = async |seat: &PageSeat| {
        let began_at = clock.now();
        seat.must_go().await;
        clock.now().saturating_since(began_at).as_secs()
    };
    let silent = places.take().await;
    assert_eq!(lasts(&silent).await, 60);
    // A head that comes a byte at a time.
    let slow = places.take().await;
    let (ours, mut theirs) = duplex(1024);
    let mut stream = PageStream::new(ours, slow.clone());
    let trickle = tokio::spawn(async move {
        while theirs.write_all(b"G").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let reading = async { while stream.read_u8().await.is_ok() {} };
    tokio::select! {
        () = reading => panic!("it trickles on"),
        took = lasts(&slow) => assert_eq!(took, 5),
    }
    trickle.abort();
    // A long read whose reader takes nothing.
    let reader = places.take().await;
    let _turn = reader.begin(PageKind::LongRead).await.expect("there is room");
    let (ours, _theirs) = duplex(64);
    let mut stream = PageStream::new(ours, reader.clone());
    let writing = async { while stream.write_all(&[0; 64]).await.is_ok() {} };
    tokio::select! {
        () = writing => panic!("nobody reads"),
        took = lasts(&reader) => assert_eq!(took, 30),
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_read_may_be_silent_for_as_long_as_it_likes() {
    let places = places();
    let seat = places.take().await;
    let _turn = seat.begin(PageKind::LongRead).await.expect("there is room");
    assert!(timeout(Duration::from_secs(24 * 3600), seat.must_go()).await.is_err());
}

/// The least that answers: `ok` to whatever line comes.
async fn serve_lines(mut door: PageListener) {
    loop {
        let PageConnection { stream, seat, .. } = door.accept().await;
        tokio::spawn(async move {
            let mut stream = PageStream::new(stream, seat.clone());
            let answering = async {
                while stream.read_u8().await.is_ok() {
                    let _turn = seat.begin(PageKind::Ordinary).await.expect("there is room");
                    stream.write_all(b"k").await.expect("it is taken");
                }
            };
            // Cancelling is what a connection that must go is for.
            tokio::select! {
                biased;
                () = answering => {}
                () = seat.must_go() => {}
            }
        });
    }
}

#[tokio::test]
async fn eight_hundred_silent_sockets_hold_no_more_descriptors_than_there_are_places() {
    let places = PagePlaces::new(PageLimits::STANDARD, Clock::start());
    let listener = crate::listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
    let door = PageListener::new(listener, &places).expect("it listens");
    let address: SocketAddr = door.local_addr().expect("it is bound");
    let server = tokio::spawn(serve_lines(door));
    let mut silent = Vec::new();
    for _ in 0..800 {
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    // Each newcomer is answered behind all that came before it.
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(b"?").await.expect("it is open");
        let answer = timeout(Duration::from_secs(20), stream.read_u8()).await.expect("in time");
        assert_eq!(answer.expect("it answers"), b'k');
        silent.push(stream);
    }
    let PageLimits { connections, probes, .. } = PageLimits::STANDARD;
    assert!(places.open() <= connections + probes, "{}", places.open());
    server.abort();
}
