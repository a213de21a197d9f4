//! A whole document, in any of the four versions, or the spec alone as the annotation `ebb.dev/hpa` carries
//! it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vocabulary::{CheckedValue, Findings, PodCount, Problem};

use super::api_version::HpaApiVersion;
use super::document_annotation::DOCUMENT_ANNOTATION;
use super::document_fields::{DocumentFields, Spelling};
use super::flat_metrics::flat_body;
use super::metrics::{nested_body, reference};
use super::names::is_dns_subdomain;
use super::node::DocumentNode;
use super::{behavior, metrics};
use crate::hpa::settings::HpaSettings;
use crate::hpa::{Behavior, HpaSpec, MetricSpec, ObjectReference, ResourceName, ResourceTarget};

/// The target of CPU where a document names no metric, in percent of the requests.
const DEFAULT_CPU_UTILIZATION: u32 = 80;

/// Enough for what is wrong and where.
const YAML_ERROR_CHARS_MAX: usize = 200;
const METRICS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// How JSON inside of an annotation is read; the error says what is wrong with it.
pub type JsonReader = fn(&str) -> Result<DocumentNode, String>;

/// The content of a document, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HpaDocument {
    /// `minReplicas`: the least count; 1 where the document has none.
    pub min: PodCount,
    /// `maxReplicas`: the largest count; at least 1 and at least `min`.
    pub max: PodCount,
    /// The metrics in the order of the document, at least one; CPU at 80 % where the document has none.
    pub metrics: Vec<MetricSpec>,
    /// The windows and policies of both directions; `None` where the document has none.
    pub behavior: Option<Behavior>,
}

impl HpaDocument {
    /// Together with the cluster's settings, ready to be evaluated.
    pub fn with_settings(self, settings: HpaSettings) -> HpaSpec {
        let Self { min, max, metrics, behavior } = self;
        HpaSpec { min, max, metrics, behavior, settings }
    }
}

/// The workload that a document scales, and the document's name.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleTarget {
    /// The name of the document itself (`metadata.name`).
    pub document: Box<str>,
    /// `metadata.namespace`, where it is written.
    pub namespace: Option<Box<str>>,
    /// The workload that the document scales (`scaleTargetRef`).
    pub target: ObjectReference,
}

/// Reads an `autoscaling/v2` spec without a target, as it stands on the workload that it scales. `place` is
/// how messages call it.
pub fn read_spec(node: &DocumentNode, place: &str) -> Result<CheckedValue<HpaDocument>, Vec<Problem>> {
    let mut findings = Findings::default();
    let document = DocumentFields::of(node, place, Spelling::Exact, &mut findings).and_then(|mut fields| {
        if fields.take("scaleTargetRef").is_some() {
            let flaw = "is the workload on which this stands; remove it";
            findings.refuse_place(&fields.place("scaleTargetRef"), flaw);
        }
        SpecReader { version: HpaApiVersion::V2, annotations: None }.read(fields, &mut findings)
    });
    finish(document, findings)
}

/// Reads the annotation of a workload, whose text is YAML or JSON.
pub(crate) fn read_annotation(text: &str) -> Result<CheckedValue<HpaDocument>, Vec<Problem>> {
    let place = format!("annotation {DOCUMENT_ANNOTATION}");
    // As in manifests, `yes` is a word. An annotation may be written without rights over the cluster, and a
    // few hundred bytes with aliases would be thousands of metrics.
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_aliases: 0 },
    };
    match serde_saphyr::from_str_with_options::<DocumentNode>(text, options) {
        Ok(node) => read_spec(&node, &place),
        Err(error) if is_alias(&error) => {
            let message = format!("{place} has an alias (*NAME); write what it stands for in its place");
            Err(vec![Problem { key: DOCUMENT_ANNOTATION.to_owned(), message }])
        }
        Err(error) => {
            let error = error.to_string();
            // It may repeat what it could not read.
            let first_line = error.lines().next().unwrap_or_default();
            let error: String = first_line.chars().take(YAML_ERROR_CHARS_MAX).collect();
            let message = format!("{place} is neither YAML nor JSON: {error}");
            Err(vec![Problem { key: DOCUMENT_ANNOTATION.to_owned(), message }])
        }
    }
}

