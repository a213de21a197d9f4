//! What does the API server ask the webhook, and what does the webhook answer? Questions and answers are
//! `AdmissionReview`s.
//!
//! A pod that asks for a queue-proxy gets it as a patch, or is refused with every reason. What people write
//! in annotations and in the ConfigMaps of the cluster is checked too, all of it at once; but what was wrong
//! before may stay wrong, so that an object can be repaired step by step.
//!
//! Every caller that reaches the webhook may send any text, so only the parts of a review that are checked
//! become values ([`crate::tree`]), and one object at a time.

mod read_parts;

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use settings::{
    ANNOTATION_PREFIXES, ClusterConfig, PROGRESS_DEADLINE_ANNOTATION, RevisionSettings,
    WAITING_PAGE_ANNOTATION, WaitingPageSetting,
};
use vocabulary::{CheckedValue, Findings, INJECT_LABEL, INJECTION_ANNOTATIONS, Problem, shown};

use crate::inject::{Injection, InjectionPlan, Outcome};
use crate::injector_settings::InjectorSettings;
use crate::limits::{self, PodLimits};
use crate::pod::texts;
use read_parts::{APPLIED_MANIFEST, CHECKED_OBJECT, INJECTED_POD};

/// What a webhook is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewQuestion {
    /// Asks for the pod with its queue-proxy (`/inject`).
    Inject,
    /// Asks whether annotations and ConfigMaps are valid (`/validate`).
    Validate,
}

/// How a review of an object ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVerdict {
    /// The pod is admitted with a patch.
    Injected,
    /// It may be as it is.
    Accepted,
    /// The object may be as it is, with warnings.
    Warned,
    /// The object is refused, with every reason.
    Refused,
}

/// What the API server is answered, and what that means.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewAnswer {
    /// The answer as an `AdmissionReview` with a `response`.
    pub review: Value,
    /// What became of its object.
    pub verdict: ReviewVerdict,
}

/// A ConfigMap of the cluster whose keys this crate does not know, and the function that checks them.
#[derive(Clone, Copy, Debug)]
pub struct ConfigMapCheck {
    /// The ConfigMap's name in ebb's own namespace.
    pub name: &'static str,
    /// Returns all problems and warnings of the ConfigMap's data.
    pub findings: fn(&BTreeMap<String, String>) -> Findings,
}

/// The fields of a review that are read. Its objects stay texts until each is read in its turn.
#[derive(Deserialize)]
struct ReviewText<'t> {
    #[serde(borrow)]
    request: Option<RequestText<'t>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestText<'t> {
    uid: Option<String>,
    #[serde(borrow)]
    object: Option<&'t RawValue>,
    #[serde(borrow)]
    old_object: Option<&'t RawValue>,
}

/// Answers a review; `None` for a text that is no review. Of ConfigMaps, `config-autoscaler` and the `others`
/// are checked.
pub fn answer(
    review: &[u8],
    question: ReviewQuestion,
    settings: &InjectorSettings,
    others: &[ConfigMapCheck],
) -> Option<ReviewAnswer> {
    let request = serde_json::from_slice::<ReviewText<'_>>(review).ok()?.request?;
    let findings = match question {
        ReviewQuestion::Inject => injected(request.object, settings),
        ReviewQuestion::Validate => validated(&request, settings, others),
    };
    let verdict = findings.verdict();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": findings.response(request.uid.as_deref()),
    });
    Some(ReviewAnswer { review, verdict })
}

/// What the answer says of an object.
#[derive(Debug, Default)]
struct ReviewFindings {
    patch: Option<String>,
    refusals: Vec<String>,
    warnings: Vec<String>,
}

impl ReviewFindings {
    fn verdict(&self) -> ReviewVerdict {
        if !self.refusals.is_empty() {
            ReviewVerdict::Refused
        } else if self.patch.is_some() {
            ReviewVerdict::Injected
        } else if self.warnings.is_empty() {
            ReviewVerdict::Accepted
        } else {
            ReviewVerdict::Warned
        }
    }

