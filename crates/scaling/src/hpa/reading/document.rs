//! A whole document, in any of the four versions, or the spec alone as the annotation `ebb.dev/hpa` carries it.

use std::collections::BTreeMap;

use vocabulary::PodCount;

use super::beside::DOCUMENT_ANNOTATION;
use super::flat_metrics::flat_body;
use super::metrics::{nested_body, reference};
use super::node::Node;
use super::problems::{Fields, Problems, Spelling};
use super::{behavior, metrics};
use crate::config::{Checked, Problem};
use crate::hpa::settings::HpaSettings;
use crate::hpa::spec::{Behavior, HpaSpec, MetricSpec, ObjectReference, ResourceName, ResourceTarget};

/// What applies where a document names no metric, in percent.
const DEFAULT_CPU_UTILIZATION: u32 = 80;

const METRICS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// How JSON inside of an annotation is read; the error says what is wrong with it.
pub type JsonReader = fn(&str) -> Result<Node, String>;

/// The versions of `autoscaling/…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpaApiVersion {
    /// CPU in the spec, the rest in annotations.
    V1,
    /// Flat targets, no behavior.
    V2beta1,
    /// As `v2`, without tolerances.
    V2beta2,
    /// The present one.
    V2,
}

/// What a document says, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct HpaDocument {
    /// `minReplicas`, or 1.
    pub min: PodCount,
    /// `maxReplicas`.
    pub max: PodCount,
    /// At least one.
    pub metrics: Vec<MetricSpec>,
    /// If it is written.
    pub behavior: Option<Behavior>,
}

impl HpaDocument {
    /// Together with the cluster's settings, ready to be evaluated.
    pub fn with_settings(self, settings: HpaSettings) -> HpaSpec {
        let Self { min, max, metrics, behavior } = self;
        HpaSpec { min, max, metrics, behavior, settings }
    }
}

/// What a document scales, and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleTarget {
    /// `metadata.name`.
    pub document: Box<str>,
    /// `metadata.namespace`, where it is written.
    pub namespace: Option<Box<str>>,
    /// `scaleTargetRef`.
    pub target: ObjectReference,
}

/// Reads an `autoscaling/v2` spec without a target, as it stands on the workload that it scales. `place` is how messages call it.
pub fn read_spec(node: &Node, place: &str) -> Result<Checked<HpaDocument>, Vec<Problem>> {
    let mut problems = Problems::default();
    let document = Fields::of(node, place, Spelling::Exact, &mut problems).and_then(|mut fields| {
        if fields.take("scaleTargetRef").is_some() {
            let flaw = "is the workload on which this stands; remove it";
            problems.refuse_place(&fields.place("scaleTargetRef"), flaw);
        }
        SpecReader { version: HpaApiVersion::V2, annotations: None }.read(fields, &mut problems)
    });
    finish(document, problems)
}

/// Reads the annotation of a workload: the text is YAML or JSON, which the caller can read.
pub fn read_annotation(
    text: &str,
    yaml: impl FnOnce(&str) -> Result<Node, String>,
) -> Result<Checked<HpaDocument>, Vec<Problem>> {
    let place = format!("annotation {DOCUMENT_ANNOTATION}");
    match yaml(text) {
        Ok(node) => read_spec(&node, &place),
        Err(error) => {
            let error = error.lines().next().unwrap_or_default();
            let message = format!("{place} is neither YAML nor JSON: {error}");
            Err(vec![Problem { key: DOCUMENT_ANNOTATION.to_owned(), message }])
        }
    }
}

/// Reads a whole document of kind `HorizontalPodAutoscaler`.
pub fn read_document(
    node: &Node,
    json: JsonReader,
) -> Result<Checked<(ScaleTarget, HpaDocument)>, Vec<Problem>> {
    let mut problems = Problems::default();
    let read = document(node, json, &mut problems);
    finish(read, problems)
}

