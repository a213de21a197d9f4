//! What stands above the count of the class: demand that is expected, a warm pod, a schedule.

use std::sync::Arc;

use forecasting::{PredictionRecord, Scorecard};
use settings::{DemandMetric, ScalingSpec};
use vocabulary::{PodCount, ScheduledBounds, TimeZoneName, Timestamp};

use super::{Commands, ScaledRevision};
use crate::decision::Trigger;
use crate::history::RevisionHistory;
use crate::hpa::CountChange;
use crate::multiscaler::algorithm::Algorithm;
use crate::multiscaler::beginning::RevisionBeginning;
use crate::multiscaler::count_forecast::CountForecast;
use crate::multiscaler::count_raise::CountRaise;
use crate::multiscaler::hpa::HpaScaler;
use crate::multiscaler::prediction::{ClosedPast, MINUTE};
use crate::multiscaler::published_forecast::PublishedForecast;
use crate::multiscaler::zone_book::ZoneBook;
use crate::scale_to_zero::Plan;

impl ScaledRevision {
    pub(in crate::multiscaler) fn set_zones(&mut self, zones: Arc<ZoneBook>) {
        self.zones = zones;
    }

    /// The zone of local time by which the revision goes, where the time of the day matters to it.
    pub(in crate::multiscaler) fn zone_in_use(&self) -> Option<&TimeZoneName> {
        self.forecast.is_some().then_some(&self.spec.time_zone)
    }

    /// Follows changed settings. What the class asked for by itself stays.
    pub(super) fn follow_forecast(&mut self, spec: &ScalingSpec, now: Timestamp) {
        let (reactive, wanted) = (self.reactive(), self.wanted);
        self.forecast = CountForecast::following(self.forecast.take(), spec, wanted, now);
        if let Some(forecast) = &mut self.forecast {
            forecast.reactive = reactive;
        }
    }

    /// The count that the class asks for by itself, and from which it goes on. In shadow another client gives
    /// the count, and nothing stands above it.
    pub(super) fn reactive(&self) -> PodCount {
        match &self.forecast {
            Some(forecast) if self.shadow.is_none() => forecast.reactive,
            Some(_) | None => self.wanted,
        }
    }

    /// The ready pods that the class sees: those that are there early would end its panic, and raise its
    /// rate limits.
    pub(super) fn reactive_ready(&self) -> PodCount {
        let ready = self.pods.ready_count();
        match &self.forecast {
            Some(forecast) if self.shadow.is_none() => ready.min(forecast.reactive),
            Some(_) | None => ready,
        }
    }

    /// Pods use so much of the processors from now on, where that is the demand that is foreseen.
    pub(super) fn note_cpu_in_use(&mut self, now: Timestamp) {
        let is_foreseen = self.spec.prediction.is_some() && self.spec.demand().metric == DemandMetric::Cpu;
        let used = self.algorithm.hpa().and_then(HpaScaler::cpu_in_use).filter(|_| is_foreseen);
        let used = used.map(|used| u32::try_from(used.value().max(0)).unwrap_or(u32::MAX));
        if self.forecast.as_ref().is_none_or(|forecast| forecast.cpu == used) {
            return;
        }
        // Until now as much was used as before.
        self.keep_history(now);
        if let Some(forecast) = &mut self.forecast {
            forecast.cpu = used;
        }
    }

    /// A zero that another client wrote is a pause to class hpa, unless the document allows zero or requests
    /// wake the revision: no pod is started.
    fn is_paused_at_zero(&self) -> bool {
        let is_zero = self.wanted == PodCount::ZERO && self.reactive() == PodCount::ZERO;
        is_zero && self.spec.min_scale > PodCount::ZERO && !self.algorithm.counts_requests()
    }

    /// The most pods that the metrics of class hpa are read of, where others may stand beside them.
    pub(super) fn own_pods(&self) -> Option<PodCount> {
        (self.forecast.is_some() && self.shadow.is_none()).then(|| self.reactive())
    }

    /// The pods that are asked for beyond those that the class asks for by itself.
    pub(super) fn early_pods(&self) -> PodCount {
        PodCount::new(self.wanted.value().saturating_sub(self.reactive().value()))
    }

    /// What prediction brought and cost, where it is asked for.
    pub(super) fn scorecard(&self) -> Option<Scorecard> {
        Some(self.forecast.as_ref()?.prediction.as_ref()?.scorecard())
    }

    /// Raises the count of the class to what is expected and scheduled.
    pub(super) fn raised(&mut self, plan: Plan, now: Timestamp) -> Plan {
        let before = self.reactive();
        let reactive = plan.applied().unwrap_or(before);
        let Some(mut forecast) = self.forecast.take() else { return plan };
        if self.shadow.is_none() && reactive != before {
            self.algorithm.note_ordered(CountChange { from: before, to: reactive }, now);
        }
        let expected = forecast.look(reactive, self.clock, now).filter(|_| self.spec.reachable);
        self.forecast = Some(forecast);
        if self.is_paused_at_zero() {
            return plan;
        }
        let (scheduled, present) = (self.scheduled(now), self.wanted);
        let is_decided = self.algorithm.desired().is_some();
        CountRaise { spec: &self.spec, reactive, present, is_decided, expected, scheduled }.apply(plan)
    }

    /// The platform was asked for another count.
    pub(super) fn note_order(&mut self, to: PodCount, now: Timestamp) {
        let change = CountChange { from: self.wanted, to };
        match &mut self.forecast {
            Some(forecast) => {
                if let Some(prediction) = &mut forecast.prediction {
                    prediction.starts.note_order(change, now);
                }
            }
            // Otherwise the class is told of its own count, not of that which stands above it.
            None => self.algorithm.note_ordered(change, now),
        }
    }

