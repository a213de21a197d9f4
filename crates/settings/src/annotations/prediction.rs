//! Rules about prediction and schedules together with other annotations.

use vocabulary::{PodCount, PredictionSwitch};

use crate::class::Class;
use crate::cluster::ClusterConfig;
use crate::count_schedule::check_schedule_bounds;
use crate::hpa::MetricSpec;
use crate::hpa::reading::document_of_short_form;
use crate::keys::annotation as keys;
use crate::reader::SettingsReader;
use crate::revision_settings::RevisionSettings;

/// The least and the greatest count beside a schedule.
struct CountLimits {
    min: PodCount,
    max: Option<PodCount>,
}

impl RevisionSettings {
    /// Refuses prediction where no forecast can be made, and a schedule that asks for what no count could be.
    pub(super) fn check_prediction(
        &self,
        reader: &mut SettingsReader<'_>,
        cluster: &ClusterConfig,
        default_class: &Class,
    ) {
        let class = self.class.as_ref().unwrap_or(default_class);
        let is_on = self.prediction.is_some_and(|switch| switch != PredictionSwitch::Off);
        if *class == Class::Hpa
            && is_on
            && let Some(flaw) = self.flaw_of_prediction_by_metrics(cluster)
        {
            reader.refuse_present(&keys::PREDICTION, &flaw);
        }
        if let Some(schedule) = self.schedule.as_deref()
            && reader.are_sound(&[&keys::MIN_SCALE, &keys::MAX_SCALE])
        {
            let CountLimits { min, max } = self.count_limits(cluster);
            let place = reader.place_of(keys::SCHEDULE.name);
            let problems = check_schedule_bounds(&place, schedule, min, max);
            reader.refuse_all_of(&keys::SCHEDULE, problems);
        }
    }

    /// Why the metrics of class hpa allow no forecast; `None` if they do, or are refused themselves.
    fn flaw_of_prediction_by_metrics(&self, cluster: &ClusterConfig) -> Option<String> {
        let short_form = match &self.document {
            Some(_) => None,
            None => Some(document_of_short_form(self, self.metric_name.as_deref(), cluster).ok()?),
        };
        let metrics = &self.document.as_deref().or(short_form.as_ref())?.metrics;
        let class = Class::Hpa.name();
        let has_demand = |metric: &MetricSpec| matches!(metric, MetricSpec::Own { .. }) || metric.is_cpu();
        (!metrics.iter().any(has_demand)).then(|| {
            format!(
                "class {class} can do for the metrics concurrency, rps and cpu only: of no other one demand follows; write \"off\", or scale on one of these"
            )
        })
    }

    fn count_limits(&self, cluster: &ClusterConfig) -> CountLimits {
        if let Some(document) = self.document.as_deref() {
            return CountLimits { min: document.min, max: Some(document.max) };
        }
        let max = self.max_scale.unwrap_or(cluster.max_scale);
        CountLimits {
            min: self.min_scale.unwrap_or(cluster.min_scale),
            max: (max > PodCount::ZERO).then_some(max),
        }
    }
}
