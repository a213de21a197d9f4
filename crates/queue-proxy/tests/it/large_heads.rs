//! Large heads and half ones, in a pod of 128 MiB: the program lives, and serves others meanwhile.

use std::cell::Cell;
use std::future::pending;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use vocabulary::QueueProxyAnnouncement;

use crate::world::{ask, environment, run};

const MEMORY_MIB: u64 = 128;

/// What the process may take where no group can be made on this machine. The budget for heads and bodies is
/// 256 MiB then and not 64, and 16 connections that read no answers hold about 100 MiB of that.
const UNLIMITED_MIB: u64 = 192;

/// A control group with a limit of memory; removed at the end.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// `None` where this user may not make one.
    fn new(name: &str) -> Option<Self> {
        let name = format!("ebb-test-{name}-{}", std::process::id());
        [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
            .into_iter()
            .find_map(|(root, limit)| {
                let group = Path::new(root).join(&name);
                std::fs::create_dir(&group).ok()?;
                let group = Self(group);
                std::fs::write(group.0.join(limit), (MEMORY_MIB << 20).to_string()).ok()?;
                Some(group)
            })
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Its processes have ended; what the kernel still holds of it goes with a later one.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The program, in a group of its own where there may be one.
struct LimitedProxy {
    child: Child,
    ports: QueueProxyAnnouncement,
    group: Option<MemoryGroup>,
}

impl LimitedProxy {
    fn start(name: &str, app: u16) -> Self {
        let group = MemoryGroup::new(name);
        let program = env!("CARGO_BIN_EXE_ebb-queue-proxy");
        let mut command = match &group {
            Some(group) => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", "echo $$ > \"$1/cgroup.procs\" && exec \"$0\"", program]).arg(&group.0);
                command
            }
            None => Command::new(program),
        };
        let mut child = command
            .env_clear()
            .envs(environment(app, &[]))
            .env("EBB_ANNOUNCE", "stdout")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
        Self { child, ports: serde_json::from_str(&line).expect("one line of JSON"), group }
    }

    /// The most that it ever took.
    fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("every process has one");
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes / 1024
    }

    /// Serves another client, and has taken no more than it may.
    async fn assert_well(&mut self, row: &str) {
        let served = ask(self.ports.requests, "GET", "/", &[], b"");
        let answer = tokio::time::timeout(Duration::from_secs(10), served).await.expect("in time");
        assert_eq!(answer.status, 200, "{row}");
        assert!(self.child.try_wait().expect("ours").is_none(), "{row}: it has ended");
        let (peak, most) = (self.peak_mib(), if self.group.is_some() { MEMORY_MIB } else { UNLIMITED_MIB });
        assert!(peak < most, "{row}: {peak} MiB");
        println!("{row}: {peak} MiB, group: {}", self.group.is_some());
    }
}

impl Drop for LimitedProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How large the head of the app's answer to `/large` is.
const LARGE_ANSWER_BYTES: usize = 120_000;

/// The port of an app that speaks HTTP/1.1, and answers every request but one for `/never`.
async fn app() -> u16 {
    counting_app(Rc::default()).await
}

/// The same, which counts the answers to `/large`.
async fn counting_app(answered: Rc<Cell<u32>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(answer_unless_never(stream, Rc::clone(&answered)));
        }
    });
    port
}

async fn answer_unless_never(mut stream: TcpStream, answered: Rc<Cell<u32>>) {
    let mut begin = vec![0; 64 * 1024];
    let Ok(read @ 1..) = stream.read(&mut begin).await else { return };
    if begin[..read].starts_with(b"GET / ") {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved";
        // A client that has gone hears nothing.
        let _ = stream.write_all(answer).await;
    } else if begin[..read].starts_with(b"POST /large ") {
        let cookie = "c".repeat(LARGE_ANSWER_BYTES);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\nSet-Cookie: {cookie}");
        // As above.
        let _ = stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await;
        answered.set(answered.get() + 1);
    } else if !begin[..read].starts_with(b"PRI ") {
        while stream.read(&mut begin).await.is_ok_and(|read| read > 0) {}
    }
}

