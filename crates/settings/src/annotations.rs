//! Reads the annotations of one revision, with every problem at once.

mod prediction;
mod single;

use std::collections::BTreeMap;

use vocabulary::{CheckedValue, HeadSizeLimit, PodCount, Problem, printable, shown};

use super::class::Class;
use super::cluster::ClusterConfig;
use super::keys::{ANNOTATION_PREFIXES, CONFIG_MAP_NAME, annotation as keys, config_map};
use super::limits;
use super::metric::Metric;
use super::reader::{SettingsPlace, SettingsReader};
use super::revision_settings::RevisionSettings;
use super::spec::Aggregation;
use super::suggestion;
use super::texts::SettingsTexts;
use super::waiting_page_setting::WaitingPageSetting;
use crate::hpa::reading::{
    DOCUMENT_ANNOTATION, HpaDocument, annotations_beside_document, document_of_short_form,
};
use crate::hpa::{PodRequests, UsageSource};

pub use single::{drain_limit, ignored_user_agents, progress_deadline};

/// A document of class hpa that stands by itself (kind `HorizontalPodAutoscaler`) and scales the revision.
#[derive(Clone, Copy, Debug)]
pub struct SeparateDocument<'a> {
    /// The bounds, metrics and behavior of the document.
    pub document: &'a HpaDocument,
    /// How messages name it (`HorizontalPodAutoscaler hello`).
    pub title: &'a str,
}

impl RevisionSettings {
    /// Reads the `autoscaling.knative.dev/*` and `ebb.dev/*` annotations of a pod template, the document in
    /// `ebb.dev/hpa` included; others are ignored. `document` is one that stands by itself and scales the
    /// revision; it leaves no room for annotations that say the same. Every problem is reported, by the key
    /// of its annotation; with one, none of the annotations applies.
    pub fn read(
        annotations: &BTreeMap<String, String>,
        cluster: &ClusterConfig,
        document: Option<SeparateDocument<'_>>,
    ) -> Result<CheckedValue<Self>, Vec<Problem>> {
        let mut reader = SettingsReader::new(SettingsPlace::Annotations, annotations);
        let has_document = document.is_some() || reader.entry(&keys::HPA).is_some();
        let default_class = if has_document { &Class::Hpa } else { &cluster.pod_autoscaler_class };
        let mut settings = Self::read_each(&mut reader, cluster, default_class);
        let written = reader.document(&keys::HPA);
        settings.texts = SettingsTexts::of(annotations, keys::ALL);
        settings.document = document.map(|separate| separate.document.clone()).or(written).map(Box::new);
        settings.check_bounds(&mut reader, cluster);
        settings.check_head_size(&mut reader, cluster);
        settings.warn_of_mixed_levels(&mut reader, cluster);
        match document {
            Some(separate) => settings.check_against_document(separate, &mut reader, annotations),
            None => settings.check_hpa(&mut reader, annotations, cluster, default_class),
        }
        settings.check_prediction(&mut reader, cluster, default_class);
        reader.warn_of_shadowed(keys::ALL);
        for key in annotations.keys() {
            check_key(&mut reader, key);
        }
        reader.finish(settings)
    }

