//! What each fault of the plan does when it begins.

use std::time::Duration;

use orchestration::ControlEvent;
use vocabulary::Bucket;

use super::{SlowStarts, TrialWorld};
use crate::link_disturbance::LinkDisturbanceKind;
use crate::proof::fault::{ACTIVATORS, ActivatorNumber, OWNERS, OwnerNumber, PodChoice, WorldFault};
use crate::proof::trial_event::TrialEvent;
use crate::proof::trial_parts::{FarEnd, LateFacts};

impl TrialWorld<'_> {
    pub(super) fn fault_begins(&mut self, place: usize) {
        let plan = self.plan;
        let Some(planned) = plan.faults.get(place) else { return };
        match planned.fault {
            WorldFault::OwnerRestarts { owner, pause } => self.owner_ends(owner, pause),
            WorldFault::BothOwnersRestart { pause } => {
                (0..OWNERS).map(OwnerNumber).for_each(|owner| self.owner_ends(owner, pause));
            }
            WorldFault::OwnerStalls { owner, length } => self.owner_stalls(owner, length),
            WorldFault::BucketMoves { bucket, notice } => self.bucket_moves(Bucket(bucket), notice),
            WorldFault::OwnerIsCutOff { owner, length } => self.cut_off(owner, length),
            WorldFault::FactsAreLate { owner, delay, length } => {
                let until = self.now + length;
                self.owners[owner.0].late_facts = LateFacts { delay, until };
            }
            WorldFault::WallClockIsSet { owner, forward } => self.set_wall_clock(owner, forward),
            WorldFault::ActivatorRestarts { activator, pause } => self.activator_is_killed(activator, pause),
            WorldFault::BothActivatorsRestart { pause } => {
                let activators = (0..ACTIVATORS).map(ActivatorNumber);
                activators.for_each(|activator| self.activator_is_killed(activator, pause));
            }
            WorldFault::ActivatorStalls { activator, length } => self.activator_stalls(activator, length),
            WorldFault::ActivatorLeaves { activator, pause } => self.activator_leaves(activator, pause),
            WorldFault::ActivatorLinkIsLost { owner, activator, pause } => {
                self.disturb(owner, FarEnd::Activator(activator), LinkDisturbanceKind::Lost, pause);
            }
            WorldFault::ActivatorLinkIsSlow { owner, activator, delay, length } => {
                self.disturb(owner, FarEnd::Activator(activator), LinkDisturbanceKind::Slow(delay), length);
            }
            WorldFault::PodLinkIsLost { pod, pause } => self.cut_pod(pod, pause),
            WorldFault::PodLinkIsSlow { pod, delay, length } => self.slow_pod_link(pod, delay, length),
            WorldFault::PodCrashes { pod } => {
                if let Some(number) = self.chosen(pod) {
                    self.pod_crashes(number);
                }
            }
            WorldFault::PodTurnsUnready { pod, length } => {
                if let Some(number) = self.chosen(pod) {
                    self.pod_turns_unready(number, length);
                }
            }
            WorldFault::StartsAreSlow { factor, length } => {
                self.slow_starts = SlowStarts { factor, until: self.now + length };
            }
            WorldFault::StartsFail { service, count } => self.troubles[service.0].failing_starts = count,
            WorldFault::OrdersAreRetried { service, length } => {
                self.troubles[service.0].retried_until = self.now + length;
            }
            WorldFault::CountIsRefused { service } => self.troubles[service.0].count_is_refused = true,
            WorldFault::CountIsWritten { service, count } => self.write_count(service, count, &[]),
        }
    }

    /// Faults that wait for their occasion do so no longer.
    pub(super) fn quiet_begins(&mut self) {
        for trouble in &mut self.troubles {
            (trouble.failing_starts, trouble.count_is_refused) = (0, false);
        }
        // An owner does not order again what was refused, until the platform states the Service anew.
        for service in self.services() {
            let fact = self.platform.fact_of_service(service);
            self.state(&fact);
        }
    }

    fn cut_off(&mut self, owner: OwnerNumber, length: Duration) {
        self.owners[owner.0].cut_until = self.now + length;
        self.lose_connections(|connection| connection.process.owner == owner);
    }

    fn set_wall_clock(&mut self, owner: OwnerNumber, forward: Duration) {
        self.owners[owner.0].wall_forward = forward;
        let since_epoch = self.wall_time(owner);
        let process = self.owners[owner.0].process;
        let event = ControlEvent::WallClockRead { since_epoch };
        self.at(self.now, TrialEvent::OwnerHears(process, Box::new(event)));
    }

    /// No owner reaches the pod.
    fn cut_pod(&mut self, pod: PodChoice, length: Duration) {
        let Some(number) = self.chosen(pod) else { return };
        for owner in (0..OWNERS).map(OwnerNumber) {
            self.disturb(owner, FarEnd::Pod(number), LinkDisturbanceKind::Lost, length);
        }
    }

    /// The owner of the pod dials again, and the pod hears of that late.
    fn slow_pod_link(&mut self, pod: PodChoice, delay: Duration, length: Duration) {
        let Some(number) = self.chosen(pod) else { return };
        let Some(owner) = self.leases.holder(self.bucket_of(pod.service)) else { return };
        let far_end = FarEnd::Pod(number);
        self.disturb(owner, far_end, LinkDisturbanceKind::Slow(delay), length);
        self.lose_connections_between(owner, far_end);
    }
}
