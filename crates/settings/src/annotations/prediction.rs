//! Rules about prediction and schedules together with other annotations.

use vocabulary::{PodCount, PredictionSwitch};

use crate::class::Class;
use crate::cluster::ClusterConfig;
use crate::count_schedule::check_schedule_bounds;
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
        if *class == Class::Hpa && is_on {
            let flaw = format!(
                "class {} cannot do; write \"off\", or annotation {}: {:?}",
                Class::Hpa.name(),
                keys::CLASS.name,
                Class::Ahpa.name()
            );
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