    /// Reads each annotation by itself, before the rules about several annotations. `default_class` applies
    /// where no annotation names a class.
    fn read_each(reader: &mut SettingsReader<'_>, cluster: &ClusterConfig, default_class: &Class) -> Self {
        let class = reader.class(&keys::CLASS);
        let effective = class.as_ref().unwrap_or(default_class);
        let initial_limit =
            if cluster.allow_zero_initial_scale { limits::COUNT } else { limits::COUNT_FROM_ONE };
        Self {
            metric: read_metric(reader, effective),
            metric_name: reader.entry(&keys::METRIC).map(|entry| Box::from(entry.value)),
            aggregation: read_aggregation(reader, effective),
            class,
            target: reader.float(&keys::TARGET, &limits::TARGET),
            target_utilization: reader.percentage(&keys::TARGET_UTILIZATION, &limits::PERCENTAGE),
            min_scale: reader.count(&keys::MIN_SCALE, &limits::COUNT),
            max_scale: reader.count(&keys::MAX_SCALE, &limits::COUNT_OR_NO_LIMIT),
            initial_scale: reader.count(&keys::INITIAL_SCALE, &initial_limit),
            activation_scale: reader.count(&keys::ACTIVATION_SCALE, &limits::COUNT_FROM_TWO),
            scale_down_delay: reader.duration(&keys::SCALE_DOWN_DELAY, &limits::DELAY),
            stable_window: reader.duration(&keys::WINDOW, &limits::WINDOW),
            panic_window_percentage: reader.percentage(&keys::PANIC_WINDOW_PERCENTAGE, &limits::PERCENTAGE),
            panic_threshold_percentage: reader
                .percentage(&keys::PANIC_THRESHOLD_PERCENTAGE, &limits::PANIC_THRESHOLD),
            target_burst_capacity: reader
                .burst_capacity(&keys::TARGET_BURST_CAPACITY, &limits::BURST_CAPACITY),
            pod_retention: reader.duration(&keys::POD_RETENTION, &limits::UP_TO_AN_HOUR),
            surge_evaluation: reader.boolean(&keys::SURGE_EVALUATION),
            idle_first_scale_down: reader.boolean(&keys::IDLE_FIRST_SCALE_DOWN),
            in_flight_holds_pods: reader.boolean(&keys::IN_FLIGHT_HOLDS_PODS),
            forget_connections: reader.boolean(&keys::FORGET_CONNECTIONS),
            routing_dwell: reader.duration(&keys::ROUTING_DWELL, &limits::UP_TO_AN_HOUR),
            drain_limit: reader.duration(&keys::DRAIN_LIMIT, &limits::DRAIN_LIMIT),
            ignored_user_agents: reader.user_agents(&keys::IGNORE_USER_AGENTS),
            head_size_limit: reader.head_size(&keys::HEAD_SIZE_LIMIT),
            hpa_sync_period: reader.duration(&keys::HPA_SYNC_PERIOD, &limits::SYNC_PERIOD),
            own_stable_window: reader.duration(&keys::OWN_STABLE_WINDOW, &limits::WINDOW),
            shadow: reader.boolean(&keys::SHADOW),
            paused: reader.boolean(&keys::PAUSED),
            prediction: reader.prediction_switch(&keys::PREDICTION),
            prediction_budget: reader.prediction_budget(&keys::PREDICTION_BUDGET),
            cold_start_worth: reader.duration(&keys::COLD_START_WORTH, &limits::COLD_START_WORTH),
            scale_up_forward: reader.scale_up_forward(&keys::SCALE_UP_FORWARD),
            time_zone: reader.time_zone(&keys::TIME_ZONE),
            schedule: reader.schedule(&keys::SCHEDULE),
            waiting_page: read_waiting_page(reader),
            document: None,
            requests: PodRequests::default(),
            usage: UsageSource::default(),
            texts: SettingsTexts::default(),
        }
    }

    /// Refuses annotations that contradict a document which stands by itself.
    fn check_against_document(
        &self,
        separate: SeparateDocument<'_>,
        reader: &mut SettingsReader<'_>,
        annotations: &BTreeMap<String, String>,
    ) {
        let title = separate.title;
        reader.refuse_all(annotations_beside_document(annotations, title));
        if let Some(entry) = reader.entry(&keys::HPA) {
            reader.refuse_key(entry.key, &format!("says what {title} says too; remove one of them"));
        }
        if let Some(class) = self.class.as_ref().filter(|class| **class != Class::Hpa) {
            let flaw =
                format!("is {}, but {title} scales this Service; remove one of them", shown(class.name()));
            reader.refuse_key(keys::CLASS.name, &flaw);
        }
    }

    /// What class hpa alone understands, and what it cannot understand.
    fn check_hpa(
        &self,
        reader: &mut SettingsReader<'_>,
        annotations: &BTreeMap<String, String>,
        cluster: &ClusterConfig,
        default_class: &Class,
    ) {
        if *self.class.as_ref().unwrap_or(default_class) != Class::Hpa {
            for key in [&keys::HPA, &keys::HPA_SYNC_PERIOD, &keys::OWN_STABLE_WINDOW] {
                if let Some(entry) = reader.entry(key) {
                    let flaw = format!(
                        "means something for class {} only; remove it, or write annotation {}: {:?}",
                        Class::Hpa.name(),
                        keys::CLASS.name,
                        Class::Hpa.name()
                    );
                    reader.refuse_key(entry.key, &flaw);
                }
            }
            return;
        }
        if reader.entry(&keys::HPA).is_some() {
            let place = format!("annotation {DOCUMENT_ANNOTATION}");
            return reader.refuse_all(annotations_beside_document(annotations, &place));
        }
        if reader.are_sound(&[&keys::METRIC, &keys::TARGET]) {
            let metric = self.metric_name.as_deref();
            reader.refuse_all(document_of_short_form(self, metric, cluster).err());
        }
    }

