use proptest::prelude::*;
use proptest::sample::Index;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use vocabulary::{
    ActivatorHello, ActivatorWord, BootId, LinkVersion, Load, PodSettings, PodState, PodWord, PresentCount,
    ReplicaName, RevisionLoad, RevisionName, Sample,
};

use super::*;
use crate::PodOrder;
use crate::wire::tests::any_activator_report;

/// Both ends of a connection.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
    (near.unwrap(), far.unwrap().0)
}

/// The autoscaler's end of a link to a queue-proxy, and the bare connection at the other end.
async fn to_pod() -> (Reader<PodWord>, Writer<PodOrder>, TcpStream) {
    let (near, far) = connection().await;
    let (reader, writer) = crate::accept(near);
    (reader, writer, far)
}

fn heartbeat(second: u64) -> PodWord {
    PodWord::Load { sample: Sample { second, load: Load::default() }, usage: None, late_bytes: None }
}

fn framed(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [&length.to_be_bytes()[..], payload].concat()
}

/// Frames of a message: one, or as many as it is cut into.
fn frames_of(message: &ActivatorWord, cuts: &[usize]) -> Vec<u8> {
    let mut whole = BytesMut::new();
    message.encode(&mut whole);
    if cuts.is_empty() {
        return framed(&whole);
    }
    let mut frames = Vec::new();
    for cut in cuts {
        // No writer sends an empty part, which on the wire is no fragment.
        if *cut < whole.len() {
            let part = whole.split_to(*cut).to_vec();
            frames.extend(framed(&wire::Fragment { part, last: false }.encode()));
        }
    }
    frames.extend(framed(&wire::Fragment { part: whole.to_vec(), last: true }.encode()));
    frames
}

/// What is read when the bytes come in pieces of these sizes, in turn, and how the link ends then.
async fn read_in(sizes: &[usize], mut bytes: &[u8]) -> (Vec<ActivatorWord>, String) {
    let (near, mut far) = tokio::io::duplex(1 << 20);
    let (mut reader, _writer) = crate::accept::<ActivatorWord, PodOrder>(crate::ByteStream::of(near));
    let send = async move {
        for size in sizes.iter().cycle() {
            if bytes.is_empty() {
                break;
            }
            let (piece, rest) = bytes.split_at(bytes.len().min(*size));
            // Who has read garbage is gone.
            if far.write_all(piece).await.is_err() {
                break;
            }
            bytes = rest;
            // The reader's turn, so that it sees the piece alone.
            tokio::task::yield_now().await;
        }
    };
    let read = async move {
        let mut messages = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => return (messages, "closed".to_owned()),
                Err(error) => return (messages, format!("{error:?}")),
            }
        }
    };
    tokio::join!(send, read).1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn messages_and_garbage_are_the_same_however_their_bytes_come(
        sent in prop::collection::vec(
            (any_activator_report(), prop::collection::vec(1..200_usize, 0..5)), 1..5
        ),
        damage in prop::option::of((any::<Index>(), 1..=255_u8)),
        sizes in prop::collection::vec(1..300_usize, 1..6),
    ) {
        let mut bytes: Vec<u8> = sent.iter().flat_map(|(message, cuts)| frames_of(message, cuts)).collect();
        if let Some((place, change)) = &damage {
            let place = place.index(bytes.len());
            bytes[place] ^= change;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (in_pieces, end) = runtime.block_on(read_in(&sizes, &bytes));
        let whole = runtime.block_on(read_in(&[bytes.len()], &bytes));
        prop_assert_eq!(&(in_pieces.clone(), end.clone()), &whole);
        if damage.is_none() {
            let messages: Vec<ActivatorWord> = sent.into_iter().map(|(message, _)| message).collect();
            prop_assert_eq!((in_pieces, end), (messages, "closed".to_owned()));
        }
    }
}

#[tokio::test]
async fn messages_arrive_in_order_and_a_close_between_frames_is_an_end() {
    let (near, far) = connection().await;
    let (mut reader, _writer) = crate::accept::<PodWord, PodOrder>(near);
    let (far_reader, mut writer) = crate::accept::<PodOrder, PodWord>(far);
    let sent: Vec<PodWord> = (0..100).map(heartbeat).collect();
    for message in &sent {
        writer.send(message).await.unwrap();
    }
    drop((writer, far_reader));
    for message in sent {
        assert_eq!(reader.next().await.unwrap(), Some(message));
    }
    assert_eq!(reader.next().await.unwrap(), None);
}

