//! The attacker: this program, started again by itself with an order in its environment.

use std::env;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tests::bench::clock;
use tests::bench::process::Process;

use super::attacks::{ATTACKS, Attack};

/// The environment variable that holds the attacker's order.
const ORDER: &str = "ABUSE_ORDER";
/// How long an attacker whose connection was ended waits before the next.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a read or write may block before the attacker looks at the time.
const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    attack: String,
    ports: Vec<u16>,
    milliseconds: u64,
}

/// What an attacker did until it was stopped.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Deeds {
    /// The number of connections that it made.
    pub(crate) opened: u64,
    /// How many of them were ended before their time.
    pub(crate) ended: u64,
    /// Bytes it got rid of.
    pub(crate) bytes: u64,
}

/// The state of an attack while it is carried out.
pub(crate) struct Attacker {
    pub(crate) connections: u32,
    ports: Vec<u16>,
    end: Duration,
    opened: AtomicU64,
    ended: AtomicU64,
    bytes: AtomicU64,
}

/// Does what the environment orders, if it orders anything, and says on standard output what that was.
pub(crate) fn carry_out_order() -> anyhow::Result<bool> {
    let Ok(order) = env::var(ORDER) else { return Ok(false) };
    let order: Order = serde_json::from_str(&order).context("reading the order")?;
    let attack = ATTACKS.iter().find(|attack| attack.name == order.attack);
    let Some(attack) = attack else { bail!("nobody knows the attack {:?}", order.attack) };
    let attacker = Attacker {
        connections: attack.connections,
        ports: order.ports,
        end: clock::now() + Duration::from_millis(order.milliseconds),
        opened: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    (attack.carry_out)(&attacker);
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let deeds = Deeds {
        opened: count(&attacker.opened),
        ended: count(&attacker.ended),
        bytes: count(&attacker.bytes),
    };
    println!("{}", serde_json::to_string(&deeds)?);
    Ok(true)
}

/// Starts an attacker with the lowest priority on these cores. Its first line says what it did, and comes
/// when it is done.
pub(crate) fn start(
    attack: &Attack,
    ports: Vec<u16>,
    time: Duration,
    folder: &Path,
    cores: &[usize],
) -> anyhow::Result<Process> {
    let milliseconds = u64::try_from(time.as_millis()).context("an attack takes seconds")?;
    let order = Order { attack: attack.name.to_owned(), ports, milliseconds };
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(env::current_exe()?).env(ORDER, serde_json::to_string(&order)?);
    Process::start(command, "attacker", folder, cores)
}

impl Attacker {
    pub(crate) fn is_over(&self) -> bool {
        clock::now() >= self.end
    }

    /// Waits for the end of its time.
    pub(crate) fn wait(&self) {
        thread::sleep(self.end.saturating_sub(clock::now()));
    }

    /// A connection to one of the ports, each in turn.
    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let number = usize::try_from(self.opened.fetch_add(1, Ordering::Relaxed)).unwrap_or(0);
        let port = self.ports[number % self.ports.len()];
        let stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Connections beside one another, each until its session ends or fails; then the next, as long as there
    /// is time.
    pub(crate) fn on_each_connection(&self, session: impl Fn(TcpStream) -> io::Result<()> + Sync) {
        thread::scope(|scope| {
            for _ in 0..self.connections {
                scope.spawn(|| {
                    while !self.is_over() {
                        if self.connect().and_then(&session).is_err() && !self.is_over() {
                            self.note_ended();
                        }
                        thread::sleep(PAUSE);
                    }
                });
            }
        });
    }

    pub(crate) fn note_ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes everything, unless the time is over or the connection ended.
    pub(crate) fn write(&self, mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
        use io::Write;
        while !bytes.is_empty() {
            if self.is_over() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match stream.write(bytes) {
                Ok(written) => {
                    self.bytes.fetch_add(written as u64, Ordering::Relaxed);
                    bytes = &bytes[written..];
                }
                Err(error) if is_patience(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads something; nothing at the end of the connection or of the time.
    pub(crate) fn read(&self, mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        use io::Read;
        while !self.is_over() {
            match stream.read(buffer) {
                Err(error) if is_patience(&error) => {}
                done => return done,
            }
        }
        Ok(0)
    }
}

fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