    /// Rules about several annotations together. Absent ones count as 0; the ConfigMap is not considered, but
    /// for its limit.
    fn check_bounds(&self, reader: &mut SettingsReader<'_>, cluster: &ClusterConfig) {
        let min = self.min_scale.unwrap_or_default();
        let max = self.max_scale.unwrap_or_default();
        let limit = cluster.max_scale_limit;
        if max > PodCount::ZERO && max < min {
            let flaw = format!("is below min-scale {min}; raise it to {min} at least, or lower min-scale");
            reader.refuse_present(&keys::MAX_SCALE, &flaw);
        }
        if self.max_scale.is_some() && limit > PodCount::ZERO && !(PodCount::ONE..=limit).contains(&max) {
            let flaw = format!(
                "{} {} {limit} of ConfigMap {CONFIG_MAP_NAME}; write a whole number from 1 to {limit}",
                if max == PodCount::ZERO { "means no limit, against" } else { "is above" },
                config_map::MAX_SCALE_LIMIT.name
            );
            reader.refuse_present(&keys::MAX_SCALE, &flaw);
        }
        let Some(activation) = self.activation_scale else { return };
        if min > activation {
            let flaw = format!("is below min-scale {min}; raise it to {min} at least, or remove it");
            reader.refuse_present(&keys::ACTIVATION_SCALE, &flaw);
        } else if max > PodCount::ZERO && max < activation {
            let flaw = format!("is above max-scale {max}; lower it to {max} at most, or raise max-scale");
            reader.refuse_present(&keys::ACTIVATION_SCALE, &flaw);
        }
    }

    /// All revisions share the memory of the activators, so no revision lets in larger heads than the
    /// ConfigMap.
    fn check_head_size(&self, reader: &mut SettingsReader<'_>, cluster: &ClusterConfig) {
        let most = cluster.head_size_limit;
        if self.head_size_limit.is_some_and(|limit| limit > most) {
            let flaw = format!(
                "is above {} {most} of ConfigMap {CONFIG_MAP_NAME}; write an amount of memory from {} to {most}, or raise that key",
                config_map::HEAD_SIZE_LIMIT.name,
                HeadSizeLimit::MIN
            );
            reader.refuse_present(&keys::HEAD_SIZE_LIMIT, &flaw);
        }
    }

    /// Bounds that contradict each other because one is an annotation and the other is not. Knative accepts
    /// them, and so do we: the minimum wins while little is needed, the maximum while much is.
    fn warn_of_mixed_levels(&self, reader: &mut SettingsReader<'_>, cluster: &ClusterConfig) {
        let min = self.min_scale.unwrap_or(cluster.min_scale);
        let max = self.max_scale.unwrap_or(cluster.max_scale);
        let initial = self.initial_scale.unwrap_or(cluster.initial_scale);
        if max == PodCount::ZERO {
            return;
        }
        if min > max && !(self.min_scale.is_some() && self.max_scale.is_some()) {
            let (written, other) = if self.min_scale.is_some() {
                (&keys::MIN_SCALE, format!("above max-scale {max}"))
            } else {
                (&keys::MAX_SCALE, format!("below min-scale {min}"))
            };
            let flaw = format!(
                "is {other} of ConfigMap {CONFIG_MAP_NAME}: there will be {min} pods while fewer than {min} are needed, and {max} \
                 while more than {max} are; set both as annotations"
            );
            reader.warn_present(written, &flaw);
        }
        if initial > max && (self.initial_scale.is_some() || self.max_scale.is_some()) {
            let written = if self.initial_scale.is_some() { &keys::INITIAL_SCALE } else { &keys::MAX_SCALE };
            let flaw = format!("lets the revision start with {initial} pods though max-scale is {max}");
            reader.warn_present(written, &flaw);
        }
    }
}

