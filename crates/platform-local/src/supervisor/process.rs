//! One `ebb pod` process: started, listened to, told to end, and followed to its end.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use vocabulary::PodName;

use crate::executable::this_executable;
use crate::lines::Lines;
use crate::pod::{LONGEST_LINE, PodMessage, PodSpec};
use crate::supervisor::failure::Failure;
use crate::supervisor::fleet::PodNews;
use crate::supervisor::logs::{LogSink, PodLog};

/// How long `ebb pod` may take to kill everything that came from it, before its whole group is killed.
const KILL_PATIENCE: Duration = Duration::from_secs(1);

/// What the supervisor wants of a process; it only ever grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    /// Live on.
    #[default]
    Run,
    /// Drain and end.
    Terminate,
    /// End at once.
    Kill,
}

/// What a process is started with.
#[derive(Debug)]
pub(crate) struct Start {
    /// The `ebb` executable, if it is not this one.
    pub(crate) ebb: Option<PathBuf>,
    /// The pod's name.
    pub(crate) pod: PodName,
    /// What it runs.
    pub(crate) spec: Box<PodSpec>,
    /// Where its output goes.
    pub(crate) logs: LogSink,
    /// Who wants to know what becomes of it.
    pub(crate) news: mpsc::Sender<(PodName, PodNews)>,
}

/// Runs one process to its end. The last news is always [`PodNews::Ended`].
pub(crate) async fn run(start: Start, wish: watch::Receiver<Wish>) {
    let Start { ebb, pod, spec, logs, news } = start;
    let ebb = ebb.unwrap_or_else(this_executable);
    let how = match spawn(&ebb, &spec) {
        Ok(child) => {
            let log = logs.of_pod(&spec.owner(), &pod);
            let mut process = Process { pod: pod.clone(), news: news.clone(), wish, log };
            process.follow(child, &spec).await
        }
        Err(error) => format!("{} cannot be started: {error}", ebb.display()),
    };
    let _ = news.send((pod, PodNews::Ended(how))).await;
}

/// A process, and our end of the socket that is its standard input.
struct Spawned {
    child: Child,
    socket: UnixStream,
}

/// It leads a process group of its own, so that Ctrl-C in a terminal reaches us alone, and so that it can be killed whole. Whose pod it is stands in its
/// arguments, for whoever looks at a list of processes.
fn spawn(ebb: &Path, spec: &PodSpec) -> std::io::Result<Spawned> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let child = Command::new(ebb)
        .arg0("ebb")
        .arg("pod")
        .arg(spec.full_name())
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    Ok(Spawned { child, socket: UnixStream::from_std(ours)? })
}

struct Process {
    pod: PodName,
    news: mpsc::Sender<(PodName, PodNews)>,
    wish: watch::Receiver<Wish>,
    log: PodLog,
}

impl Process {
    async fn follow(&mut self, spawned: Spawned, spec: &PodSpec) -> String {
        let Spawned { mut child, socket } = spawned;
        let pid = child.id().expect("not waited for yet");
        self.tell(PodNews::Spawned(pid)).await;
        let group = Pid::from_raw(i32::try_from(pid).expect("Linux has fewer than 2^22 processes"));
        // Its descendants hold these pipes too, so what they print last comes after its end.
        if let Err(error) = self.log.read(child.stdout.take(), child.stderr.take()) {
            tracing::warn!(pod = %self.pod, %error, "its output cannot be read");
        }
        let (output, mut input) = socket.into_split();
        send_spec(&mut input, spec).await;
        self.listen(output, input, group).await;
        // The socket is closed, so it is gone, but nobody has waited for it yet: the number of its group cannot be anybody else's.
        let _ = killpg(group, Signal::SIGKILL);
        let how = match child.wait().await {
            Ok(status) => how(status),
            Err(error) => format!("its pod process is gone: {error}"),
        };
        self.log.ended().await;
        how
    }

    /// Passes on what it says until it says no more, and what the supervisor wants of it.
    async fn listen(&mut self, mut output: impl AsyncRead + Unpin, input: OwnedWriteHalf, group: Pid) {
        let mut input = Some(input);
        let mut buffer = vec![0; 4096];
        let mut lines = Lines::of_at_most(LONGEST_LINE);
        let mut killed = false;
        loop {
            tokio::select! {
                read = output.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(length) => {
                        let mut said = Vec::new();
                        lines.push(&buffer[..length], |line| said.extend(self.understand(line)));
                        for message in said {
                            self.take(message).await;
                        }
                    }
                },
                Ok(()) = self.wish.changed() => match *self.wish.borrow_and_update() {
                    Wish::Run => {}
                    Wish::Terminate => {
                        let _ = kill(group, Signal::SIGTERM);
                    }
                    Wish::Kill => {
                        // Closing our end is the order to kill everything; only `ebb pod` itself can find every descendant.
                        input = None;
                        killed = true;
                    }
                },
                () = tokio::time::sleep(KILL_PATIENCE), if killed => {
                    let _ = killpg(group, Signal::SIGKILL);
                }
            }
            debug_assert!(killed || input.is_some(), "our end is open until the kill");
        }
    }

    fn understand(&self, line: &str) -> Option<PodMessage> {
        match serde_json::from_str(line) {
            Ok(message) => Some(message),
            Err(error) => {
                tracing::warn!(pod = %self.pod, %error, "a pod process said something that is not understood");
                None
            }
        }
    }

    /// Passes on a message. What failed says why in its last words, which are in its pipe already: it has ended.
    async fn take(&mut self, message: PodMessage) {
        let news = match message {
            PodMessage::QueueProxyLogged { line } => return self.log.note_queue_proxy(&line),
            PodMessage::Failed { reason } => {
                PodNews::Failed(Failure { reason, last_lines: self.log.last_words().await })
            }
            PodMessage::Started { .. } | PodMessage::Announced(_) => PodNews::Said(message),
        };
        self.tell(news).await;
    }

    async fn tell(&self, news: PodNews) {
        let _ = self.news.send((self.pod.clone(), news)).await;
    }
}

/// A process that is gone already does not read; that shows when its output ends.
async fn send_spec(input: &mut OwnedWriteHalf, spec: &PodSpec) {
    let mut line = serde_json::to_vec(spec).expect("specifications are plain data");
    line.push(b'\n');
    let _ = input.write_all(&line).await;
}

/// How the process ended, as the end of a sentence.
fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its pod process exited with code {code}"),
        (None, Some(signal)) => {
            let name =
                Signal::try_from(signal).map_or_else(|_| signal.to_string(), |signal| signal.to_string());
            format!("its pod process was killed by {name}")
        }
        (None, None) => "its pod process is gone".to_owned(),
    }
}
