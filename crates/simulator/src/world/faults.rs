//! Pods and the autoscaler are killed, starts take longer, and links are lost or slow, as a scenario says.
//!
//! What a killed pod held is lost. The activator hears of a request that ran there when the request would
//! have been answered; of one that waited there, or ran on cores that are shared, at once.

use orchestration::{ControlEvent, LinkNews};
use throttling::RequestEvent;

use super::World;
use crate::link_disturbance::{LinkDisturbanceKind, LinkGroup};
use crate::scenario_fault::{FaultEffect, FaultyLinks};
use crate::shared_cores::SharedCores;
use crate::start_slowness::StartSlowness;
use crate::world_event::{PodNumber, SeatedRequest, ServiceNumber, SimulatedSeat};

impl World {
    pub(super) fn fault_begins(&mut self, place: usize) {
        let fault = self.faults[place].clone();
        let all = (0..self.names.len()).map(ServiceNumber);
        let services: Vec<ServiceNumber> =
            all.filter(|service| fault.is_about(&self.names[service.0])).collect();
        match fault.effect {
            FaultEffect::PodsKilled { pods } => {
                for service in services {
                    self.kill_pods(service, pods);
                }
            }
            FaultEffect::SlowStarts { times, length } => {
                let slowness = StartSlowness::until(self.now + length, times);
                for service in services {
                    self.slow_starts[service.0] = slowness;
                }
            }
            FaultEffect::AutoscalerEnds { pause } => self.owner_ends(pause),
            FaultEffect::LinksLost { links, length } => {
                for group in groups_of(links, services) {
                    self.disturb_links(group, LinkDisturbanceKind::Lost, length);
                }
            }
            FaultEffect::LinksSlow { links, delay, length } => {
                for group in groups_of(links, services) {
                    self.disturb_links(group, LinkDisturbanceKind::Slow(delay), length);
                }
            }
        }
    }

    fn kill_pods(&mut self, service: ServiceNumber, pods: u32) {
        let started = self.platform.pods_of(service).filter(|pod| pod.has_started() && !pod.is_leaving());
        let most = usize::try_from(pods).unwrap_or(usize::MAX);
        let killed: Vec<PodNumber> = started.map(|pod| pod.number).take(most).collect();
        for number in killed {
            self.kill(number);
        }
        // As the platform does: the count that was ordered stays, with other pods.
        let wanted = self.platform.facts(service).wanted;
        self.scale(service, wanted, &[], "");
        self.state(self.platform.fact_of_pods(service));
    }

    fn kill(&mut self, number: PodNumber) {
        let Some((pod, running)) = self.remove_pod(number) else { return };
        if let Some(link) = pod.link {
            self.owner_hears(ControlEvent::LinkChanged { link, news: LinkNews::Lost });
        }
        let lost: Vec<SeatedRequest> =
            running.into_iter().flat_map(SharedCores::into_running).chain(pod.into_waiting()).collect();
        for seated in lost {
            self.lose(&seated);
        }
    }

    /// The pod of a request was killed: its connection is gone, and the client gets an error.
    pub(super) fn lose(&mut self, seated: &SeatedRequest) {
        let event = match seated.seat {
            SimulatedSeat::Queue(dispatch) => RequestEvent::Ended { dispatch },
            SimulatedSeat::Direct(pick) => RequestEvent::DirectEnded { pick },
        };
        self.tell_activator_of_request(seated.request.service, event);
        self.refuse(&seated.request);
    }
}

fn groups_of(links: FaultyLinks, services: Vec<ServiceNumber>) -> Vec<LinkGroup> {
    match links {
        FaultyLinks::Pods => services.into_iter().map(LinkGroup::PodsOf).collect(),
        FaultyLinks::Activator => vec![LinkGroup::Activator],
    }
}
