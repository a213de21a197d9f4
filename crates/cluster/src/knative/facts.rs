//! What does the control loop hear of a revision that came by a `PodAutoscaler`?

use std::time::Duration;

use orchestration::{Entrance, RevisionFacts};
use scaling::RevisionOrigin;
use settings::{Class, ClusterConfig, FloorCause, PROGRESS_DEADLINE_DEFAULT, RevisionSettings};
use vocabulary::{HopKey, NameError, PodCount, Problem, RequestTimeouts, RevisionName, WaitingPage};

use super::deployment::QueueProxyEnvironment;
use super::lenient::known_annotations;
use super::pod_autoscaler::{AutoscalerClass, PodAutoscalerRecord};
use crate::resources::workload::remove_refused;

/// The metrics of ebb's own class hpa, which is off in an installed Knative.
const HPA_ANNOTATION: &str = "ebb.dev/hpa";

/// What a revision's facts follow from, beside its `PodAutoscaler`.
#[derive(Clone, Copy, Debug)]
pub struct KnativeSurroundings<'a> {
    /// The settings of `config-autoscaler` as they apply.
    pub cluster: &'a ClusterConfig,
    /// The progress deadline that `config-deployment` sets.
    pub progress_deadline: Duration,
    /// The environment of the queue-proxy in the revision's Deployment; the default before it is known.
    pub environment: QueueProxyEnvironment,
    /// The count that the Deployment has, with a write of ours that it does not show yet.
    pub wanted: PodCount,
    /// The cluster's domain, such as `cluster.local`.
    pub domain: &'a str,
}

/// The facts of a revision, and what people should hear of its settings.
#[derive(Clone, Debug)]
pub struct RevisionReading {
    /// What the control loop hears.
    pub facts: RevisionFacts,
    /// One sentence for each annotation that has no effect.
    pub warnings: Vec<String>,
}

/// Reads a revision. No annotation makes it unreadable: one that cannot be read has no effect, and is a
/// warning, for Knative's webhook has let it pass. One of another controller's class is only served: that
/// scales it, by settings of which ebb says nothing, unless they are ebb's own.
pub fn revision_facts(
    autoscaler: &PodAutoscalerRecord,
    around: KnativeSurroundings<'_>,
) -> Result<RevisionReading, NameError> {
    let name = autoscaler.revision()?;
    let is_ours = autoscaler.class == AutoscalerClass::Ours;
    let (settings, mut warnings) = if is_ours {
        settings_of(autoscaler, around.cluster)
    } else {
        (settings_of_other_class(), refusal_of_own_hpa(autoscaler).into_iter().collect())
    };
    let deadline = settings::progress_deadline(&autoscaler.annotations).unwrap_or_else(|problem| {
        warnings.extend(is_ours.then_some(problem.message));
        None
    });
    let host = format!("{}.{}.svc.{}", name.name(), name.namespace(), around.domain);
    let facts = RevisionFacts {
        settings,
        container_concurrency: autoscaler.container_concurrency,
        timeouts: around.environment.timeouts,
        progress_deadline: deadline.unwrap_or(around.progress_deadline),
        entrances: vec![Entrance::Host(host.to_lowercase())],
        url: None,
        hop_keys: Vec::new(),
        wanted: around.wanted,
        may_write: is_ours,
        reachable: autoscaler.is_reachable(),
        floor: PodCount::ZERO,
        floor_cause: FloorCause::default(),
        waiting_page: WaitingPage::Off,
        hold: None,
        // The status is the memory of the autoscaler before this one, Knative's own among them.
        origin: if autoscaler.status.is_initialized() { RevisionOrigin::Found } else { RevisionOrigin::New },
        template: name.name().to_owned(),
        other_autoscaler: None,
        name,
    };
    Ok(RevisionReading { facts, warnings })
}

/// The facts of a revision whose `PodAutoscaler` is gone before its pods: it has no entrance, so that its
/// requests are refused, and nothing of it may be written, so that its end is no wish for zero.
pub fn closing_facts(name: RevisionName, timeouts: RequestTimeouts, hop_keys: Vec<HopKey>) -> RevisionFacts {
    RevisionFacts {
        settings: settings_of_other_class(),
        container_concurrency: 0,
        timeouts,
        progress_deadline: PROGRESS_DEADLINE_DEFAULT,
        entrances: Vec::new(),
        url: None,
        hop_keys,
        wanted: PodCount::ZERO,
        may_write: false,
        reachable: false,
        floor: PodCount::ZERO,
        floor_cause: FloorCause::default(),
        waiting_page: WaitingPage::Off,
        hold: Some("its PodAutoscaler is gone".to_owned()),
        origin: RevisionOrigin::Found,
        template: name.name().to_owned(),
        other_autoscaler: None,
        name,
    }
}

/// What is said of a revision whose template asks for ebb's own class hpa.
fn refusal_of_own_hpa(autoscaler: &PodAutoscalerRecord) -> Option<String> {
    let is_asked = autoscaler.annotations.contains_key(HPA_ANNOTATION);
    is_asked.then(|| {
        format!(
            "annotation {HPA_ANNOTATION} has no effect in Knative's place, where autoscaler-hpa scales the revisions of class hpa; remove it"
        )
    })
}

/// The settings of a revision that another controller scales. Class kpa, since ebb's own class hpa would ask
/// for metrics of pods.
fn settings_of_other_class() -> RevisionSettings {
    RevisionSettings { class: Some(Class::Kpa), ..RevisionSettings::default() }
}