/// One frame of HTTP/2, as it is written.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request for this path with headers of so many bytes, in as many frames as they take.
fn request(path: &str, stream: u32, bytes: usize) -> Vec<u8> {
    let mut fields = vec![0x83, 0x86];
    let value = vec![b'c'; 4_000];
    for (name, value) in [(&b":path"[..], path.as_bytes()), (b":authority", b"h")]
        .into_iter()
        .chain(std::iter::repeat_n((&b"cookie"[..], &value[..]), bytes / 4_000))
    {
        fields.push(0);
        for text in [name, value] {
            if let Ok(length @ ..127) = u8::try_from(text.len()) {
                fields.push(length);
            } else {
                let rest = text.len() - 127;
                let low = u8::try_from(rest & 0x7f).expect("seven bits");
                fields.extend([127, 0x80 | low, u8::try_from(rest >> 7).expect("seven bits")]);
            }
            fields.extend_from_slice(text);
        }
    }
    let parts: Vec<&[u8]> = fields.chunks(16_384).collect();
    let mut out = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let end = if number + 1 == parts.len() { 4 } else { 0 };
        // HEADERS that end their stream, then CONTINUATION.
        out.extend(if number == 0 { frame(1, 1 | end, stream, part) } else { frame(9, end, stream, part) });
    }
    out
}

/// Opens so many streams with heads of so many bytes, and reads whatever is answered.
async fn flood(port: u16, streams: u32, bytes: usize) -> OwnedWriteHalf {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let (mut reader, mut writer) = stream.into_split();
    tokio::task::spawn_local(async move {
        let mut unwanted = vec![0; 64 * 1024];
        while reader.read(&mut unwanted).await.is_ok_and(|read| read > 0) {}
        pending::<()>().await;
        drop(reader);
    });
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[])].concat();
    writer.write_all(&preface).await.expect("open");
    for number in 0..streams {
        // A connection may end, which is no end of the program.
        if writer.write_all(&request("/never", 2 * number + 1, bytes)).await.is_err() {
            break;
        }
    }
    writer
}

#[test]
fn large_heads_on_eight_connections_leave_the_program_alive() {
    run(async {
        let port = app().await;
        let mut proxy = LimitedProxy::start("streams", port);
        let port = proxy.ports.requests;
        for bytes in [120_000, 250_000] {
            let floods = (0..8).map(|_| flood(port, 240, bytes));
            let held = futures_util::future::join_all(floods).await;
            proxy.assert_well(&format!("8 connections with heads of {bytes} bytes")).await;
            drop(held);
        }
    });
}

#[test]
fn half_heads_on_eight_hundred_connections_leave_the_program_alive() {
    run(async {
        let port = app().await;
        let mut proxy = LimitedProxy::start("halves", port);
        for bytes in [120_000, 250_000] {
            let head = format!("GET /never HTTP/1.1\r\nHost: h\r\nCookie: {}", "c".repeat(bytes));
            let mut halves = Vec::new();
            for _ in 0..800 {
                let mut stream = TcpStream::connect(("127.0.0.1", proxy.ports.requests)).await.expect("open");
                // One that was refused is closed.
                let _ = stream.write_all(head.as_bytes()).await;
                halves.push(stream);
            }
            proxy.assert_well(&format!("800 half heads of {bytes} bytes")).await;
        }
    });
}

/// Opens so many streams whose answers have large heads, and reads none of them.
async fn ask_and_read_nothing(port: u16, streams: u32) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[])].concat();
    let requests = (0..streams).flat_map(|number| request("/large", 2 * number + 1, 0));
    stream.write_all(&preface.into_iter().chain(requests).collect::<Vec<u8>>()).await.expect("open");
    stream
}

#[test]
fn unread_answers_with_large_heads_leave_the_program_alive() {
    run(async {
        let answered = Rc::new(Cell::new(0));
        let port = counting_app(Rc::clone(&answered)).await;
        let mut proxy = LimitedProxy::start("answers", port);
        let mut held = Vec::new();
        for connections in 1..=16 {
            held.push(ask_and_read_nothing(proxy.ports.requests, 240).await);
            let all = async {
                while answered.get() < 240 * connections {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), all).await.expect("the app is asked");
        }
        proxy.assert_well("16 connections that read none of 240 answers of 120,000 bytes").await;
    });
}
