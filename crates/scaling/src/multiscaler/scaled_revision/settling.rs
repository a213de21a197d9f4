//! Which count does a revision get, once the rules around zero have been applied?

use vocabulary::{PodCount, Routing, Timestamp};

use super::ScaledRevision;
use crate::bounds::Initialization;
use crate::scale_to_zero::{self, Path, Plan, RequestsInFlight, Situation};

/// A change of activity is followed by another look, as Knative's own status write is. Three looks reach a
/// rest from anywhere: activating, active, inactive.
const SETTLING_ROUNDS_MAX: u32 = 4;

impl ScaledRevision {
    /// Looks until the activity rests. A look that asks for a count outlives a later one that asks for the
    /// same or leaves it alone: it is the one that says why.
    ///
    /// `None`, and no change of activity, where the next step would lead to zero while no reporter is heard:
    /// the zero that was decided before the silence does not say that there are no requests now.
    pub(super) fn settle(&mut self, now: Timestamp) -> Option<Plan> {
        let desired = self.algorithm.desired();
        let ready = self.reactive_ready();
        let in_flight = self.in_flight(desired, now);
        let mut settled: Option<Plan> = None;
        for _ in 0..SETTLING_ROUNDS_MAX {
            let plan = scale_to_zero::apply_scale(desired, &self.situation(in_flight, now));
            if plan.want == Some(PodCount::ZERO) && self.is_unheard(desired, now) {
                return None;
            }
            let needed = scale_to_zero::needed_pods(&self.spec, self.initialization);
            let before = (self.activity, self.initialization);
            if ready >= needed {
                self.initialization = Initialization::Done;
            }
            self.activity = self.activity.next(plan.want, ready, needed, now);
            settled = Some(match settled {
                Some(former) if former.apply && (!plan.apply || plan.want == former.want) => former,
                Some(_) | None => plan,
            });
            if (self.activity, self.initialization) == before {
                break;
            }
        }
        Some(settled.expect("at least one look was taken"))
    }

    /// Whether there are pods, the last decision came from requests, and there is no data of requests now.
    fn is_unheard(&self, desired: Option<PodCount>, now: Timestamp) -> bool {
        desired.is_some()
            && self.wanted > PodCount::ZERO
            && self.algorithm.counts_requests()
            && !self.collectors.first().has_data(now)
    }

    /// The requests in flight, where they may hold the last pod. Computed only where no load needs a pod: to
    /// go through all reporters at every evaluation would be much of its cost. Where no pod is wanted there
    /// is none to hold: a wake from zero is the metric's.
    fn in_flight(&self, desired: Option<PodCount>, now: Timestamp) -> Option<RequestsInFlight> {
        let needs_none = desired.unwrap_or_default() == PodCount::ZERO;
        if !needs_none || self.wanted == PodCount::ZERO || !self.spec.in_flight_holds_pods {
            return None;
        }
        // All collectors hear the same.
        self.collectors.first().in_flight(self.pods.ready(), now)
    }

    fn situation(&self, in_flight: Option<RequestsInFlight>, now: Timestamp) -> Situation<'_> {
        let path = match (self.route.current(), self.acknowledged_since) {
            (Some(Routing::Direct), _) => Path::Direct,
            (Some(Routing::ThroughActivator) | None, None) => Path::Unacknowledged,
            // The later of the two: before the route no request reaches the activators, and before the
            // acknowledgement one of them may not answer for the revision.
            (Some(Routing::ThroughActivator) | None, Some(since)) => {
                Path::Acknowledged(now.saturating_since(since.max(self.route.since())))
            }
        };
        Situation {
            spec: &self.spec,
            present: self.reactive(),
            activity: self.activity,
            activity_age: self.activity.age(now),
            initialization: self.initialization,
            path,
            in_flight,
        }
    }
}
