//! Documents of class hpa that stand alone, of kind `HorizontalPodAutoscaler`. (The one in a Service's
//! annotation is read with all other annotations.)
//!
//! On one machine the only thing that such a document can scale is a Service of the same files. What it says
//! is checked where all of class hpa is (`settings::hpa::reading`); here its text becomes a tree, and what is
//! wrong with it finds its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use settings::hpa::reading::{self, HpaDocument, ScaleTarget};
use vocabulary::{Problem, RevisionName, printable, shown};

use crate::manifest::fields::Report;
use crate::manifest::yaml::{TextPlace, YamlNode, YamlValue};

/// The only kind of object that a `HorizontalPodAutoscaler` scales on one machine.
const TARGET_KIND: &str = "Service";

/// A document and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedAutoscaler {
    /// The file, as the user named it.
    pub(crate) file: PathBuf,
    /// Line and column at which the document begins.
    pub(crate) place: TextPlace,
    /// Its name and place for people.
    pub(crate) title: String,
    /// What the document says, checked as class hpa checks it.
    pub(crate) document: HpaDocument,
}

/// All documents of the files, by the Service that each scales.
#[derive(Debug, Default)]
pub(crate) struct Autoscalers {
    sound: BTreeMap<RevisionName, PlacedAutoscaler>,
    /// Services whose document was refused: they stay as they were.
    refused: BTreeSet<RevisionName>,
}

impl Autoscalers {
    /// Reads a document of kind `HorizontalPodAutoscaler`.
    pub(crate) fn read(&mut self, node: &YamlNode, report: &mut Report) {
        let json = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
        let read = reading::read_document(&tree_of(node), json);
        let target = target_of(node);
        let checked = match read {
            Ok(checked) => checked,
            Err(problems) => {
                self.refused.extend(target);
                return refuse_all(problems, node, report);
            }
        };
        for warning in checked.warnings {
            report.warn(place_of(&warning.key, node), warning.message);
        }
        let (scale_target, document) = checked.value;
        let Some(service) = service_of(&scale_target, node, report) else { return };
        let (line, column) = node.place;
        let title = format!(
            "the HorizontalPodAutoscaler {} ({}:{line}:{column})",
            scale_target.document,
            report.file().display()
        );
        if let Some(first) = self.sound.get(&service) {
            let (short, first) = (service.name(), &first.title);
            let message =
                format!("spec.scaleTargetRef is the Service {short}, which {first} scales already; keep one");
            report.refuse(place_of("spec.scaleTargetRef", node), message);
            self.refused.insert(service);
            return;
        }
        let placed = PlacedAutoscaler { file: report.file().to_owned(), place: node.place, title, document };
        self.sound.insert(service, placed);
    }

    /// The document of a Service.
    pub(crate) fn of(&self, service: &RevisionName) -> Option<&PlacedAutoscaler> {
        self.sound.get(service)
    }

    /// Services without a document because theirs was refused.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &RevisionName> {
        self.refused.iter()
    }

    /// Refuses documents whose Service stands nowhere.
    pub(crate) fn refuse_strays(&self, is_known: impl Fn(&RevisionName) -> bool) -> Vec<Report> {
        let strays = self.sound.iter().filter(|(service, _)| !is_known(service));
        let report = |(service, placed): (&RevisionName, &PlacedAutoscaler)| {
            let mut report = Report::about(&placed.file);
            let (name, namespace) = (service.name(), service.namespace());
            let message = format!(
                "spec.scaleTargetRef is the Service {name} of namespace {namespace}, which stands in no file; \
                 write its name, or remove this document"
            );
            report.refuse(placed.place, message);
            report
        };
        strays.map(report).collect()
    }
}

/// The Service that a document scales.
fn service_of(target: &ScaleTarget, node: &YamlNode, report: &mut Report) -> Option<RevisionName> {
    let place = place_of("spec.scaleTargetRef", node);
    let (kind, name) = (&*target.target.kind, &*target.target.name);
    if kind != TARGET_KIND {
        let (kind, name) = (printable(kind), printable(name));
        let message = format!(
            "spec.scaleTargetRef is {kind} {name}; on one machine an autoscaler scales a {TARGET_KIND} of \
             serving.knative.dev/v1: write kind: {TARGET_KIND} and its name"
        );
        report.refuse(place, message);
        return None;
    }
    let namespace = target.namespace.as_deref().unwrap_or("default");
    let service = RevisionName::new(namespace, "service", name).ok();
    if service.is_none() {
        report.refuse(place, format!("spec.scaleTargetRef.name is {}, which names no Service", shown(name)));
    }
    service
}

fn refuse_all(problems: Vec<Problem>, node: &YamlNode, report: &mut Report) {
    for problem in problems {
        report.refuse(place_of(&problem.key, node), problem.message);
    }
}

/// The Service that a document means, if so much of it can be read.
fn target_of(node: &YamlNode) -> Option<RevisionName> {
    let target = node.field("spec")?.field("scaleTargetRef")?;
    let namespace = node.field("metadata").and_then(|metadata| metadata.field("namespace")?.text());
    let name = target.field("name")?.text()?;
    RevisionName::new(namespace.unwrap_or("default"), "service", name).ok()
}

/// The place of a path such as `spec.metrics[1].resource.target`, or of the nearest thing around it that is
/// there.
pub fn place_of(path: &str, document: &YamlNode) -> TextPlace {
    let mut node = document;
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        let inner = match (&node.value, step.strip_suffix(']')) {
            (YamlValue::List(items), Some(index)) => {
                index.parse().ok().and_then(|index: usize| items.get(index))
            }
            (
                YamlValue::List(_)
                | YamlValue::Map(_)
                | YamlValue::Null
                | YamlValue::Bool(_)
                | YamlValue::Integer(_)
                | YamlValue::Number(_)
                | YamlValue::Text(_),
                _,
            ) => node.field(step),
        };
        let Some(inner) = inner else { break };
        node = inner;
    }
    node.place
}

/// A document without places, as class hpa and `ebb import` read it.
pub fn tree_of(node: &YamlNode) -> reading::DocumentNode {
    match &node.value {
        YamlValue::Null => reading::DocumentNode::Null,
        YamlValue::Bool(value) => reading::DocumentNode::Boolean(*value),
        // No field takes so large a number; as text it is shown as it was written.
        YamlValue::Integer(number) => i64::try_from(*number)
            .map_or_else(|_| reading::DocumentNode::Text(number.to_string()), reading::DocumentNode::Integer),
        YamlValue::Number(number) => reading::DocumentNode::Float(*number),
        YamlValue::Text(text) => reading::DocumentNode::Text(text.clone()),
        YamlValue::List(items) => reading::DocumentNode::List(items.iter().map(tree_of).collect()),
        YamlValue::Map(entries) => reading::DocumentNode::Map(
            entries.iter().map(|(key, value)| (key.text.clone(), tree_of(value))).collect(),
        ),
    }
}
