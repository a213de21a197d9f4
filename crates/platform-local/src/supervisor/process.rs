//! One `ebb pod` process: started, listened to, told to end, and followed to its end.

mod orders;
mod pod_process;
mod preparation;

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use vocabulary::{PodName, RevisionName};

use crate::executable::this_executable;
use crate::images::ImageEngine;
use crate::lines::Lines;
use crate::pod::{LONGEST_LINE, PodMessage, PodSpec};
use crate::supervisor::failure::ProcessFailure;
use crate::supervisor::fleet::PodNews;
use crate::supervisor::handover::{HandOverQuestion, HandOverVerdict, PodHandles, decided};
use crate::supervisor::image_engine::remove_ownerless;
use crate::supervisor::image_pulls::{ImageAwaiter, ImagePulls};
use crate::supervisor::logs::{LogSink, PodLog};
use crate::supervisor::process_control::ProcessControl;
use orders::ProcessOrders;
pub(crate) use orders::{ProcessHandle, ProcessWish};
use pod_process::{PodProcess, send_spec, spawn};
use preparation::{Preparation, prepare};

/// How long `ebb pod` may take to kill everything that came from it, before its whole group is killed.
const KILL_PATIENCE: Duration = Duration::from_secs(1);
/// The same if an engine has to remove a container, for which `ebb pod` itself has less patience.
const KILL_PATIENCE_OF_IMAGES: Duration = Duration::from_secs(15);

/// What a process is started with.
#[derive(Debug)]
pub(crate) struct ProcessStart {
    /// The `ebb` executable, if it is not this one.
    pub(crate) ebb: Option<PathBuf>,
    pub(crate) pod: PodName,
    pub(crate) spec: Box<PodSpec>,
    /// Says whether the image of the pod is here, and pulls it.
    pub(crate) images: Arc<ImagePulls>,
    /// Takes the lines that the pod prints.
    pub(crate) logs: LogSink,
    /// News of the process go to the supervisor by this channel.
    pub(crate) news: mpsc::Sender<(PodName, PodNews)>,
}

/// A process that another `ebb up` started.
#[derive(Debug)]
pub(crate) struct TakenOver {
    pub(crate) pod: PodName,
    /// The revision that it belongs to.
    pub(crate) owner: RevisionName,
    /// The engine that runs its image, if it has one.
    pub(crate) engine: Option<ImageEngine>,
    /// The descriptors that were handed over.
    pub(crate) handles: PodHandles,
    /// Takes the lines that the pod prints.
    pub(crate) logs: LogSink,
    /// News of the process go to the supervisor by this channel.
    pub(crate) news: mpsc::Sender<(PodName, PodNews)>,
}

/// Runs one process to its end. The last news is always [`PodNews::Ended`], unless the process was handed
/// over.
pub(crate) async fn run(start: ProcessStart, orders: ProcessOrders) {
    let ProcessStart { ebb, pod, mut spec, images, logs, news } = start;
    let ebb = ebb.unwrap_or_else(this_executable);
    let log = PodLog::of(&logs, &spec.owner(), &pod);
    let mut watch = ProcessWatch { pod: pod.clone(), news: news.clone(), orders, log, engine: None };
    let awaiter = ImageAwaiter { pod: &pod, news: &news };
    let how = match prepare(&mut spec, &images, awaiter, &mut watch.orders).await {
        Preparation::Done => match spawn(&ebb, &spec) {
            Ok(mut process) => {
                watch.engine = spec.images.as_ref().map(|images| images.engine);
                watch.tell(PodNews::Spawned(process.control.pid().unsigned_abs())).await;
                send_spec(&mut process.socket, &spec).await;
                watch.follow(process).await
            }
            Err(error) => Some(format!("{} cannot be started: {error}", ebb.display())),
        },
        Preparation::Failed(failure) => {
            watch.tell(PodNews::Failed(failure)).await;
            Some("its image is not here".to_owned())
        }
        Preparation::Needless => Some("it was not needed any more before its image was here".to_owned()),
        Preparation::Given => None,
    };
    if let Some(how) = how {
        let _ = news.send((pod, PodNews::Ended(how))).await;
    }
}

/// The same for a process that another `ebb up` started.
pub(crate) async fn follow(taken: TakenOver, orders: ProcessOrders) {
    let TakenOver { pod, owner, engine, handles, logs, news } = taken;
    let log = PodLog::of(&logs, &owner, &pod);
    let mut watch = ProcessWatch { pod: pod.clone(), news: news.clone(), orders, log, engine };
    let how = match PodProcess::taken_over(handles) {
        Ok(process) => watch.follow(process).await,
        Err(error) => Some(format!("its process cannot be taken over: {error}")),
    };
    if let Some(how) = how {
        let _ = news.send((pod, PodNews::Ended(how))).await;
    }
}

/// The task that watches over a process.
struct ProcessWatch {
    pod: PodName,
    news: mpsc::Sender<(PodName, PodNews)>,
    orders: ProcessOrders,
    log: PodLog,
    /// The engine that has a container of the pod, until that is removed.
    engine: Option<ImageEngine>,
}

/// Why a watch has stopped listening to its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenEnd {
    /// The process has closed its socket, or has ended.
    Gone,
    /// Another `ebb up` has taken the process over.
    Given,
}