fn is_alias(error: &serde_saphyr::Error) -> bool {
    matches!(
        error.without_snippet(),
        serde_saphyr::Error::Budget { breach: serde_saphyr::budget::BudgetBreach::Aliases { .. }, .. }
    )
}

/// Reads a whole document of kind `HorizontalPodAutoscaler`.
pub fn read_document(
    node: &DocumentNode,
    json: JsonReader,
) -> Result<CheckedValue<(ScaleTarget, HpaDocument)>, Vec<Problem>> {
    let mut findings = Findings::default();
    let read = document(node, json, &mut findings);
    finish(read, findings)
}

fn finish<Value>(value: Option<Value>, findings: Findings) -> Result<CheckedValue<Value>, Vec<Problem>> {
    debug_assert!(value.is_some() || !findings.problems.is_empty(), "what is not read was refused");
    match value {
        Some(value) => findings.finish(value),
        None => Err(findings.problems),
    }
}

fn document(
    node: &DocumentNode,
    json: JsonReader,
    findings: &mut Findings,
) -> Option<(ScaleTarget, HpaDocument)> {
    let mut fields = DocumentFields::of(node, "", Spelling::Exact, findings)?;
    let version = version(&mut fields, findings);
    match fields.required_text("kind", "HorizontalPodAutoscaler", findings) {
        None | Some("HorizontalPodAutoscaler") => {}
        Some(other) => {
            let other = DocumentNode::Text(other.to_owned());
            findings.refuse("kind", &other, "is not read here; write HorizontalPodAutoscaler");
        }
    }
    let metadata = fields.fields("metadata", findings);
    let (name, namespace, annotations) =
        metadata.map(|metadata| read_metadata(metadata, findings)).unwrap_or_default();
    if name.is_none() {
        findings.refuse_place("metadata.name", "is missing; write a name");
    }
    let spec = fields.take("spec");
    fields.ignore(&["status"]);
    fields.finish(findings);
    let Some(spec) = spec else {
        findings.refuse_place("spec", "is missing; write maxReplicas at least");
        return None;
    };
    let mut spec = DocumentFields::of(spec, "spec", Spelling::Exact, findings)?;
    let target = reference(&mut spec, "scaleTargetRef", findings);
    let version = version?;
    let annotations =
        (version == HpaApiVersion::V1).then_some(LegacyAnnotations { values: annotations, json });
    let document = SpecReader { version, annotations }.read(spec, findings);
    Some((ScaleTarget { document: name?, namespace, target: target? }, document?))
}

