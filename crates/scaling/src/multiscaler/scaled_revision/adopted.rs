//! The count does not fall while connections from before an adoption are open.

use std::num::NonZeroU32;
use std::time::Duration;

use vocabulary::{AdoptedConnections, PodCount, PodId, Timestamp};

use super::{Commands, ScaledRevision};
use crate::decision::{ConnectionHoldText, Reason, Sentence, Stage, Trigger};
use crate::multiscaler::Command;
use crate::scale_to_zero::{KeptBy, KeptPod, Plan};

impl ScaledRevision {
    pub(in crate::multiscaler) fn adopted_connections_reported(
        &mut self,
        pod: PodId,
        connections: AdoptedConnections,
        now: Timestamp,
        commands: &mut Commands,
    ) {
        if self.adopted.note(pod, connections, now) {
            self.reconcile(Trigger::Change, now, commands);
        }
    }

    /// Raises a decision of any class to the present count, unless the upper bound asks for less. Connections
    /// hold pods and bring none.
    pub(super) fn held_by_connections(
        &mut self,
        mut plan: Plan,
        now: Timestamp,
        commands: &mut Commands,
    ) -> Plan {
        let present = self.wanted.min(self.spec.max_scale.unwrap_or(PodCount::MAX));
        let lowered = plan.applied().filter(|&count| count < present);
        let held = self.adopted.held(&self.spec, |pod| self.pods.stays(pod), now);
        let Some(held) = held.filter(|_| present > PodCount::ZERO) else {
            self.is_held_by_connections = false;
            return plan;
        };
        // The end of the wait comes with no event.
        plan.recheck = Some(plan.recheck.map_or(held.ends_in, |recheck| recheck.min(held.ends_in)));
        let Some(count) = lowered else { return plan };
        let reason = ConnectionHoldText {
            present,
            count: held.count,
            age: None,
            peers: held.peers,
            unreadable_pods: u8::try_from(held.unreadable_pods).unwrap_or(u8::MAX),
        };
        let told = Sentence::from(ConnectionHoldText { age: Some(seconds_of(held.age)), ..reason });
        plan.want = Some(present);
        let (before, after) = (Some(count), Some(present));
        let stage = Stage::AdoptedConnections;
        plan.reasons.push(Reason { stage, before, after, text: reason.into() });
        plan.kept = Some(KeptPod { rule: KeptBy::AdoptedConnections, text: told });
        if !self.is_held_by_connections && self.shadow.is_none() {
            commands.push_back(Command::ReportConnectionHold { revision: self.id, text: told.to_string() });
        }
        self.is_held_by_connections = true;
        plan
    }
}

/// An age in whole seconds; one that is below a second counts as one.
fn seconds_of(age: Duration) -> NonZeroU32 {
    let seconds = u32::try_from(age.as_secs()).unwrap_or(u32::MAX);
    NonZeroU32::new(seconds).unwrap_or(NonZeroU32::MIN)
}
