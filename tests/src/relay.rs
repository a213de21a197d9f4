//! A TCP relay that a test can cut or stall, between an autoscaler and whom it links, and the dialler that
//! leads links through it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use link::{ByteStream, Dial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use vocabulary::LinkAddress;

/// Names the relay to `harnessed-ebb`.
pub const VARIABLE: &str = "TEST_LINK_RELAY";

/// What the relay does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// The relay passes bytes on in both directions.
    Passing,
    /// Keeps connections open and passes nothing.
    Stalled,
    /// Closes connections and accepts none.
    Cut,
}

/// One listening address that leads to wherever each connection says: its first line is `HOST:PORT`.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    mood: Arc<watch::Sender<Mood>>,
    carried: Arc<AtomicUsize>,
}

impl Relay {
    /// Starts relaying on a port of its own.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mood = Arc::new(watch::Sender::new(Mood::Passing));
        let moods = Arc::clone(&mood);
        let carried = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&carried);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(relay(stream, moods.subscribe()));
            }
        });
        Ok(Self { address, mood, carried })
    }

    /// The address at which the relay listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections came to it.
    pub fn carried(&self) -> usize {
        self.carried.load(Ordering::Relaxed)
    }

    /// Changes what happens to bytes from now on.
    pub fn set(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }
}

/// Dials through a relay, which is told the address in a first line.
#[derive(Debug)]
pub struct RelayDialler {
    /// The address at which the relay listens.
    pub relay: SocketAddr,
}

impl Dial for RelayDialler {
    fn connect(&self, address: LinkAddress) -> BoxFuture<'static, io::Result<ByteStream>> {
        let relay = self.relay;
        Box::pin(async move {
            let mut stream = TcpStream::connect(relay).await?;
            stream.write_all(format!("{}\n", address.socket).as_bytes()).await?;
            Ok(stream.into())
        })
    }

    /// The relay takes whatever it carries.
    fn reach(&self, _: LinkAddress) -> BoxFuture<'static, io::Result<()>> {
        let relay = self.relay;
        Box::pin(async move { TcpStream::connect(relay).await.map(drop) })
    }
}

async fn relay(mut near: TcpStream, mut mood: watch::Receiver<Mood>) {
    if *mood.borrow() == Mood::Cut {
        return;
    }
    let Some(target) = read_target(&mut near).await else { return };
    let Ok(far) = TcpStream::connect(target).await else { return };
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    let onward = pass(near_read, far_write, mood.clone());
    let back = pass(far_read, near_write, mood.clone());
    // One direction that ends cancels the other, as a connection that is cut does.
    tokio::select! {
        () = onward => {}
        () = back => {}
        _ = mood.wait_for(|mood| *mood == Mood::Cut) => {}
    }
}

async fn read_target(near: &mut TcpStream) -> Option<SocketAddr> {
    let mut line = Vec::new();
    loop {
        match near.read_u8().await.ok()? {
            b'\n' => break,
            byte if line.len() < 64 => line.push(byte),
            _ => return None,
        }
    }
    String::from_utf8(line).ok()?.parse().ok()
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut mood: watch::Receiver<Mood>,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
        if mood.wait_for(|mood| *mood != Mood::Stalled).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