/// TCP is one carrier of many: nothing of a link asks for a socket.
#[tokio::test]
async fn a_link_runs_over_any_stream_of_bytes() {
    // Less room than a message takes, so that both ends have to wait for each other.
    let (near, far) = tokio::io::duplex(16);
    let (mut reader, mut writer) = crate::accept::<PodWord, PodOrder>(crate::ByteStream::of(near));
    let (mut far_reader, mut far_writer) = crate::accept::<PodOrder, PodWord>(crate::ByteStream::of(far));
    let order = PodOrder::Settings(PodSettings { surge_threshold: Some(7), ..PodSettings::default() }.into());
    let word = PodWord::State { state: PodState::Unready, detail: "x".repeat(500) };
    let (sent, answered, obeyed, heard) =
        tokio::join!(writer.send(&order), far_writer.send(&word), far_reader.next(), reader.next());
    sent.unwrap();
    answered.unwrap();
    assert_eq!((obeyed.unwrap(), heard.unwrap()), (Some(order), Some(word)));
    drop((far_reader, far_writer));
    assert_eq!(reader.next().await.unwrap(), None);
}

/// What a dialler of another kind brings: the token still comes first, and a connection that comes too late
/// is given up.
#[tokio::test(start_paused = true)]
async fn a_link_is_dialled_by_whatever_dials() {
    #[derive(Debug)]
    struct Pipe(std::sync::Mutex<Option<tokio::io::DuplexStream>>);
    impl crate::Dial for Pipe {
        fn connect(
            &self,
            address: vocabulary::LinkAddress,
        ) -> futures_util::future::BoxFuture<'static, io::Result<crate::ByteStream>> {
            assert_eq!(address.socket.port(), 7);
            let stream = self.0.lock().unwrap().take();
            Box::pin(async {
                match stream {
                    Some(stream) => Ok(crate::ByteStream::of(stream)),
                    None => std::future::pending().await,
                }
            })
        }

        fn reach(
            &self,
            _: vocabulary::LinkAddress,
        ) -> futures_util::future::BoxFuture<'static, io::Result<()>> {
            unreachable!("a link that is dialled looks at nothing")
        }
    }
    let (near, mut far) = tokio::io::duplex(4096);
    let dialler = Pipe(Some(near).into());
    let address = vocabulary::LinkAddress {
        token: Some(LinkToken::new(*b"0123456789abcdef")),
        ..std::net::SocketAddr::from(([127, 0, 0, 1], 7)).into()
    };
    let (_reader, mut writer) = crate::dial_with::<PodWord, PodOrder>(&dialler, address).await.unwrap();
    writer.send(&PodOrder::Heartbeat).await.unwrap();
    let mut bytes = [0; 4 + 20];
    far.read_exact(&mut bytes).await.unwrap();
    assert_eq!(bytes, *framed(&[&[0x72, 16], b"0123456789abcdef".as_slice(), &[0x12, 0]].concat()));
    let late = crate::dial_with::<PodWord, PodOrder>(&dialler, address).await;
    assert!(matches!(late, Err(LinkError::ConnectTimeout)));
}

