//! What stands half, and what is too large.

use super::server::World;
use super::*;

/// A head of many frames, which is half here.
fn half_head(stream: u32) -> Vec<u8> {
    frame(FrameKind::Headers, END_STREAM, stream, &block(&REQUEST))
}

/// How long a server waits for what stands half.
const HEAD_TIME: Duration = Duration::from_secs(30);

async fn next_after(peer: &mut PeerRole, time: Duration) -> Option<ReceivedFrame> {
    tokio::time::timeout(time, peer.next_of_note()).await.ok()
}

/// The same where the server may also ask whether its client is there.
async fn next_but_pings(peer: &mut PeerRole, time: Duration) -> Option<ReceivedFrame> {
    loop {
        match next_after(peer, time).await {
            Some(ReceivedFrame::Ping { is_ack: false }) => {}
            got => return got,
        }
    }
}

#[test]
fn a_head_that_does_not_end_in_time_ends_its_connection() {
    run_paused(async {
        let first_byte = &half_head(3)[..1];
        let continuation = frame(FrameKind::Continuation, 0, 3, &[]);
        for (half, again) in [
            (half_head(3), Vec::new()),
            (half_head(3)[..20].to_vec(), Vec::new()),
            (first_byte.to_vec(), Vec::new()),
            (half_head(3), continuation),
        ] {
            let mut world = World::start().await;
            world.get(1, "/never").await;
            world.peer.settle().await;
            world.peer.write(&half).await;
            if !again.is_empty() {
                // More of it does not make it younger.
                assert_eq!(next_after(&mut world.peer, HEAD_TIME / 2).await, None);
                world.peer.write(&again).await;
            }
            let rest = if again.is_empty() { HEAD_TIME } else { HEAD_TIME / 2 };
            let early = next_after(&mut world.peer, rest.saturating_sub(Duration::from_secs(1))).await;
            assert_eq!(early, None, "{} bytes", half.len());
            let code = ErrorCode::ENHANCE_YOUR_CALM;
            let end = next_but_pings(&mut world.peer, Duration::from_secs(3)).await;
            assert_eq!(end, Some(ReceivedFrame::GoAway { last: 1, code }), "{} bytes", half.len());
        }
    });
}

#[test]
fn a_data_frame_may_be_slow_and_not_stand_still() {
    run_paused(async {
        let mut world = World::start().await;
        world.peer.write(&request(1, 0, &[])).await;
        let data = frame(FrameKind::Data, 0, 1, &[b'x'; 100]);
        world.peer.write(&data[..10]).await;
        for at in 10..20 {
            while let Some(got) = next_but_pings(&mut world.peer, HEAD_TIME * 2 / 3).await {
                assert!(matches!(got, ReceivedFrame::Head { .. } | ReceivedFrame::Data { .. }), "{got:?}");
            }
            world.peer.write(&data[at..=at]).await;
        }
        let end = loop {
            match next_but_pings(&mut world.peer, HEAD_TIME * 2).await {
                Some(ReceivedFrame::Data { .. }) => {}
                end => break end,
            }
        };
        assert_eq!(end, Some(ReceivedFrame::GoAway { last: 1, code: ErrorCode::ENHANCE_YOUR_CALM }));
    });
}

/// Streams of many clients share the connection of one of our own hops.
#[test]
fn a_hop_is_waited_for() {
    run_paused(async {
        let mut world = World::start().await;
        world.get(1, "/hop").await;
        assert!(matches!(world.peer.next_of_note().await, ReceivedFrame::Head { stream: 1, .. }));
        world.get(3, "/never").await;
        world.peer.settle().await;
        world.peer.write(&half_head(5)).await;
        assert_eq!(next_after(&mut world.peer, HEAD_TIME.saturating_sub(Duration::from_secs(1))).await, None);
        let asked = next_after(&mut world.peer, HEAD_TIME).await;
        assert_eq!(asked, Some(ReceivedFrame::Ping { is_ack: false }), "as any that is silent");
    });
}

#[test]
fn a_head_that_is_too_large_is_answered_and_the_connection_goes_on() {
    run(async {
        let mut world = World::start().await;
        // 20,000 bytes are this server's limit.
        for (stream, parts) in [(1, 2), (3, 6)] {
            world.peer.write(&half_head(stream)).await;
            for part in 1..=parts {
                let end = if part == parts { END_HEADERS } else { 0 };
                let field = block(&[("a", "b"), ("cookie", &"c".repeat(120))]).repeat(100);
                world.peer.frame(FrameKind::Continuation, end, stream, &field).await;
            }
            let ReceivedFrame::Head { stream: answered, lines, .. } = world.peer.next_of_note().await else {
                panic!("a head")
            };
            assert_eq!((answered, &lines[0][..]), (stream, ":status: 431"));
            let error = lines.iter().find(|line| line.starts_with("ebb-error")).expect("it says why");
            assert!(error.contains("larger than 20000 bytes"), "{error}");
            while !matches!(world.peer.next_of_note().await, ReceivedFrame::Data { is_end: true, .. }) {}
        }
        world.get(5, "/").await;
        assert!(matches!(world.peer.next_of_note().await, ReceivedFrame::Head { stream: 5, .. }));
        assert_eq!(*world.seen.borrow(), ["/"]);
    });
}
