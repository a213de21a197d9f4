//! The app behind the benchmarks: one thread that answers at once and costs next to nothing, so that what is
//! measured is the proxy before it.
//!
//! It speaks HTTP/1.1 without a library, as far as proxies use it (a Content-Length, no pipelining), and
//! HTTP/2 through hyper.
//!
//! | Request | Answer |
//! |---|---|
//! | `/bytes/N` | N bytes |
//! | `/hold/MS` | 12 bytes after so long |
//! | `/work/MS` | 12 bytes, after so much work of a core |
//! | `/held` | how many `/hold` are under way |
//! | `/served` | how many requests were answered |
//! | `/times` | when this process began, listened, and got its first byte, in nanoseconds of the machine's clock |
//! | `/unread/MS`, `/bytewise`, `/interims` | nothing good, see [`unkind`] |
//! | anything else | 12 bytes, after the request's body |
//!
//! With `--start-work MS` it keeps a core busy for so long before it listens, as an interpreter does that
//! loads a framework. With `--prior-knowledge` it speaks HTTP/2, and nothing else, on `$PORT`.

mod unkind;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use tests::bench::clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::LocalSet;

const SMALL: usize = 12;
/// The longest head that is read: proxies let 128 KiB through.
const HEAD_MAX: usize = 256 * 1024;
/// What a connection has room for at first.
const BUFFER: usize = 64 * 1024;
/// The largest list of headers over HTTP/2, as large as over HTTP/1.1.
const HEADER_LIST_MAX: u32 = 256 * 1024;
const BACKLOG: u32 = 4096;

fn main() -> anyhow::Result<()> {
    let began = clock::now();
    if let Some(milliseconds) = number("--start-work")? {
        work(milliseconds);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(began))
}

/// Keeps a core busy for so many milliseconds.
fn work(milliseconds: u16) {
    let enough = clock::worked() + Duration::from_millis(milliseconds.into());
    while clock::worked() < enough {}
}

/// The number after an option: a port (without options, `$PORT` for HTTP/1.1, as an app in a pod is told), or
/// milliseconds.
fn number(option: &str) -> anyhow::Result<Option<u16>> {
    let mut arguments = std::env::args().skip_while(|argument| argument != option).skip(1);
    arguments.next().map(|number| number.parse().with_context(|| format!("{option} {number}"))).transpose()
}

async fn serve(began: Duration) -> anyhow::Result<()> {
    let http1 = match (number("--http1")?, std::env::var("PORT")) {
        (Some(port), _) => port,
        (None, Ok(port)) => port.parse().context("PORT")?,
        (None, Err(_)) => bail!("--http1 PORT (and, if wanted, --h2c PORT), or $PORT"),
    };
    let http1 = listen(http1)?;
    let app = Rc::new(App {
        began,
        listening: clock::now(),
        first_byte: Cell::new(None),
        held: Cell::new(0),
        served: Cell::new(0),
        answers: RefCell::default(),
    });
    let mut ports = serde_json::json!({ "http1": http1.local_addr()?.port() });
    if let Some(port) = number("--h2c")? {
        let h2c = listen(port)?;
        ports["h2c"] = h2c.local_addr()?.port().into();
        tokio::task::spawn_local(accept_h2c(h2c, Rc::clone(&app)));
    }
    println!("{ports}");
    if std::env::args().any(|argument| argument == "--prior-knowledge") {
        accept_h2c(http1, app).await;
        bail!("the port cannot be listened on");
    }
    loop {
        let (stream, _) = http1.accept().await?;
        let app = Rc::clone(&app);
        tokio::task::spawn_local(async move {
            // A client that goes away mid-request is its own affair.
            let _ = app.http1(stream).await;
        });
    }
}

fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    Ok(socket.listen(BACKLOG)?)
}

struct App {
    began: Duration,
    listening: Duration,
    first_byte: Cell<Option<Duration>>,
    held: Cell<usize>,
    served: Cell<u64>,
    /// Whole HTTP/1.1 responses by the size of their body.
    answers: RefCell<HashMap<usize, Bytes>>,
}

/// What a request asks for, apart from its body.
struct Head {
    length: usize,
    path: String,
    body: usize,
    /// Whether the client asks for the end of the connection after the answer.
    is_last: bool,
}