    /// Another client gave the count: the class goes on from it.
    pub(super) fn note_foreign_count_of_forecast(&mut self, count: PodCount) {
        if let Some(forecast) = &mut self.forecast {
            forecast.reactive = count;
            if let Some(prediction) = &mut forecast.prediction {
                prediction.starts.forget_orders();
            }
        }
    }

    /// Pods have come, gone or become ready.
    pub(super) fn note_starts(&mut self, now: Timestamp) {
        let pods = &self.pods;
        if let Some(prediction) = self.forecast.as_mut().and_then(|forecast| forecast.prediction.as_mut()) {
            prediction.starts.note_ready(pods.ready(), |pod| pods.contains(pod), now);
        }
    }

    /// A reporter holds a request.
    pub(super) fn note_request(&mut self, now: Timestamp) {
        if let Some(prediction) = self.forecast.as_mut().and_then(|forecast| forecast.prediction.as_mut()) {
            prediction.note_request(now);
        }
    }

    /// Looks whether requests rest, and tells of the minute that has ended.
    pub(super) fn watch_demand(&mut self, now: Timestamp) {
        let Some(prediction) = self.forecast.as_mut().and_then(|forecast| forecast.prediction.as_mut())
        else {
            return;
        };
        let collector = self.collectors.first();
        if collector.waiting() == 0 && collector.in_flight(self.pods.ready(), now).is_none() {
            prediction.note_idle(now);
        }
        let second = self.clock.second_at(now);
        if self.clock.is_read() && prediction.is_minute_due(second) {
            self.tell_minute(second, now);
        }
    }

    /// Does what the forecast is due for, if the evaluation has not done so.
    pub(super) fn keep_forecast(&mut self, now: Timestamp, commands: &mut Commands) {
        if !self.is_forecast_due(now) {
            return;
        }
        self.watch_demand(now);
        self.reconcile(Trigger::Change, now, commands);
        // Without data nothing was decided, and what is spent goes on being counted.
        if self.is_forecast_due(now) {
            let (reactive, clock) = (self.reactive(), self.clock);
            if let Some(forecast) = &mut self.forecast {
                forecast.look(reactive, clock, now);
            }
        }
    }

    /// The next time at which the forecast is due, if there is one.
    pub(super) fn forecast_deadline(&self) -> Option<Timestamp> {
        self.forecast.as_ref().map(|forecast| forecast.deadline(self.clock))
    }

    /// The history of the revision is another one now.
    pub(super) fn note_other_past(&mut self) {
        if let Some(prediction) = self.forecast.as_mut().and_then(|forecast| forecast.prediction.as_mut()) {
            prediction.past_changed();
        }
    }

    /// The forecast for readers; `None` where nothing stands beside the class.
    pub(in crate::multiscaler) fn published_forecast(&self) -> Option<PublishedForecast> {
        let forecast = CountForecast::clone(self.forecast.as_deref()?);
        let zone = self.zones.offsets(&self.spec.time_zone).cloned().unwrap_or_default();
        Some(PublishedForecast::new(forecast, zone))
    }

    /// Goes on from the forecast that a former owner wrote down so many seconds ago. Before the first
    /// decision the class is taken to have asked for no more by itself than it had then: what stands above
    /// that was asked for early, and counts as extra from now on.
    pub(super) fn restore_forecast(&mut self, record: &PredictionRecord, seconds_ago: u64, now: Timestamp) {
        let Some(forecast) = &mut self.forecast else { return };
        if let Some(prediction) = &mut forecast.prediction {
            prediction.restore(record, seconds_ago);
        }
        if self.algorithm.desired().is_some() || self.shadow.is_some() {
            return;
        }
        let reactive = self.wanted.min(PodCount::new(record.reactive));
        forecast.reactive = reactive;
        if let Some(prediction) = &mut forecast.prediction {
            prediction.note_inherited(now, reactive, self.wanted);
        }
        self.algorithm = Algorithm::new(&self.spec, RevisionBeginning::found_with(reactive, now));
        self.algorithm.pods_changed(&self.pods, now);
    }

    fn is_forecast_due(&self, now: Timestamp) -> bool {
        self.forecast_deadline().is_some_and(|at| at <= now)
    }

    /// Tells of the minute that ended last, once the local time is known.
    fn tell_minute(&mut self, second: u64, now: Timestamp) {
        self.keep_history(now);
        self.keep_demand();
        let reactive = self.reactive();
        let of_revision = self.zones.offsets(&self.spec.time_zone);
        let demand = self.history.as_deref().and_then(RevisionHistory::demand);
        if let Some(prediction) = self.forecast.as_mut().and_then(|forecast| forecast.prediction.as_mut())
            && let Some(zone) = prediction.zone(of_revision)
        {
            prediction.tell_minutes(ClosedPast { second, demand, zone: &zone, reactive });
        }
    }

    /// The bounds that the schedule sets now: none where no traffic arrives, or the local time is not known.
    fn scheduled(&self, now: Timestamp) -> ScheduledBounds {
        let schedule = self.spec.schedule.as_deref().filter(|_| self.spec.reachable && self.clock.is_read());
        let zone = self.zones.offsets(&self.spec.time_zone);
        let minute = self.clock.second_at(now) / MINUTE;
        let bounds = schedule.zip(zone).map(|(schedule, zone)| schedule.bounds_at(zone.week_minute(minute)));
        bounds.unwrap_or_default()
    }
}