fn finish<Value>(value: Option<Value>, problems: Problems) -> Result<Checked<Value>, Vec<Problem>> {
    match value {
        Some(value) if problems.refusals.is_empty() => Ok(Checked { value, warnings: problems.warnings }),
        Some(_) | None => {
            debug_assert!(!problems.refusals.is_empty(), "what is not read was refused");
            Err(problems.refusals)
        }
    }
}

fn document(node: &Node, json: JsonReader, problems: &mut Problems) -> Option<(ScaleTarget, HpaDocument)> {
    let mut fields = Fields::of(node, "", Spelling::Exact, problems)?;
    let version = version(&mut fields, problems);
    match fields.required_text("kind", "HorizontalPodAutoscaler", problems) {
        None | Some("HorizontalPodAutoscaler") => {}
        Some(other) => {
            let other = Node::Text(other.to_owned());
            problems.refuse("kind", &other, "is not read here; write HorizontalPodAutoscaler");
        }
    }
    let metadata = fields.fields("metadata", problems);
    let (name, namespace, annotations) =
        metadata.map(|metadata| read_metadata(metadata, problems)).unwrap_or_default();
    if name.is_none() {
        problems.refuse_place("metadata.name", "is missing; write a name");
    }
    let spec = fields.take("spec");
    fields.ignore(&["status"]);
    fields.finish(problems);
    let Some(spec) = spec else {
        problems.refuse_place("spec", "is missing; write maxReplicas at least");
        return None;
    };
    let mut spec = Fields::of(spec, "spec", Spelling::Exact, problems)?;
    let target = reference(&mut spec, "scaleTargetRef", problems);
    let version = version?;
    let annotations = (version == HpaApiVersion::V1).then_some(Annotations { values: annotations, json });
    let document = SpecReader { version, annotations }.read(spec, problems);
    Some((ScaleTarget { document: name?, namespace, target: target? }, document?))
}

