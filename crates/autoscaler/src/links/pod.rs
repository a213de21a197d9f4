//! A link to a queue-proxy.

use std::sync::Arc;
use std::time::Duration;

use link::{LinkError, PodOrder, Reader, Writer};
use orchestration::ControlEvent;
use runtime::Clock;
use tokio::sync::watch;
use vocabulary::{PodName, PodSettings, PodWord, Timestamp};

use super::lookout::Lookout;
use super::peer::{LinkPeer, UpCount, breach};

/// What a queue-proxy may say in a second: one load, ten present counts, and a few changes of state. One that
/// says more is read more slowly, so it cannot keep the event loop busy.
const REPORTS_PER_SECOND_MAX: u32 = 50;

/// Dials and talks until the task is ended.
pub(super) async fn keep(mut peer: LinkPeer, pod: PodName, mut settings: watch::Receiver<Arc<PodSettings>>) {
    let mut lookout = peer.lookout();
    loop {
        let (mut reader, mut writer) = lookout.beside(peer.connect()).await;
        let mut up = None;
        // Whichever ends first cancels the other for good: half a frame that it read or wrote ends with the
        // connection.
        let ended = tokio::select! {
            ended = listen(&mut peer, &mut lookout, &pod, &mut reader, &mut up) => ended,
            reason = speak(&mut writer, &mut settings) => Err(reason),
        };
        drop((reader, writer));
        peer.ended(up, ended).await;
    }
}

/// Passes on what the queue-proxy says, until it closes the link or that breaks.
async fn listen(
    peer: &mut LinkPeer,
    lookout: &mut Lookout,
    pod: &PodName,
    reader: &mut Reader<PodWord>,
    up: &mut Option<UpCount>,
) -> Result<(), LinkError> {
    // An address may have been given to another pod since.
    let hello = match peer.next(reader, lookout).await? {
        Some(PodWord::Hello(hello)) if hello.pod == *pod => hello,
        Some(PodWord::Hello(hello)) => return Err(breach(format!("is from pod {}, not {pod}", hello.pod))),
        Some(
            PodWord::Load { .. }
            | PodWord::State { .. }
            | PodWord::Present(_)
            | PodWord::SettingsAcknowledged(_)
            | PodWord::Adopted(_),
        ) => {
            return Err(breach("came before its hello"));
        }
        None => return Ok(()),
    };
    *up = Some(peer.up());
    let link = peer.target.id;
    peer.say(ControlEvent::PodSpoke { link, word: PodWord::Hello(hello) }).await;
    let mut pace = Pace { clock: peer.clock, second_ends: Timestamp::ZERO, reports: 0 };
    while let Some(report) = peer.next(reader, lookout).await? {
        if matches!(report, PodWord::Hello(_)) {
            return Err(breach("is a second hello"));
        }
        // While it waits here, nothing is read, so a pod that says too much fills its own socket and not our
        // channel.
        pace.take().await;
        peer.say(ControlEvent::PodSpoke { link, word: report }).await;
    }
    Ok(())
}

/// Sends the settings first and whenever they change, and a heartbeat when there is nothing to say.
async fn speak(writer: &mut Writer<PodOrder>, settings: &mut watch::Receiver<Arc<PodSettings>>) -> LinkError {
    // A new link is told the settings even if they are old: the pod may have lost what it was told, with its
    // process.
    settings.mark_changed();
    loop {
        // Cancel-safe: settings stay changed until they are taken, and an idle pod is still idle.
        let order = tokio::select! {
            biased;
            Ok(()) = settings.changed() => PodOrder::Settings(Arc::clone(&settings.borrow_and_update())),
            () = writer.idle() => PodOrder::Heartbeat,
        };
        if let Err(reason) = writer.send(&order).await {
            return reason;
        }
    }
}

/// Counts reports per second and waits for the next one when there were too many.
struct Pace {
    clock: Clock,
    second_ends: Timestamp,
    reports: u32,
}

impl Pace {
    async fn take(&mut self) {
        self.reports += 1;
        if self.reports > REPORTS_PER_SECOND_MAX {
            self.clock.sleep_until(self.second_ends).await;
        }
        let now = self.clock.now();
        if now >= self.second_ends {
            self.second_ends = now + Duration::from_secs(1);
            self.reports = 1;
        }
    }
}