fn read_metric(reader: &mut SettingsReader<'_>, class: &Class) -> Option<Metric> {
    let entry = reader.entry(&keys::METRIC)?;
    let metric = match entry.value {
        "concurrency" => Some(Metric::Concurrency),
        "rps" => Some(Metric::Rps),
        _ => None,
    };
    match class {
        Class::Kpa | Class::Ahpa if metric.is_none() => {
            let flaw = format!("class {} cannot scale on; write \"concurrency\" or \"rps\"", class.name());
            reader.refuse(entry, &flaw);
        }
        Class::Hpa if entry.value.is_empty() => {
            reader.refuse(entry, "names nothing; write the name of a metric, such as \"cpu\"");
        }
        Class::Kpa | Class::Ahpa | Class::Hpa | Class::Other(_) => {}
    }
    metric
}

fn read_waiting_page(reader: &mut SettingsReader<'_>) -> Option<WaitingPageSetting> {
    let entry = reader.entry(&keys::WAITING_PAGE)?;
    match entry.value {
        "auto" => Some(WaitingPageSetting::Auto),
        "off" => Some(WaitingPageSetting::Off),
        "" => {
            reader.refuse(
                entry,
                "names no page; write \"auto\", \"off\" or, on one machine, the path of a file",
            );
            None
        }
        file => Some(WaitingPageSetting::File(file.into())),
    }
}

fn read_aggregation(reader: &mut SettingsReader<'_>, class: &Class) -> Option<Aggregation> {
    let entry = reader.entry(&keys::AGGREGATION)?;
    match entry.value {
        "" | "linear" => Some(Aggregation::Linear),
        "weighted-exponential" | "weightedExponential" => Some(Aggregation::WeightedExponential),
        _ => {
            // Other classes may know other algorithms.
            if class.is_of_requests() {
                reader.refuse(entry, "is no algorithm; write \"linear\" or \"weighted-exponential\"");
            }
            None
        }
    }
}

fn check_key(reader: &mut SettingsReader<'_>, key: &str) {
    if is_unknown_annotation(key) {
        reader.refuse_key(key, &format!("is not known; {}", suggestion::for_annotation(key)));
    } else if ANNOTATION_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
        // It is known, and read where it belongs.
    } else if let Some(meant) = suggestion::misspelt_prefix(key) {
        reader.warn(key, &format!("is of no program that we know; did you mean {meant}?"));
    } else if let Some(meant) = suggestion::misplaced_under_serving(key) {
        reader.warn(key, &format!("has no effect, for nothing reads it; did you mean {meant}?"));
    }
}

/// Whether a setting of this name takes a duration, and this text is one but for its unit: `60` for `60s`.
pub fn lacks_unit(key: &str, text: &str) -> bool {
    let one = BTreeMap::from([(key.to_owned(), text.to_owned())]);
    let of_annotation = RevisionSettings::read(&one, &ClusterConfig::default(), None).err();
    let problems = of_annotation.into_iter().chain(ClusterConfig::parse(&one).err()).flatten();
    problems.into_iter().any(|problem| problem.key == key && problem.message.contains("has no unit"))
}

/// Whether an annotation stands under a prefix of ours and no reader knows it, so that it is refused.
pub fn is_unknown_annotation(key: &str) -> bool {
    ANNOTATION_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        && !keys::ALL.iter().any(|known| known.name == key || known.old == Some(key))
}

/// Refuses autoscaling annotations on the metadata of a Knative Service itself, as Knative does: they
/// configure a revision, so they belong on the template that revisions are made from.
pub fn misplaced_annotations(metadata: &BTreeMap<String, String>) -> Vec<Problem> {
    let [knative, ours] = ANNOTATION_PREFIXES;
    // Knative looks at the domain alone here, so that a key which forgot its slash does not get by.
    let misplaced = |key: &&String| key.starts_with(knative.trim_end_matches('/')) || key.starts_with(ours);
    let problem = |key: &String| Problem {
        key: key.clone(),
        message: format!(
            "annotation {} stands on the Service itself, where it has no effect; move it to spec.template.metadata.annotations",
            printable(key)
        ),
    };
    metadata.keys().filter(misplaced).map(problem).collect()
}