fn version(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<HpaApiVersion> {
    match fields.required_text("apiVersion", "autoscaling/v2", problems)? {
        "autoscaling/v1" => Some(HpaApiVersion::V1),
        "autoscaling/v2beta1" => Some(HpaApiVersion::V2beta1),
        "autoscaling/v2beta2" => Some(HpaApiVersion::V2beta2),
        "autoscaling/v2" => Some(HpaApiVersion::V2),
        other => {
            let flaw =
                "is no version of an autoscaler; write autoscaling/v2 (v1, v2beta1 and v2beta2 are read too)";
            problems.refuse("apiVersion", &Node::Text(other.to_owned()), flaw);
            None
        }
    }
}

type Metadata = (Option<Box<str>>, Option<Box<str>>, BTreeMap<String, String>);

/// Labels and whatever else stands there are somebody else's.
fn read_metadata(mut metadata: Fields<'_>, problems: &mut Problems) -> Metadata {
    let name = metadata.text("name", problems).map(Box::from);
    let namespace = metadata.text("namespace", problems).map(Box::from);
    let mut annotations = BTreeMap::new();
    if let Some(Node::Map(entries)) = metadata.take("annotations") {
        for (key, value) in entries {
            if let Node::Text(text) = value {
                annotations.insert(key.clone(), text.clone());
            }
        }
    }
    (name, namespace, annotations)
}

/// What `v1` carries beside its spec.
struct Annotations {
    values: BTreeMap<String, String>,
    json: JsonReader,
}

impl Annotations {
    fn read(&self, key: &str, problems: &mut Problems) -> Option<Node> {
        let text = self.values.get(key)?;
        (self.json)(text)
            .map_err(|error| {
                let flaw =
                    format!("is no JSON ({error}); write it as Kubernetes does, or use autoscaling/v2");
                problems.refuse_place(&annotation_place(key), &flaw);
            })
            .ok()
    }
}

fn annotation_place(key: &str) -> String {
    format!("annotation {key}")
}

struct SpecReader {
    version: HpaApiVersion,
    /// Of `v1` only.
    annotations: Option<Annotations>,
}

impl SpecReader {
    fn read(&self, mut fields: Fields<'_>, problems: &mut Problems) -> Option<HpaDocument> {
        let before = problems.refusals.len();
        let min = fields.count("minReplicas", 0, problems);
        let max_before = problems.refusals.len();
        let max = fields.count("maxReplicas", 1, problems);
        if max.is_none() && problems.refusals.len() == max_before {
            problems.refuse_place(
                &fields.place("maxReplicas"),
                "is missing; write a whole number from 1 to 2147483647",
            );
        }
        let mut metrics = self.metrics(&mut fields, problems);
        let behavior = self.behavior(&mut fields, problems);
        let (min_place, max_place) = (fields.place("minReplicas"), fields.place("maxReplicas"));
        fields.finish(problems);
        if metrics.is_empty() && problems.refusals.len() == before {
            metrics.push(cpu(DEFAULT_CPU_UTILIZATION));
        }
        let document = HpaDocument { min: min.unwrap_or(PodCount::ONE), max: max?, metrics, behavior };
        if document.max < document.min {
            let flaw = format!("is below minReplicas {}; raise it, or lower minReplicas", document.min);
            problems.refuse(&max_place, &Node::Integer(document.max.value().into()), &flaw);
        }
        if document.min == PodCount::ZERO && problems.refusals.len() == before && !can_wake(&document.metrics)
        {
            let flaw = "needs a metric that says something without pods: ebb.concurrency or ebb.rps, or one of type Object or \
                        External; add one, or write 1";
            problems.refuse(&min_place, &Node::Integer(0), flaw);
        }
        Some(document)
    }

    fn metrics(&self, fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<MetricSpec> {
        let place = fields.place("metrics");
        let body = match self.version {
            HpaApiVersion::V1 => return self.metrics_of_v1(fields, problems),
            HpaApiVersion::V2beta1 => flat_body,
            HpaApiVersion::V2beta2 | HpaApiVersion::V2 => nested_body,
        };
        let list = fields.list("metrics", problems).unwrap_or_default();
        metrics::read(list, &place, body, problems)
    }

    /// Those of the annotation first, then CPU.
    fn metrics_of_v1(&self, fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<MetricSpec> {
        let place = annotation_place(METRICS_ANNOTATION);
        let written = self.annotations.as_ref().and_then(|all| all.read(METRICS_ANNOTATION, problems));
        let mut read = match &written {
            Some(Node::List(list)) => metrics::read(list, &place, flat_body, problems),
            Some(other) => {
                problems.refuse(&place, other, "is no list; write the metrics in brackets");
                Vec::new()
            }
            None => Vec::new(),
        };
        let percent = fields.integer("targetCPUUtilizationPercentage", 1, i64::from(i32::MAX), problems);
        read.extend(percent.map(cpu));
        read
    }

    fn behavior(&self, fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Behavior> {
        match self.version {
            HpaApiVersion::V2beta1 => None,
            HpaApiVersion::V1 => {
                let written = self.annotations.as_ref()?.read(BEHAVIOR_ANNOTATION, problems)?;
                behavior::read(&written, &annotation_place(BEHAVIOR_ANNOTATION), self.version, problems)
            }
            HpaApiVersion::V2beta2 | HpaApiVersion::V2 => {
                let place = fields.place("behavior");
                behavior::read(fields.take("behavior")?, &place, self.version, problems)
            }
        }
    }
}

fn cpu(percent: u32) -> MetricSpec {
    MetricSpec::Resource {
        resource: ResourceName::Cpu,
        container: None,
        target: ResourceTarget::Utilization(percent),
    }
}

fn can_wake(metrics: &[MetricSpec]) -> bool {
    metrics.iter().any(|metric| match metric {
        MetricSpec::Own { .. } | MetricSpec::Object { .. } | MetricSpec::External { .. } => true,
        MetricSpec::Resource { .. } | MetricSpec::Pods { .. } => false,
    })
}