/// The settings that can be read, and a sentence for each annotation that cannot.
fn settings_of(autoscaler: &PodAutoscalerRecord, cluster: &ClusterConfig) -> (RevisionSettings, Vec<String>) {
    let keys = known_annotations(&autoscaler.annotations);
    let (mut annotations, mut warnings) = (keys.known, keys.warnings);
    loop {
        let problems = match RevisionSettings::read(&annotations, cluster, None) {
            Ok(read) => {
                warnings.extend(messages(read.warnings));
                return (read.value, warnings);
            }
            Err(problems) => problems,
        };
        let is_one_removed = remove_refused(&mut annotations, &problems);
        warnings.extend(messages(problems));
        // Without an annotation as the reason the cluster's settings hold alone.
        if !is_one_removed {
            return (RevisionSettings::default(), warnings);
        }
    }
}

fn messages(problems: Vec<Problem>) -> impl Iterator<Item = String> {
    problems.into_iter().map(|problem| problem.message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::knative::pod_autoscaler::tests::{autoscaler, object, read};

    fn reading(autoscaler: &PodAutoscalerRecord) -> RevisionReading {
        let cluster = ClusterConfig::default();
        let around = KnativeSurroundings {
            cluster: &cluster,
            progress_deadline: Duration::from_secs(120),
            environment: QueueProxyEnvironment::default(),
            wanted: PodCount::new(3),
            domain: "cluster.local",
        };
        revision_facts(autoscaler, around).expect("it has a name")
    }

    fn with(annotations: &Value) -> RevisionReading {
        reading(&autoscaler(annotations))
    }

    #[test]
    fn facts_follow_from_the_autoscaler_and_the_deployment() {
        let RevisionReading { facts, warnings } = with(&json!({"autoscaling.knative.dev/min-scale": "2"}));
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(facts.name.as_str(), "default/revision/hello-00001");
        assert_eq!(facts.settings.min_scale, Some(PodCount::new(2)));
        assert_eq!((facts.container_concurrency, facts.wanted), (10, PodCount::new(3)));
        assert_eq!(facts.timeouts.request, Some(Duration::from_secs(300)));
        assert_eq!(facts.hosts(), ["hello-00001.default.svc.cluster.local"]);
        assert!(facts.reachable && facts.may_write && facts.hop_keys.is_empty());
    }

    #[test]
    fn the_progress_deadline_is_the_annotations_else_the_clusters() {
        let key = settings::PROGRESS_DEADLINE_ANNOTATION;
        assert_eq!(with(&json!({})).facts.progress_deadline, Duration::from_secs(120));
        assert_eq!(with(&json!({key: "90s"})).facts.progress_deadline, Duration::from_secs(90));
        let broken = with(&json!({key: "soon"}));
        assert_eq!((broken.facts.progress_deadline, broken.warnings.len()), (Duration::from_secs(120), 1));
    }

    #[test]
    fn no_annotation_makes_a_revision_unreadable() {
        let RevisionReading { facts, warnings } = with(&json!({
            "autoscaling.knative.dev/vendor": "x",
            "autoscaling.knative.dev/window": "5",
            "autoscaling.knative.dev/max-scale": "7",
        }));
        assert_eq!(facts.settings.max_scale, Some(PodCount::new(7)));
        assert_eq!(facts.settings.stable_window, None);
        for key in ["vendor", "window"] {
            assert!(warnings.iter().any(|warning| warning.contains(key)), "{key} in {warnings:?}");
        }
    }

    #[test]
    fn a_revision_of_another_class_is_served_and_nothing_is_said_of_its_settings() {
        let RevisionReading { facts, warnings } = with(&json!({
            "autoscaling.knative.dev/class": "hpa.autoscaling.knative.dev",
            "autoscaling.knative.dev/window": "5",
        }));
        assert!(!facts.may_write && warnings.is_empty(), "{warnings:?}");
        assert_eq!(facts.settings.class, Some(Class::Kpa), "ebb's own class hpa asks for metrics");
        assert_eq!(facts.hosts(), ["hello-00001.default.svc.cluster.local"]);
    }

    #[test]
    fn must_refuse_metrics_of_ebbs_own_class_hpa_by_name() {
        let RevisionReading { facts, warnings } = with(&json!({
            "autoscaling.knative.dev/class": "hpa.autoscaling.knative.dev",
            "ebb.dev/hpa": "metrics: []",
        }));
        assert!(!facts.may_write && warnings.len() == 1, "{warnings:?}");
        let text = &warnings[0];
        assert!(text.contains("ebb.dev/hpa") && text.contains("autoscaler-hpa"), "{text}");
    }

    #[test]
    fn an_unreachable_revision_is_told_as_such() {
        let mut unreachable = object();
        unreachable["spec"]["reachability"] = json!("Unreachable");
        assert!(!reading(&read(unreachable)).facts.reachable);
    }

    #[test]
    fn a_revision_that_was_initialized_is_found_and_no_other() {
        let mut known = object();
        let condition = |status| json!([{"type": "ScaleTargetInitialized", "status": status}]);
        known["status"] = json!({"conditions": condition("True")});
        assert_eq!(reading(&read(known.clone())).facts.origin, RevisionOrigin::Found);
        known["status"] = json!({"conditions": condition("Unknown")});
        assert_eq!(reading(&read(known)).facts.origin, RevisionOrigin::New);
    }
}
