//! Peers that are gone without a word. One is made by a filter that keeps from its socket all that comes, so
//! that its kernel neither acknowledges nor refuses anything: what a machine does that has lost its power.

use socket2::{SockFilter, SockRef};

use super::*;
use crate::body::upgrade::{ClientUpgrade, relay};
use crate::socket::stream::ReadAheadStream;
use crate::timers::Timers;
use bytes::Bytes;
use runtime::Clock;
use vocabulary::RequestTimeouts;

const SILENCE: Duration = Duration::from_secs(2);

/// From now on nothing reaches it.
pub(super) fn die(stream: &TcpStream) {
    const RETURN: u16 = 0x06;
    SockRef::from(stream)
        .attach_filter(&[SockFilter::new(RETURN, 0, 0, 0)])
        .expect("the kernel knows filters");
}

impl Server {
    fn short_of_patience() -> Self {
        Self::with(ROOM, ServerLimits { silence: SILENCE, ..ServerLimits::default() })
    }

    /// A client that has begun to read a large answer.
    async fn reading(&self) -> TcpStream {
        let mut stream = self.accepted().await;
        stream.write_all(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("it is answered"));
        }
        stream
    }
}

/// Waits until the kernel has no room for more from the other end.
async fn until_full(stream: &TcpStream) {
    let mut bytes = vec![0; 16 << 20];
    let mut seen = 0;
    loop {
        let now = stream.peek(&mut bytes).await.expect("open");
        if now == seen {
            return;
        }
        seen = now;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn a_dead_client_with_bytes_on_their_way_to_it_goes_and_one_that_only_does_not_read_stays() {
    run(async {
        let server = Server::short_of_patience();
        let mut paused = server.reading().await;
        until_full(&paused).await;
        // In the midst of an answer, before there is room for more of it, and with an answer that is whole as
        // far as the server knows.
        let in_flight = server.reading().await;
        die(&in_flight);
        let full = server.reading().await;
        until_full(&full).await;
        die(&full);
        let mut held = server.accepted().await;
        held.write_all(b"GET /held HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        until("it is held", || server.service.seen.borrow().iter().any(|path| path == "/held")).await;
        die(&held);
        server.service.gate.notify_waiters();
        until("it is answered", || server.drain.resting() == 1).await;
        assert_eq!(server.drain.connections(), 4);
        until("the dead are gone", || server.drain.connections() == 1).await;
        // It has waited longer than any of them.
        let mut rest = vec![0; LARGE];
        paused.read_exact(&mut rest).await.expect("it is served to the end");
        assert!(ask(&mut paused, "/next").await.ends_with("</next>"));
    });
}

#[test]
fn an_upgraded_stream_ends_with_either_of_its_ends() {
    run(async {
        let tried = ["client", "app"].map(|dead_end| async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("bound");
            let pair = async || {
                let far = TcpStream::connect(address).await.expect("it listens");
                (listener.accept().await.expect("open").0, far)
            };
            let ((client, mut far_client), (app, mut far_app)) = (pair().await, pair().await);
            let drain = Drain::new();
            let (switched, upgrade) = ClientUpgrade::offer();
            let timers = Timers::start(RequestTimeouts::default(), Clock::start());
            relay((upgrade, ReadAheadStream::new(app, Bytes::new())), timers, (), &drain);
            switched.switch(ReadAheadStream::new(client, Bytes::new()));
            far_client.write_all(b"ping").await.expect("open");
            assert_eq!(far_app.read_u32().await.expect("carried"), u32::from_be_bytes(*b"ping"));
            let (dead, living) =
                if dead_end == "client" { (far_client, &mut far_app) } else { (far_app, &mut far_client) };
            die(&dead);
            living.write_all(b"news").await.expect("open");
            until_silent(&drain, dead_end).await;
        });
        futures_util::future::join_all(tried).await;
    });
}

/// Looks as a server does, until no upgraded stream is left.
async fn until_silent(drain: &Drain, dead_end: &str) {
    let patience = Duration::from_secs(30);
    let looking = async {
        while drain.upgraded() > 0 {
            drain.end_silent(SILENCE).await;
            tokio::time::sleep(SILENCE / LOOKS_PER_SILENCE).await;
        }
    };
    tokio::time::timeout(patience, looking).await.unwrap_or_else(|_| panic!("the {dead_end} is still there"));
}
