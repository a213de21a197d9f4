//! What the supervisor does in a handover: it stands still and offers everything, or takes over what another
//! process offers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use vocabulary::PodName;

use super::records::{PlatformRecord, ProcessRecord};
use super::{HandOverQuestion, HandOverVerdict, Handover, HandoverDecision, PodHandles, Reply};
use crate::supervisor::event_loop::Supervisor;
use crate::supervisor::fleet::PodNews;
use crate::supervisor::process;

/// How long all parts may take to stand still. A part that does not is waiting for a reader of our own
/// output.
const STANDSTILL_PATIENCE: Duration = Duration::from_secs(5);
/// How long all parts stand still until it is decided which process goes on.
const DECISION_PATIENCE: Duration = Duration::from_secs(30);

impl Supervisor {
    /// Stands still, with all pods' watches, until it is decided which process has the pods.
    pub(in crate::supervisor) async fn hand_over(
        &mut self,
        reply: Reply,
        news: &mut mpsc::Receiver<(PodName, PodNews)>,
    ) -> HandOverVerdict {
        if self.fleet.is_ending() {
            let _ = reply.send(Err("everything ends already".to_owned()));
            return HandOverVerdict::Kept;
        }
        let (verdict, pending) = watch::channel(HandOverVerdict::Pending);
        let standstill = tokio::time::timeout(STANDSTILL_PATIENCE, self.stand_still(pending, news)).await;
        let Ok(handles) = standstill else {
            let _ = reply.send(Err("the output of the pods is stuck, because nothing reads it".to_owned()));
            verdict.send_replace(HandOverVerdict::Kept);
            return HandOverVerdict::Kept;
        };
        let (decision, decided) = oneshot::channel();
        let offered = reply.send(Ok((self.record(handles), HandoverDecision(decision))));
        let outcome = match offered {
            Ok(()) => tokio::time::timeout(DECISION_PATIENCE, decided).await,
            Err(_) => return HandOverVerdict::Kept,
        };
        let outcome =
            if matches!(outcome, Ok(Ok(()))) { HandOverVerdict::Given } else { HandOverVerdict::Kept };
        verdict.send_replace(outcome);
        outcome
    }

    /// Returns once every pod's watch stands still, and what they had said before is known.
    async fn stand_still(
        &mut self,
        verdict: watch::Receiver<HandOverVerdict>,
        news: &mut mpsc::Receiver<(PodName, PodNews)>,
    ) -> BTreeMap<PodName, PodHandles> {
        let (reply, mut replies) = mpsc::channel(self.processes.len().max(1));
        for process in self.processes.values() {
            // One that is at its end does not answer, and drops the question.
            let _ = process
                .questions
                .try_send(HandOverQuestion { reply: reply.clone(), verdict: verdict.clone() });
        }
        drop(reply);
        let mut handles = BTreeMap::new();
        loop {
            // Cancel-safe: what was not received stays in its channel.
            tokio::select! {
                answer = replies.recv() => match answer {
                    Some((pod, answer)) => drop(handles.insert(pod, answer)),
                    None => break,
                },
                // A watch that waits for room in this channel could not answer.
                Some((pod, what)) = news.recv() => self.take_news(&pod, &what),
            }
        }
        // This news came before its watch stood still, so the successor will not get it: it has to be in the
        // record.
        while let Ok((pod, what)) = news.try_recv() {
            self.take_news(&pod, &what);
        }
        handles
    }

    fn record(&self, mut handles: BTreeMap<PodName, PodHandles>) -> Handover {
        let with_process: BTreeSet<PodName> = handles.keys().cloned().collect();
        let fleet = self.fleet.record(&with_process, self.clock.now());
        // A pod that is being killed is in no record: both processes drop its descriptors, and it ends.
        handles.retain(|pod, _| fleet.has(pod));
        let mut descriptors = Vec::new();
        let mut processes = BTreeMap::new();
        for (pod, handles) in handles {
            processes.insert(pod, ProcessRecord::new(handles, &mut descriptors));
        }
        let (epoch, deleted) = (self.subscribers.latest_epoch().0, self.deleted.clone());
        let control_group = self.limits.root().map(Path::to_owned);
        let record = PlatformRecord { epoch, deleted, fleet, control_group, processes };
        let record = serde_json::to_value(record).expect("records are plain data");
        Handover { record, descriptors }
    }

    /// Takes over what another process handed over; what it says applies before the files do.
    pub(in crate::supervisor) fn take_over(&mut self, handover: Handover) -> Result<(), String> {
        handover.check()?;
        let record = handover.read()?;
        // Every owner from now on is a later one, so an order of the former autoscalers, whenever it comes,
        // is refused.
        self.subscribers.begin_after(vocabulary::Epoch(record.epoch));
        let mut loaded = crate::manifest::LoadedManifest::clone(&self.loaded);
        loaded.services.retain(|name, _| !record.deleted.contains_key(name));
        self.deleted = record.deleted;
        self.loaded = std::sync::Arc::new(loaded);
        self.last_good.send_replace(std::sync::Arc::clone(&self.loaded));
        let of_images = record.fleet.pods_of_images();
        self.fleet.take_over(record.fleet, &self.loaded, self.clock.now());
        let mut descriptors = handover.descriptors.into_iter();
        for (pod, process) in record.processes {
            let handles = process.handles(&mut descriptors).expect("there are as many as the record says");
            let owner = self.fleet.owner_of(&pod).expect("each is in the record of a revision");
            let (handle, orders) = process::ProcessHandle::new();
            self.processes.insert(pod.clone(), handle);
            let engine = self.images.engine().filter(|_| of_images.contains(&pod));
            let taken = process::TakenOver {
                pod,
                owner,
                engine,
                handles,
                logs: self.logs.clone(),
                news: self.news_in.clone(),
            };
            tokio::spawn(runtime::vital("the watch over a pod", process::follow(taken, orders)));
        }
        Ok(())
    }
}