#[tokio::test]
async fn a_message_longer_than_a_frame_arrives_whole() {
    let (near, far) = connection().await;
    let (mut reader, _near_writer) = crate::accept::<ActivatorWord, PodOrder>(near);
    let (_far_reader, mut writer) = crate::accept::<PodOrder, ActivatorWord>(far);
    let loads: Vec<RevisionLoad> = (0..1000)
        .map(|index| RevisionLoad {
            revision: RevisionName::new("default", "service", &format!("revision-{index:05}")).unwrap(),
            load: Load { queued: index, ..Load::default() },
            oldest_wait: Duration::from_millis(5),
            callers: Vec::new(),
        })
        .collect();
    let hello = ActivatorWord::Hello(ActivatorHello {
        speaks: LinkVersion::CURRENT,
        activator: ReplicaName::new("a"),
        boot: BootId(1),
        current_second: 60,
        history: (0..60).map(|second| (second, loads.clone())).collect(),
        present: Vec::new(),
        routings: Vec::new(),
    });
    assert!(hello.encoded_len() > 2 * ActivatorWord::FRAME_BYTES_MAX);
    let sending = tokio::spawn(async move {
        writer.send(&hello).await.unwrap();
        (hello, writer)
    });
    let read = reader.next().await.unwrap();
    let (hello, _writer) = sending.await.unwrap();
    assert!(read == Some(hello), "what was read differs from what was sent");
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_link_after_ten_seconds() {
    let (mut reader, _writer, _far) = to_pod().await;
    let before = tokio::time::sleep(Duration::from_millis(9_999));
    tokio::select! {
        biased;
        end = reader.next() => panic!("{end:?} too early"),
        () = before => {}
    }
    // The dropped call above did not extend the time.
    let after = tokio::time::timeout(Duration::from_millis(2), reader.next()).await;
    assert!(matches!(after, Ok(Err(LinkError::Silent))), "{after:?}");
}

#[tokio::test(start_paused = true)]
#[expect(
    clippy::disallowed_methods,
    reason = "the clock of the test's runtime stands still but for its timers"
)]
async fn a_late_frame_is_said_once_and_silence_still_ends_the_link_after_ten_seconds() {
    let (near, far) = tokio::io::duplex(1024);
    let (mut reader, _writer): (Reader<PodWord>, Writer<PodOrder>) =
        crate::accept(crate::ByteStream::of(near));
    let (_, mut writer): (Reader<PodOrder>, Writer<PodWord>) = crate::accept(crate::ByteStream::of(far));
    for second in 0..2 {
        writer.send(&heartbeat(second)).await.unwrap();
        assert_eq!(reader.received().await.unwrap(), Reception::Message(heartbeat(second)));
        let heard = tokio::time::Instant::now();
        assert_eq!(reader.received().await.unwrap(), Reception::Late);
        // Timers are of a millisecond.
        let is_due = |after| (after..=after + Duration::from_millis(2)).contains(&heard.elapsed());
        assert!(is_due(LATE_AFTER), "{:?}", heard.elapsed());
        if second == 1 {
            assert!(matches!(reader.received().await, Err(LinkError::Silent)));
            assert!(is_due(SILENCE_MAX), "{:?}", heard.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_byte_a_second_is_silence() {
    let (mut reader, _writer, mut far) = to_pod().await;
    let drip: JoinHandle<TcpStream> = tokio::spawn(async move {
        for byte in framed(&[0x12; 100]) {
            if far.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        far
    });
    assert!(matches!(reader.next().await, Err(LinkError::Silent)));
    drip.abort();
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_a_link_up() {
    let (near, far) = connection().await;
    let (mut reader, _near_writer) = crate::accept::<PodWord, PodOrder>(near);
    let (_far_reader, mut writer) = crate::accept::<PodOrder, PodWord>(far);
    let beating = tokio::spawn(async move {
        for second in 0..60 {
            writer.idle().await;
            writer.send(&heartbeat(second)).await.unwrap();
        }
        writer
    });
    for second in 0..60 {
        assert_eq!(reader.next().await.unwrap(), Some(heartbeat(second)));
    }
    beating.await.unwrap();
}

#[tokio::test]
async fn a_frame_beyond_the_limit_is_refused_by_its_length_alone() {
    let (mut reader, _writer, mut far) = to_pod().await;
    far.write_all(&[0, 0, 0x10, 1]).await.unwrap();
    assert!(matches!(reader.next().await, Err(LinkError::TooLarge { max: 4096 })));
}

#[tokio::test]
async fn garbage_is_refused_with_the_reason() {
    for (payload, reason) in [
        (&b"GET / HTTP/1.1"[..], "not a message"),
        (&[][..], "pod_report.body is missing"),
        (&[0x1a, 2, 0x08, 77][..], "state.state is 77, which is no pod state"),
    ] {
        let (mut reader, _writer, mut far) = to_pod().await;
        far.write_all(&framed(payload)).await.unwrap();
        let error = reader.next().await.unwrap_err();
        assert!(matches!(error, LinkError::Garbage(_)) && error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_queue_proxy_may_not_send_fragments() {
    let (mut reader, _writer, mut far) = to_pod().await;
    far.write_all(&framed(&[0x7a, 1, 9])).await.unwrap();
    assert!(matches!(reader.next().await, Err(LinkError::TooLarge { max: 4096 })));
}

#[tokio::test]
async fn endless_fragments_are_cut_off() {
    let (near, mut far) = connection().await;
    let (mut reader, writer) = crate::accept::<ActivatorWord, PodOrder>(near);
    let flood = tokio::spawn(async move {
        let frame = framed(&wire::Fragment { part: vec![0; 1 << 19], last: false }.encode());
        while far.write_all(&frame).await.is_ok() {}
    });
    assert!(matches!(reader.next().await, Err(LinkError::TooLarge { .. })));
    drop((reader, writer));
    flood.await.unwrap();
}

#[tokio::test]
async fn a_close_within_a_frame_is_a_break() {
    let (mut reader, _writer, mut far) = to_pod().await;
    far.write_all(&[0, 0, 0, 5, 0x12]).await.unwrap();
    drop(far);
    assert!(matches!(reader.next().await, Err(LinkError::Broken(_))));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_cut_off() {
    let (near, _far) = connection().await;
    let (_reader, mut writer) = crate::accept::<PodOrder, PodWord>(near);
    let hello = PodWord::State { state: PodState::Ready, detail: "x".repeat(512) };
    let reason = loop {
        if let Err(reason) = writer.send(&hello).await {
            break reason;
        }
    };
    assert!(matches!(reason, LinkError::Stalled), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_send_tears_no_frame() {
    let (near, mut far) = connection().await;
    let (reader, mut writer) = crate::accept::<PodOrder, PodWord>(near);
    let filler = PodWord::State { state: PodState::Ready, detail: "x".repeat(512) };
    while tokio::time::timeout(Duration::from_secs(1), writer.send(&filler)).await.is_ok() {}
    let last = PodWord::Present(PresentCount { in_flight: 7, waiting: 7 });
    let sending = tokio::spawn(async move {
        writer.send(&last).await.unwrap();
        drop((writer, reader));
    });
    let mut bytes = Vec::new();
    far.read_to_end(&mut bytes).await.unwrap();
    sending.await.unwrap();
    let mut rest = &bytes[..];
    let mut messages = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (payload, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        messages.push(PodWord::decode(payload).unwrap());
        rest = after;
    }
    let (end, fillers) = messages.split_last().unwrap();
    assert_eq!(*end, PodWord::Present(PresentCount { in_flight: 7, waiting: 7 }));
    assert!(fillers.iter().all(|message| *message == filler));
}

#[tokio::test]
async fn a_message_beyond_its_limit_is_refused_before_it_is_sent() {
    let (near, _far) = connection().await;
    let (_reader, mut writer) = crate::accept::<PodWord, PodOrder>(near);
    let keys = (0..100).map(|_| vocabulary::HopKey::new("k".repeat(100))).collect();
    let order = PodOrder::Settings(PodSettings { hop_keys: keys, ..PodSettings::default() }.into());
    assert!(matches!(writer.send(&order).await, Err(LinkError::TooLarge { max: 4096 })));
}

#[tokio::test]
async fn a_refused_connection_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let refused = crate::dial::<PodWord, PodOrder>(address.into()).await;
    assert!(matches!(refused, Err(LinkError::Connect(_))));
}

/// The token is a field of the first message: what every earlier version reads, and skips.
#[tokio::test]
async fn the_first_frame_is_the_message_with_the_token() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let token = LinkToken::new(*b"0123456789abcdef");
    let address = vocabulary::LinkAddress { token: Some(token), ..listener.local_addr().unwrap().into() };
    let (_reader, mut writer) = crate::dial::<PodWord, PodOrder>(address).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    writer.send(&PodOrder::Heartbeat).await.unwrap();
    writer.send(&PodOrder::Heartbeat).await.unwrap();
    let mut bytes = [0; 4 + 20 + 4 + 2];
    far.read_exact(&mut bytes).await.unwrap();
    let first = [&[0x72, 16], b"0123456789abcdef".as_slice(), &[0x12, 0]].concat();
    assert_eq!(bytes, *[framed(&first), framed(&[0x12, 0])].concat());
    assert_eq!(PodOrder::decode(&first).unwrap(), PodOrder::Heartbeat);
}
