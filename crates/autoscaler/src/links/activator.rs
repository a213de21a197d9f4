//! A link to an activator.

use std::sync::Arc;

use link::{ActivatorOrder, LinkError, Reader, Writer};
use orchestration::ControlEvent;
use runtime::Clock;
use vocabulary::{ActivatorWord, Assignment, ReplicaName};

use super::lookout::Lookout;
use super::outbox::{BucketSync, NextStep, OrderOutbox};
use super::peer::{LinkPeer, UpCount, breach};

/// Dials and talks until the task is ended.
pub(super) async fn keep(
    mut peer: LinkPeer,
    name: ReplicaName,
    owner: ReplicaName,
    outbox: Arc<OrderOutbox>,
) {
    let (clock, mut lookout) = (peer.clock, peer.lookout());
    loop {
        let (mut reader, mut writer) = lookout.beside(peer.connect()).await;
        // Set once the hello has come. How a connection ends that never got so far is told as a failed
        // attempt, and the next one waits longer.
        let mut up = None;
        // Whichever ends first cancels the other for good: half a frame that it read or wrote ends with the
        // connection.
        let ended = tokio::select! {
            ended = listen(&mut peer, &mut lookout, &name, &mut reader, &mut up) => ended,
            reason = speak(&mut writer, &owner, &outbox, clock) => Err(reason),
        };
        drop((reader, writer));
        // Before any task hears that the link is gone, so that nothing that is put in after that is lost with
        // it.
        outbox.disconnected();
        peer.ended(up, ended).await;
    }
}

/// Passes on what the activator says, until it closes the link or that breaks.
async fn listen(
    peer: &mut LinkPeer,
    lookout: &mut Lookout,
    name: &ReplicaName,
    reader: &mut Reader<ActivatorWord>,
    up: &mut Option<UpCount>,
) -> Result<(), LinkError> {
    let hello = match peer.next(reader, lookout).await? {
        Some(ActivatorWord::Hello(hello)) if hello.activator == *name => hello,
        Some(ActivatorWord::Hello(hello)) => {
            return Err(breach(format!("is from {}, not {name}", hello.activator)));
        }
        Some(
            ActivatorWord::Loads { .. }
            | ActivatorWord::Present { .. }
            | ActivatorWord::Acknowledged { .. }
            | ActivatorWord::Emptied { .. }
            | ActivatorWord::Draining,
        ) => return Err(breach("came before its hello")),
        None => return Ok(()),
    };
    *up = Some(peer.up());
    let link = peer.target.id;
    peer.say(ControlEvent::ActivatorSpoke { link, word: ActivatorWord::Hello(hello) }).await;
    while let Some(report) = peer.next(reader, lookout).await? {
        if matches!(report, ActivatorWord::Hello(_)) {
            return Err(breach("is a second hello"));
        }
        peer.say(ControlEvent::ActivatorSpoke { link, word: report }).await;
    }
    Ok(())
}

/// A heartbeat opens the conversation; the outbox says nothing until the event loop has taken in the hello.
async fn speak(
    writer: &mut Writer<ActivatorOrder>,
    owner: &ReplicaName,
    outbox: &OrderOutbox,
    clock: Clock,
) -> LinkError {
    let mut order = Some(ActivatorOrder::Heartbeat);
    loop {
        if let Some(order) = order.take()
            && let Err(reason) = writer.send(&order).await
        {
            return reason;
        }
        match outbox.next(clock.now()) {
            NextStep::Sync(sync) => {
                if let Err(reason) = tell_everything(writer, owner, &sync).await {
                    return reason;
                }
            }
            NextStep::Send(slot) => order = Some(slot.order()),
            NextStep::Release(buckets) => order = Some(ActivatorOrder::Released { buckets }),
            // Cancel-safe: each only waits; the outbox keeps what is to be sent.
            NextStep::Wait(until) => tokio::select! {
                () = outbox.changed() => {}
                () = clock.sleep_until(until.unwrap_or(vocabulary::Timestamp::MAX)), if until.is_some() => {}
                () = writer.idle() => order = Some(ActivatorOrder::Heartbeat),
            },
        }
    }
}

async fn tell_everything(
    writer: &mut Writer<ActivatorOrder>,
    owner: &ReplicaName,
    sync: &BucketSync,
) -> Result<(), LinkError> {
    let (owner, ownership) = (owner.clone(), sync.ownership.clone());
    writer.send(&ActivatorOrder::SyncBegin { owner, ownership }).await?;
    for assignment in &sync.assignments {
        writer.send(&ActivatorOrder::Assign(Box::new(Assignment::clone(assignment)))).await?;
    }
    writer.send(&ActivatorOrder::SyncEnd).await
}