impl ProcessWatch {
    /// Returns how it ended, or nothing if it was handed over.
    async fn follow(&mut self, process: PodProcess) -> Option<String> {
        let PodProcess { mut control, socket, begun, outputs } = process;
        // Its descendants hold these pipes too, so what they print last comes after its end.
        if let Err(error) = self.log.read(outputs) {
            tracing::warn!(pod = %self.pod, %error, "the output of a pod cannot be read");
        }
        let lines = Lines::continued(begun, LONGEST_LINE);
        if self.listen(socket, lines, &control).await == ListenEnd::Given {
            return None;
        }
        // The socket is closed, so it is gone, but what it started may not be.
        control.kill_group();
        let how = control.ended().await;
        if let Some(engine) = self.engine {
            // It was killed, or its engine failed it. What is left may hold its outputs, too.
            remove_ownerless(engine).await;
        }
        self.log.ended().await;
        Some(how)
    }

    /// Passes on what it says until it says no more, and what the supervisor wants of it.
    async fn listen(&mut self, socket: UnixStream, mut lines: Lines, control: &ProcessControl) -> ListenEnd {
        let (mut output, input) = socket.into_split();
        let mut input = Some(input);
        let mut buffer = vec![0; 4096];
        loop {
            let kill_patience = if self.engine.is_some() { KILL_PATIENCE_OF_IMAGES } else { KILL_PATIENCE };
            // Every arm is cancel-safe: what was not read or received stays where it is.
            tokio::select! {
                read = output.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => return ListenEnd::Gone,
                    Ok(length) => {
                        let mut said = Vec::new();
                        lines.push(&buffer[..length], |line| said.extend(self.understand(line)));
                        for message in said {
                            self.take(message).await;
                        }
                    }
                },
                Ok(()) = self.orders.wish.changed() => match *self.orders.wish.borrow_and_update() {
                    ProcessWish::Run => {}
                    ProcessWish::Terminate => control.terminate(),
                    // Closing our end is the order to kill everything; only `ebb pod` itself can find every
                    // descendant.
                    ProcessWish::Kill => drop(input.take()),
                },
                // One that is being killed is not handed over: it is gone soon.
                Some(question) = self.orders.questions.recv() => if let Some(open) = input.take() {
                    match self.stand_still(question, &open, lines.begun(), control).await {
                        HandOverVerdict::Given => {
                            // Dropping it would shut the socket down for the process that has it now, too.
                            open.forget();
                            return ListenEnd::Given;
                        }
                        HandOverVerdict::Kept | HandOverVerdict::Pending => input = Some(open),
                    }
                },
                () = tokio::time::sleep(kill_patience), if input.is_none() => control.kill_group(),
            }
        }
    }

    /// Hands over copies of the process's descriptors, and waits until it is decided which `ebb up` has it.
    async fn stand_still(
        &self,
        question: HandOverQuestion,
        socket: &OwnedWriteHalf,
        begun: &[u8],
        control: &ProcessControl,
    ) -> HandOverVerdict {
        let HandOverQuestion { reply, mut verdict } = question;
        let copies = async {
            let outputs = self.log.hand_over(&verdict).await;
            let socket: &UnixStream = socket.as_ref();
            let (socket, process) = (socket.as_fd().try_clone_to_owned()?, control.descriptor()?);
            let pid = control.pid();
            std::io::Result::Ok(PodHandles { socket, process, pid, begun: begun.to_vec(), outputs })
        };
        let mut early = verdict.clone();
        // Copies that are cancelled are dropped and so closed: the verdict was that no process needs them.
        let handles = tokio::select! {
            handles = copies => handles,
            verdict = decided(&mut early) => return verdict,
        };
        match handles {
            Ok(handles) => {
                let _ = reply.send((self.pod.clone(), handles)).await;
            }
            Err(error) => {
                tracing::warn!(pod = %self.pod, %error, "the process of a pod cannot be handed over");
            }
        }
        drop(reply);
        decided(&mut verdict).await
    }

    fn understand(&self, line: &str) -> Option<PodMessage> {
        match serde_json::from_str(line) {
            Ok(message) => Some(message),
            Err(error) => {
                tracing::warn!(pod = %self.pod, %error, "a pod process sent a message that is not understood");
                None
            }
        }
    }

    /// Passes on a message. What failed says why in its last words, which are in its pipe already: it has
    /// ended.
    async fn take(&mut self, message: PodMessage) {
        let news = match message {
            PodMessage::ContainerRemoved => return self.engine = None,
            PodMessage::QueueProxyLogged { line } => return self.log.note_queue_proxy(&line),
            PodMessage::Failed { reason, container } => {
                let last_lines = self.log.last_words(container.as_deref()).await;
                PodNews::Failed(ProcessFailure { reason, last_lines })
            }
            PodMessage::Killed { reason } => PodNews::Killed(reason),
            PodMessage::Started { .. }
            | PodMessage::Announced(_)
            | PodMessage::Answered
            | PodMessage::BeganInHostNetwork
            | PodMessage::ListensElsewhere { .. } => PodNews::Message(message),
        };
        self.tell(news).await;
    }

    async fn tell(&self, news: PodNews) {
        let _ = self.news.send((self.pod.clone(), news)).await;
    }
}