impl App {
    async fn http1(&self, mut stream: TcpStream) -> anyhow::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = vec![0; BUFFER];
        let mut filled = 0;
        loop {
            let Some(head) = head(&buffer[..filled])? else {
                if filled == buffer.len() {
                    buffer.resize(2 * filled, 0);
                }
                match stream.read(&mut buffer[filled..]).await? {
                    0 => return Ok(()),
                    read => filled += read,
                }
                if self.first_byte.get().is_none() {
                    self.first_byte.set(Some(clock::now()));
                }
                continue;
            };
            if let Some(unkind) = unkind::Way::of(&head.path) {
                return unkind.go(&mut stream).await;
            }
            let here = (filled - head.length).min(head.body);
            let mut missing = head.body - here;
            buffer.copy_within(head.length + here..filled, 0);
            filled -= head.length + here;
            while missing > 0 {
                // Nothing can be behind a body that has not arrived.
                let room = buffer.len().min(missing);
                match stream.read(&mut buffer[..room]).await? {
                    0 => return Ok(()),
                    read => missing -= read,
                }
            }
            let answer = self.answer(&head.path).await;
            stream.write_all(&answer).await?;
            self.served.set(self.served.get() + 1);
            if head.is_last {
                return Ok(());
            }
        }
    }

    /// The bytes of a whole HTTP/1.1 response for this path.
    async fn answer(&self, path: &str) -> Bytes {
        if let Some(size) = path.strip_prefix("/bytes/").and_then(|size| size.parse().ok()) {
            return self.prepared(size);
        }
        match self.text(path).await {
            Some(text) => whole(text.as_bytes()),
            None => self.prepared(SMALL),
        }
    }

    fn prepared(&self, size: usize) -> Bytes {
        self.answers.borrow_mut().entry(size).or_insert_with(|| whole(&vec![b'x'; size])).clone()
    }

    /// The body for paths whose answer differs from the usual one.
    async fn text(&self, path: &str) -> Option<String> {
        if let Some(time) = path.strip_prefix("/hold/").and_then(|time| time.parse().ok()) {
            self.held.set(self.held.get() + 1);
            tokio::time::sleep(Duration::from_millis(time)).await;
            self.held.set(self.held.get() - 1);
            return None;
        }
        if let Some(time) = path.strip_prefix("/work/").and_then(|time| time.parse().ok()) {
            work(time);
            return None;
        }
        match path {
            "/held" => Some(self.held.get().to_string()),
            "/served" => Some(self.served.get().to_string()),
            "/times" => Some(self.times()),
            _ => None,
        }
    }

    fn times(&self) -> String {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        serde_json::json!({
            "began": nanoseconds(self.began),
            "listening": nanoseconds(self.listening),
            "first_byte": nanoseconds(self.first_byte.get().unwrap_or_default()),
        })
        .to_string()
    }

    async fn h2c(&self, request: http::Request<Incoming>) -> http::Response<Full<Bytes>> {
        let (head, mut body) = request.into_parts();
        if let Some(unkind) = unkind::Way::of(head.uri.path()) {
            unkind.keep(body).await;
            return http::Response::new(Full::default());
        }
        // What arrives is not counted, only taken.
        while let Some(Ok(_frame)) = body.frame().await {}
        let path = head.uri.path();
        let size = path.strip_prefix("/bytes/").and_then(|size| size.parse().ok());
        let bytes = match (size, self.text(path).await) {
            (None, Some(text)) => text.into(),
            (size, _) => {
                let size = size.unwrap_or(SMALL);
                let whole = self.prepared(size);
                whole.slice(whole.len() - size..)
            }
        };
        self.served.set(self.served.get() + 1);
        http::Response::new(Full::new(bytes))
    }
}

async fn accept_h2c(listener: TcpListener, app: Rc<App>) {
    while let Ok((stream, _)) = listener.accept().await {
        // Without it only latency is lost.
        let _ = stream.set_nodelay(true);
        let app = Rc::clone(&app);
        tokio::task::spawn_local(async move {
            let service = hyper::service::service_fn(move |request| {
                let app = Rc::clone(&app);
                async move { Ok::<_, Infallible>(app.h2c(request).await) }
            });
            let mut builder = hyper::server::conn::http2::Builder::new(Local);
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(2048)
                .max_header_list_size(HEADER_LIST_MAX);
            // A client that goes away mid-request is its own affair.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Runs hyper's tasks on this thread.
#[derive(Clone, Copy)]
struct Local;

impl<Task: Future<Output = ()> + 'static> hyper::rt::Executor<Task> for Local {
    fn execute(&self, task: Task) {
        tokio::task::spawn_local(task);
    }
}

fn whole(body: &[u8]) -> Bytes {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer.into()
}

/// The head at the beginning of a buffer, once it is whole.
fn head(buffer: &[u8]) -> anyhow::Result<Option<Head>> {
    let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        if buffer.len() >= HEAD_MAX {
            bail!("a head of more than {HEAD_MAX} bytes");
        }
        return Ok(None);
    };
    let text = std::str::from_utf8(&buffer[..end]).context("a head that is no text")?;
    let mut lines = text.split("\r\n");
    let path =
        lines.next().and_then(|line| line.split(' ').nth(1)).context("a request line without a path")?;
    let (mut body, mut is_last) = (0, false);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            body = value.trim().parse().context("a length that is no number")?;
        } else if name.eq_ignore_ascii_case("connection") {
            is_last = value.trim().eq_ignore_ascii_case("close");
        } else if name.eq_ignore_ascii_case("transfer-encoding") || name.eq_ignore_ascii_case("expect") {
            bail!("{name} is not spoken here");
        }
    }
    Ok(Some(Head { length: end + 4, path: path.to_owned(), body, is_last }))
}
