//! The documents of a file, and which kind each is.

use std::path::Path;

use runtime::OBSERVABILITY_CONFIG_MAP;
use settings::CONFIG_MAP_NAME;
use vocabulary::did_you_mean;

use crate::manifest::data_name::DataKind;
use crate::manifest::fields::Report;
use crate::manifest::source::ForeignKinds;
use crate::manifest::yaml::{YamlNode, YamlValue};

/// The `apiVersion` of Knative Services.
pub(super) const SERVICES: &str = "serving.knative.dev/v1";
/// The `apiVersion` of documents of kind `DomainMapping`.
const MAPPINGS: &str = "serving.knative.dev/v1beta1";

/// A document and the file that it stands in.
#[derive(Debug)]
pub(super) struct Document<'f> {
    pub(super) file: &'f Path,
    pub(super) node: YamlNode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentKind {
    Service,
    DomainMapping,
    Autoscaler,
    ConfigMap,
    Observability,
    Data(DataKind),
    /// Something for a cluster, skipped.
    Foreign,
    Unknown,
}

/// The documents in a document: `kubectl get -o yaml` wraps several in a `List`.
pub fn items(document: YamlNode) -> Vec<YamlNode> {
    if document.field("kind").and_then(YamlNode::text) != Some("List") {
        return vec![document];
    }
    let YamlValue::Map(entries) = document.value else { return Vec::new() };
    let mut items = entries.into_iter().filter(|(key, _)| key.text == "items").map(|(_, items)| items.value);
    match items.next() {
        Some(YamlValue::List(items)) => items,
        Some(_) | None => Vec::new(),
    }
}

pub(super) fn place_of(document: &Document<'_>) -> String {
    let (line, column) = document.node.place;
    format!("{}:{line}:{column}", document.file.display())
}

pub(super) fn kind_of(document: &YamlNode, foreign: ForeignKinds, report: &mut Report) -> DocumentKind {
    let text = |name| document.field(name).and_then(YamlNode::text);
    let (Some(version), Some(kind)) = (text("apiVersion"), text("kind")) else {
        report.refuse(
            document.place,
            format!(
                "is no manifest: apiVersion and kind must say what it is \
             (apiVersion: {SERVICES}, kind: Service)"
            ),
        );
        return DocumentKind::Unknown;
    };
    let name_of = || document.field("metadata")?.field("name")?.text();
    match (version, kind) {
        (SERVICES, "Service") => DocumentKind::Service,
        (MAPPINGS, "DomainMapping") => DocumentKind::DomainMapping,
        (version, "HorizontalPodAutoscaler")
            if version.starts_with("autoscaling/")
                && (foreign == ForeignKinds::Refused || scales_service(document)) =>
        {
            DocumentKind::Autoscaler
        }
        ("v1", "ConfigMap") if name_of() == Some(CONFIG_MAP_NAME) => DocumentKind::ConfigMap,
        ("v1", "ConfigMap") if name_of() == Some(OBSERVABILITY_CONFIG_MAP) => DocumentKind::Observability,
        ("v1", "ConfigMap") => DocumentKind::Data(DataKind::ConfigMap),
        ("v1", "Secret") => DocumentKind::Data(DataKind::Secret),
        _ if foreign == ForeignKinds::Skipped => {
            let name = name_of().unwrap_or("without a name");
            report.warn(document.place, format!("{kind} {name} of {version} is skipped"));
            DocumentKind::Foreign
        }
        (_, kind) => {
            refuse_foreign(document, version, kind, report);
            DocumentKind::Unknown
        }
    }
}

/// Where documents for a cluster are skipped, so is an autoscaler of something that is skipped.
fn scales_service(document: &YamlNode) -> bool {
    let target = || document.field("spec")?.field("scaleTargetRef")?.field("kind")?.text();
    target() == Some("Service")
}

fn refuse_foreign(document: &YamlNode, version: &str, kind: &str, report: &mut Report) {
    let place_of = |field| document.field(field).map(|node| node.place);
    if kind == "Service" {
        report.refuse(
            place_of("apiVersion"),
            format!("apiVersion is {version:?}; a Service that ebb can run has apiVersion: {SERVICES}"),
        );
        return;
    }
    let near =
        did_you_mean(kind, ["Service", "ConfigMap", "Secret", "HorizontalPodAutoscaler", "DomainMapping"]);
    let advice = if near.is_empty() { "; --ignore-foreign skips what ebb does not run" } else { &near };
    report.refuse(
        place_of("kind"),
        format!(
            "kind is {kind} of {version}; what can be read is Service of {SERVICES}, \
             DomainMapping of {MAPPINGS}, HorizontalPodAutoscaler of autoscaling/v2, ConfigMap and Secret of \
             v1{advice}"
        ),
    );
}