    fn response(self, uid: Option<&str>) -> Value {
        let mut response = json!({"uid": uid, "allowed": self.refusals.is_empty()});
        if !self.refusals.is_empty() {
            response["status"] =
                json!({"code": 400, "reason": "BadRequest", "message": self.refusals.join("; ")});
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        if let Some(patch) = self.patch {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(BASE64_STANDARD.encode(patch));
        }
        response
    }
}

fn injected(object: Option<&RawValue>, settings: &InjectorSettings) -> ReviewFindings {
    let pod = match INJECTED_POD.read(object.map_or("null", RawValue::get)) {
        Ok(pod) => pod,
        Err(_too_many_parts) => {
            let refusals = vec![format!("ebb: the pod {TOO_MANY_PARTS}")];
            return ReviewFindings { refusals, ..ReviewFindings::default() };
        }
    };
    let plan = InjectionPlan::of(&pod, settings);
    // As texts, for a second pod would take as much memory again.
    let before = match &plan {
        InjectionPlan::Again | InjectionPlan::FirstTime(_) => Some(texts_of(&pod)),
        InjectionPlan::NotAsked | InjectionPlan::Refused(_) => None,
    };
    match plan.carry_out(pod, settings) {
        Outcome::NotAsked => ReviewFindings::default(),
        Outcome::Refused(reasons) => {
            let refusals = reasons.into_iter().map(|reason| format!("ebb: {reason}")).collect();
            ReviewFindings { refusals, ..ReviewFindings::default() }
        }
        Outcome::Injected(Injection { pod: with_sidecar, warnings }) => {
            let after = texts_of(&with_sidecar);
            drop(with_sidecar);
            ReviewFindings {
                patch: difference(&before.unwrap_or_default(), &after),
                warnings,
                ..ReviewFindings::default()
            }
        }
    }
}

/// Why an object is not read, as the end of a sentence about it.
const TOO_MANY_PARTS: &str = "has too many parts, or parts within parts, to be read";

/// The two parts of a pod that an injection may change: their JSON pointers and texts.
fn texts_of(pod: &Value) -> [(&'static str, String); 2] {
    [("/spec", &pod["spec"]), ("/metadata/annotations", &pod["metadata"]["annotations"])]
        .map(|(path, value)| (path, value.to_string()))
}

/// As a JSON patch, whose `add` replaces what is there.
fn difference(before: &[(&str, String)], after: &[(&str, String)]) -> Option<String> {
    let changes = before.iter().zip(after).filter(|(before, after)| before != after);
    let operations: Vec<String> = changes
        .map(|(_, (path, value))| format!(r#"{{"op":"add","path":"{path}","value":{value}}}"#))
        .collect();
    (!operations.is_empty()).then(|| format!("[{}]", operations.join(",")))
}

/// A change that brings a new problem is refused, with all problems. Problems that were there before are
/// warnings.
fn validated(
    request: &RequestText<'_>,
    settings: &InjectorSettings,
    others: &[ConfigMapCheck],
) -> ReviewFindings {
    // One after the other, so that only one of the two objects is in memory.
    let (former, applied_before) = said_of(request.old_object, settings, others);
    let (Findings { problems: present, mut warnings }, applied) = said_of(request.object, settings, others);
    // A manifest that was applied some day stands in the object for good. Only a person who applies one can
    // leave the field out.
    if applied.is_some() && applied != applied_before {
        warnings.push(APPLIED_COUNT_WARNING.to_owned());
    }
    if present.iter().all(|problem| former.problems.contains(problem)) {
        let warnings = present.into_iter().chain(warnings).collect();
        return ReviewFindings { warnings, ..ReviewFindings::default() };
    }
    ReviewFindings { refusals: present, ..ReviewFindings::default() }
}

/// What is said of a manifest that was applied and names the count.
const APPLIED_COUNT_WARNING: &str = "the manifest names spec.replicas, so each apply sets the count, and ebb sets it again; leave the field out";

/// All problems and warnings of an object, one line each; and the count that a manifest has applied, as far
/// as the object tells.
fn said_of(
    object: Option<&RawValue>,
    settings: &InjectorSettings,
    others: &[ConfigMapCheck],
) -> (Findings<String>, Option<AppliedCount>) {
    let object = match CHECKED_OBJECT.read(object.map_or("null", RawValue::get)) {
        Ok(object) => object,
        Err(_too_many_parts) => {
            let warnings = vec![format!("ebb has not checked the object: it {TOO_MANY_PARTS}")];
            return (Findings { problems: Vec::new(), warnings }, None);
        }
    };
    match object["kind"].as_str() {
        Some("ConfigMap") => (of_config_map(&object, others), None),
        Some("Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController") => {
            let Findings { problems, warnings } = of_workload(&object, settings);
            let warnings = remarks(&object).into_iter().chain(warnings).collect();
            (Findings { problems, warnings }, AppliedCount::of(&object))
        }
        Some(_) | None => (Findings::default(), None),
    }
}

fn of_config_map(config_map: &Value, others: &[ConfigMapCheck]) -> Findings<String> {
    let (name, data) = (&config_map["metadata"]["name"], texts(&config_map["data"]));
    if *name == settings::CONFIG_MAP_NAME {
        return findings_of(ClusterConfig::parse(&data));
    }
    let Some(check) = others.iter().find(|check| *name == check.name) else { return Findings::default() };
    let Findings { problems, warnings } = (check.findings)(&data);
    Findings { problems: lines(problems), warnings: lines(warnings) }
}

/// Whether the pods of a workload are labelled for ebb.
fn is_labelled(workload: &Value) -> bool {
    workload["spec"]["template"]["metadata"]["labels"][INJECT_LABEL] == "true"
}

fn of_workload(workload: &Value, settings: &InjectorSettings) -> Findings<String> {
    let template = &workload["spec"]["template"];
    if !is_labelled(workload) {
        return Findings::default();
    }
    let mut annotations = texts(&template["metadata"]["annotations"]);
    annotations.retain(|key, _| !limits::is_limit(key));
    annotations.extend(texts(&workload["metadata"]["annotations"]));
    annotations.retain(|key, _| is_of_scaling(key));
    let read = RevisionSettings::read(&annotations, &settings.cluster, None);
    let page = read.as_ref().ok().and_then(|checked| checked.value.waiting_page.clone());
    let Findings { mut problems, warnings } = findings_of(read);
    if let Some(WaitingPageSetting::File(file)) = page {
        problems.push(format!(
            "annotation {WAITING_PAGE_ANNOTATION} is {}, and a file can be shown on one machine only; write \"auto\" or \"off\"",
            shown(&file)
        ));
    }
    match InjectionPlan::of(template, settings) {
        InjectionPlan::NotAsked | InjectionPlan::Again | InjectionPlan::FirstTime(_) => {}
        InjectionPlan::Refused(reasons) => problems.extend(reasons),
    }
    let mut of_limits = Vec::new();
    let _ = PodLimits::read(template, &settings.cluster, &mut of_limits);
    problems.extend(of_limits);
    problems.sort();
    problems.dedup();
    Findings { problems, warnings }
}

/// Warnings about settings that are valid, and yet have no effect or fight with ebb.
fn remarks(object: &Value) -> Vec<String> {
    if !is_labelled(object) {
        return Vec::new();
    }
    let annotations = texts(&object["metadata"]["annotations"]);
    let misplaced = annotations.keys().filter(|key| limits::is_of_template(key));
    misplaced
        .map(|key| {
            format!("annotation {key} stands on the workload, where no pod sees it; move it to spec.template.metadata.annotations")
        })
        .collect()
}

/// The manifests that were applied to a workload and name its count. Each apply of one leaves another value.
#[derive(Clone, Debug, PartialEq)]
struct AppliedCount {
    /// The count of the workload.
    replicas: Value,
    /// The whole manifest that `kubectl apply` has left in the object, if it names the count.
    client_side: Option<String>,
    /// When server-side applies that name the count were last carried out.
    server_side: Vec<Value>,
}

impl AppliedCount {
    /// `None` for a workload without such a manifest, or one that ebb does not scale.
    fn of(object: &Value) -> Option<Self> {
        if !is_labelled(object) {
            return None;
        }
        let annotations = &object["metadata"]["annotations"];
        let applied = annotations["kubectl.kubernetes.io/last-applied-configuration"].as_str();
        let names_count = |text: &&str| {
            APPLIED_MANIFEST.read(text).is_ok_and(|applied| applied["spec"].get("replicas").is_some())
        };
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        let found = Self {
            replicas: object["spec"]["replicas"].clone(),
            client_side: applied.filter(names_count).map(str::to_owned),
            server_side: entries
                .filter(|entry| is_count_applied(entry))
                .map(|entry| entry["time"].clone())
                .collect(),
        };
        (found.client_side.is_some() || !found.server_side.is_empty()).then_some(found)
    }
}

/// Whether an entry is of a server-side apply that names the count, and so owns the field.
fn is_count_applied(entry: &Value) -> bool {
    // What is written through `scale` is a decision, not a manifest.
    entry["operation"] == "Apply"
        && entry.get("subresource").is_none_or(|subresource| subresource == "")
        && entry["fieldsV1"]["f:spec"].get("f:replicas").is_some()
}

fn is_of_scaling(key: &str) -> bool {
    let is_under_prefix = ANNOTATION_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    let is_of_injection = INJECTION_ANNOTATIONS.contains(&key);
    key != PROGRESS_DEADLINE_ANNOTATION && is_under_prefix && !is_of_injection
}

/// The problems of settings that are refused, or the warnings of those that are accepted, one line each.
fn findings_of<Settings>(read: Result<CheckedValue<Settings>, Vec<Problem>>) -> Findings<String> {
    match read {
        Ok(checked) => Findings { problems: Vec::new(), warnings: lines(checked.warnings) },
        Err(problems) => Findings { problems: lines(problems), warnings: Vec::new() },
    }
}

fn lines(problems: Vec<Problem>) -> Vec<String> {
    problems.into_iter().map(|problem| problem.message).collect()
}

#[cfg(test)]
mod tests;