fn version(fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<HpaApiVersion> {
    match fields.required_text("apiVersion", "autoscaling/v2", findings)? {
        "autoscaling/v1" => Some(HpaApiVersion::V1),
        "autoscaling/v2beta1" => Some(HpaApiVersion::V2beta1),
        "autoscaling/v2beta2" => Some(HpaApiVersion::V2beta2),
        "autoscaling/v2" => Some(HpaApiVersion::V2),
        other => {
            let flaw =
                "is no version of an autoscaler; write autoscaling/v2 (v1, v2beta1 and v2beta2 are read too)";
            findings.refuse("apiVersion", &DocumentNode::Text(other.to_owned()), flaw);
            None
        }
    }
}

type Metadata = (Option<Box<str>>, Option<Box<str>>, BTreeMap<String, String>);

/// Reads name, namespace and annotations. Other metadata means nothing here, and is accepted.
fn read_metadata(mut metadata: DocumentFields<'_>, findings: &mut Findings) -> Metadata {
    let name = metadata.text("name", findings);
    if let Some(name) = name.filter(|name| !is_dns_subdomain(name)) {
        let flaw = "no object can be called; write lower-case letters, digits, \"-\" and \".\", at most 253";
        findings.refuse(&metadata.place("name"), &DocumentNode::Text(name.to_owned()), flaw);
    }
    let name = name.map(Box::from);
    let namespace = metadata.text("namespace", findings).map(Box::from);
    let mut annotations = BTreeMap::new();
    if let Some(DocumentNode::Map(entries)) = metadata.take("annotations") {
        for (key, value) in entries {
            if let DocumentNode::Text(text) = value {
                annotations.insert(key.clone(), text.clone());
            }
        }
    }
    (name, namespace, annotations)
}

/// The annotations in which `v1` carries fields that its spec does not have.
struct LegacyAnnotations {
    values: BTreeMap<String, String>,
    json: JsonReader,
}

impl LegacyAnnotations {
    fn read(&self, key: &str, findings: &mut Findings) -> Option<DocumentNode> {
        let text = self.values.get(key)?;
        (self.json)(text)
            .map_err(|error| {
                let flaw =
                    format!("is no JSON ({error}); write it as Kubernetes does, or use autoscaling/v2");
                findings.refuse_place(&annotation_place(key), &flaw);
            })
            .ok()
    }
}

fn annotation_place(key: &str) -> String {
    format!("annotation {key}")
}

struct SpecReader {
    version: HpaApiVersion,
    /// The annotations that carry metrics and behavior in `v1`; `None` in other versions.
    annotations: Option<LegacyAnnotations>,
}

impl SpecReader {
    fn read(&self, mut fields: DocumentFields<'_>, findings: &mut Findings) -> Option<HpaDocument> {
        let before = findings.problems.len();
        let min = fields.count("minReplicas", 0, findings);
        let max_before = findings.problems.len();
        let max = fields.count("maxReplicas", 1, findings);
        if max.is_none() && findings.problems.len() == max_before {
            findings.refuse_place(
                &fields.place("maxReplicas"),
                "is missing; write a whole number from 1 to 2147483647",
            );
        }
        let mut metrics = self.metrics(&mut fields, findings);
        let behavior = self.behavior(&mut fields, findings);
        let (min_place, max_place) = (fields.place("minReplicas"), fields.place("maxReplicas"));
        fields.finish(findings);
        if metrics.is_empty() && findings.problems.len() == before {
            metrics.push(cpu(DEFAULT_CPU_UTILIZATION));
        }
        let document = HpaDocument { min: min.unwrap_or(PodCount::ONE), max: max?, metrics, behavior };
        if document.max < document.min {
            let flaw = format!("is below minReplicas {}; raise it, or lower minReplicas", document.min);
            findings.refuse(&max_place, &DocumentNode::Integer(document.max.value().into()), &flaw);
        }
        if document.min == PodCount::ZERO && findings.problems.len() == before && !can_wake(&document.metrics)
        {
            let flaw = "needs a metric that says something without pods: ebb.concurrency or ebb.rps, or one of type Object or \
                        External; add one, or write 1";
            findings.refuse(&min_place, &DocumentNode::Integer(0), flaw);
        }
        Some(document)
    }

    fn metrics(&self, fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Vec<MetricSpec> {
        let place = fields.place("metrics");
        let body = match self.version {
            HpaApiVersion::V1 => return self.metrics_of_v1(fields, findings),
            HpaApiVersion::V2beta1 => flat_body,
            HpaApiVersion::V2beta2 | HpaApiVersion::V2 => nested_body,
        };
        let list = fields.list("metrics", findings).unwrap_or_default();
        metrics::read(list, &place, body, findings)
    }

    /// The metrics of a `v1` document: those of its annotation first, then CPU.
    fn metrics_of_v1(&self, fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Vec<MetricSpec> {
        let place = annotation_place(METRICS_ANNOTATION);
        let written = self.annotations.as_ref().and_then(|all| all.read(METRICS_ANNOTATION, findings));
        let mut read = match &written {
            Some(DocumentNode::List(list)) => metrics::read(list, &place, flat_body, findings),
            Some(other) => {
                findings.refuse(&place, other, "is no list; write the metrics in brackets");
                Vec::new()
            }
            None => Vec::new(),
        };
        let percent = fields.integer("targetCPUUtilizationPercentage", 1, i64::from(i32::MAX), findings);
        read.extend(percent.map(cpu));
        read
    }

    fn behavior(&self, fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<Behavior> {
        match self.version {
            HpaApiVersion::V2beta1 => None,
            HpaApiVersion::V1 => {
                let written = self.annotations.as_ref()?.read(BEHAVIOR_ANNOTATION, findings)?;
                behavior::read(&written, &annotation_place(BEHAVIOR_ANNOTATION), self.version, findings)
            }
            HpaApiVersion::V2beta2 | HpaApiVersion::V2 => {
                let place = fields.place("behavior");
                behavior::read(fields.take("behavior")?, &place, self.version, findings)
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
