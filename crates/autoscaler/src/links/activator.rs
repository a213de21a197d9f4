//! A link to an activator.

use std::sync::Arc;

use link::{ActivatorOrder, LinkError, Reader, Writer};
use runtime::Clock;
use vocabulary::{ActivatorWord, Assignment, Epoch, Ownership, ReplicaName};

use super::outbox::{Next, Outbox};
use super::{LinkEvent, Peer, Up, breach};

/// Dials and talks until the task is ended.
pub(super) async fn keep(mut peer: Peer, name: ReplicaName, outbox: Arc<Outbox>) {
    let clock = peer.clock;
    loop {
        let (mut reader, mut writer) = peer.connect().await;
        let mut up = None;
        let ended = tokio::select! {
            ended = listen(&mut peer, &name, &mut reader, &mut up) => ended,
            reason = speak(&mut writer, &outbox, clock) => Err(reason),
        };
        drop((reader, writer));
        outbox.disconnected();
        peer.ended(up, ended).await;
    }
}

/// Passes on what the activator says, until it closes the link or that breaks.
async fn listen(
    peer: &mut Peer,
    name: &ReplicaName,
    reader: &mut Reader<ActivatorWord>,
    up: &mut Option<Up>,
) -> Result<(), LinkError> {
    let hello = match reader.next().await? {
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
    peer.say(LinkEvent::ActivatorUp(Box::new(hello))).await;
    while let Some(report) = reader.next().await? {
        if matches!(report, ActivatorWord::Hello(_)) {
            return Err(breach("is a second hello"));
        }
        peer.say(LinkEvent::Activator(report)).await;
    }
    Ok(())
}

/// A heartbeat opens the conversation; the outbox says nothing until the event loop has taken in the hello.
async fn speak(writer: &mut Writer<ActivatorOrder>, outbox: &Outbox, clock: Clock) -> LinkError {
    let mut order = Some(ActivatorOrder::Heartbeat);
    loop {
        if let Some(order) = order.take()
            && let Err(reason) = writer.send(&order).await
        {
            return reason;
        }
        match outbox.next(clock.now()) {
            Next::Sync(assignments) => {
                if let Err(reason) = sync(writer, &assignments).await {
                    return reason;
                }
            }
            Next::Send(slot) => order = Some(slot.order()),
            Next::Wait(until) => tokio::select! {
                () = outbox.changed() => {}
                () = clock.sleep_until(until.unwrap_or(vocabulary::Timestamp::MAX)), if until.is_some() => {}
                () = writer.idle() => order = Some(ActivatorOrder::Heartbeat),
            },
        }
    }
}

async fn sync(writer: &mut Writer<ActivatorOrder>, assignments: &[Arc<Assignment>]) -> Result<(), LinkError> {
    let owner = ReplicaName::new("autoscaler");
    let ownership = Ownership::of_everything(Epoch::default());
    writer.send(&ActivatorOrder::SyncBegin { owner, ownership }).await?;
    for assignment in assignments {
        writer.send(&ActivatorOrder::Assign(Box::new(Assignment::clone(assignment)))).await?;
    }
    writer.send(&ActivatorOrder::SyncEnd).await
}
