//! The environment variables of a container: written, or taken from a `ConfigMap`, a `Secret` or the pod
//! itself.

use vocabulary::{did_you_mean, shown};

use crate::manifest::data::{DataDocuments, Datum, PlacedData};
use crate::manifest::data_name::{DataKind, DataName};
use crate::manifest::fields::{ManifestFields, Report};
use crate::manifest::yaml::{TextPlace, YamlNode};
use crate::pod::{DownwardFact, EnvValue};

/// Variables that ebb sets for the app, as Knative does.
const RESERVED: [&str; 4] = ["PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"];

/// The facts about a pod that a variable can hold, by Kubernetes' names.
const FACTS: [(&str, DownwardFact); 3] = [
    ("metadata.name", DownwardFact::Name),
    ("metadata.namespace", DownwardFact::Namespace),
    ("status.podIP", DownwardFact::Address),
];

/// The documents from which a container takes values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableSources<'a> {
    /// The Service's namespace, in which documents are looked for.
    pub(crate) namespace: &'a str,
    /// The documents of all namespaces that hold data.
    pub(crate) documents: &'a DataDocuments,
}

type DeclaredVariables = Vec<(String, EnvValue)>;

/// Reads `envFrom` and `env`; what `env` says comes later and so has the last word.
pub(crate) fn read(
    container: &mut ManifestFields<'_>,
    sources: VariableSources<'_>,
    report: &mut Report,
) -> DeclaredVariables {
    let mut variables = DeclaredVariables::new();
    for (path, item) in container.list("envFrom", report).unwrap_or_default() {
        if let Some(fields) = ManifestFields::of(item, path, report) {
            variables.extend(all_of_a_document(fields, sources, report));
        }
    }
    let mut names: Vec<String> = Vec::new();
    for (path, item) in container.list("env", report).unwrap_or_default() {
        let Some((name, value)) = variable(item, path, sources, report) else { continue };
        if names.contains(&name) {
            let path = container.path_of("env");
            report.refuse(item.place, format!("{path} names {name} twice; keep one"));
        }
        names.push(name.clone());
        variables.extend(value.map(|value| (name, value)));
    }
    variables
}

/// A variable and its value, which may be absent if it is optional.
fn variable(
    item: &YamlNode,
    path: String,
    sources: VariableSources<'_>,
    report: &mut Report,
) -> Option<(String, Option<EnvValue>)> {
    let mut fields = ManifestFields::of(item, path, report)?;
    let place = fields.place;
    let name = fields.text("name", report).map(str::to_owned);
    let written = fields.text("value", report);
    let value = match fields.mapping("valueFrom", report) {
        Some(source) => {
            if written.is_some_and(|text| !text.is_empty()) {
                let path = fields.path_of("valueFrom");
                report.refuse(source.place, format!("{path} stands beside a value; keep one of them"));
            }
            value_from(source, sources, report)
        }
        None => Some(EnvValue::Written(written.unwrap_or_default().to_owned())),
    };
    let path = fields.path_of("name");
    match name.as_deref() {
        None if fields.take("name").is_none() => report.refuse(place, format!("{path} is missing")),
        Some(name) if !can_be_a_name(name) => {
            report.refuse(
                place,
                format!("{path} is {}, which cannot name an environment variable", shown(name)),
            );
        }
        Some(name) if RESERVED.contains(&name) => {
            report.refuse(place, format!("{path} is {name}, which ebb sets itself; remove it"));
        }
        None | Some(_) => {}
    }
    fields.finish(&[], report);
    Some((name?, value))
}

fn can_be_a_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn value_from(
    mut source: ManifestFields<'_>,
    sources: VariableSources<'_>,
    report: &mut Report,
) -> Option<EnvValue> {
    let config_map = source.mapping("configMapKeyRef", report);
    let secret = source.mapping("secretKeyRef", report);
    let fact = source.mapping("fieldRef", report);
    let (place, path) = (source.place, source.path().to_owned());
    let refused_before = report.refusals();
    let elsewhere = "write the value itself under value";
    source.finish(&[("fileKeyRef", elsewhere), ("resourceFieldRef", elsewhere)], report);
    if report.refusals() > refused_before {
        return None;
    }
    match (config_map, secret, fact) {
        (Some(reference), None, None) => one_of_a_document(DataKind::ConfigMap, reference, sources, report),
        (None, Some(reference), None) => one_of_a_document(DataKind::Secret, reference, sources, report),
        (None, None, Some(field)) => fact_of(field, report),
        (_, _, _) => {
            let allowed = "configMapKeyRef, secretKeyRef and fieldRef";
            report.refuse(place, format!("{path} must be exactly one of {allowed}"));
            None
        }
    }
}

fn fact_of(mut field: ManifestFields<'_>, report: &mut Report) -> Option<EnvValue> {
    field.ignore(&["apiVersion"]);
    let place = field.take("fieldPath").map_or(field.place, |node| node.place);
    let (path, written) = (field.path_of("fieldPath"), field.text("fieldPath", report));
    field.finish(&[], report);
    let fact = FACTS.iter().find(|(name, _)| Some(*name) == written).map(|(_, fact)| *fact);
    if fact.is_none() {
        let names: Vec<&str> = FACTS.iter().map(|(name, _)| *name).collect();
        let found = written.map_or_else(|| "missing".to_owned(), |written| format!("{written:?}"));
        report.refuse(place, format!("{path} is {found}; on one machine it can be {}", names.join(", ")));
    }
    fact.map(|fact| EnvValue::Fact { fact })
}

/// A reference to a document, and what it leads to.
struct Reference<'a> {
    /// Line and column of the reference, for what is wrong with it.
    place: TextPlace,
    is_optional: bool,
    /// The document, unless there is none.
    document: Option<(DataName, &'a PlacedData)>,
}

fn follow<'a>(
    kind: DataKind,
    fields: &mut ManifestFields<'_>,
    sources: VariableSources<'a>,
    report: &mut Report,
) -> Option<Reference<'a>> {
    let place = fields.take("name").map_or(fields.place, |node| node.place);
    let is_optional = fields.switch("optional", report).unwrap_or(false);
    let Some(name) = fields.text("name", report).filter(|name| !name.is_empty()) else {
        if fields.take("name").is_none() {
            report.refuse(place, format!("{} is missing: the {kind}'s name", fields.path_of("name")));
        }
        return None;
    };
    let full = DataName { kind, namespace: sources.namespace.to_owned(), name: name.to_owned() };
    report.uses.insert(full.clone());
    let found = sources.documents.get(&full);
    if found.is_none() && !is_optional {
        let path = fields.path_of("name");
        let there = sources.documents.keys().filter(|other| other.kind == kind);
        let near = did_you_mean(name, there.map(|other| other.name.as_str()));
        let advice = if near.is_empty() { "; add its document, or write optional: true" } else { &near };
        report.refuse(place, format!("{path} is {}, but no file holds {full}{advice}", shown(name)));
    }
    Some(Reference { place, is_optional, document: found.map(|found| (full, found)) })
}

fn one_of_a_document(
    kind: DataKind,
    mut fields: ManifestFields<'_>,
    sources: VariableSources<'_>,
    report: &mut Report,
) -> Option<EnvValue> {
    let key_place = fields.take("key").map_or(fields.place, |node| node.place);
    let (path, key) = (fields.path_of("key"), fields.text("key", report));
    if key.is_none() && fields.take("key").is_none() {
        report.refuse(key_place, format!("{path} is missing: which of its values"));
    }
    let reference = follow(kind, &mut fields, sources, report);
    fields.finish(&[], report);
    let (key, Reference { is_optional, document, .. }) = (key?, reference?);
    let (name, document) = document?;
    match document.values.get(key) {
        Some(Datum::Text(text)) => return Some(EnvValue::Literal { literal: text.clone() }),
        Some(Datum::Binary) => report.refuse(
            key_place,
            format!("{path} is {}, whose value in {name} is binary; a variable holds a text", shown(key)),
        ),
        None if is_optional => {}
        None => {
            let near = did_you_mean(key, document.values.keys().map(String::as_str));
            report.refuse(key_place, format!("{path} is {}, which {name} does not hold{near}", shown(key)));
        }
    }
    None
}

fn all_of_a_document(
    mut source: ManifestFields<'_>,
    sources: VariableSources<'_>,
    report: &mut Report,
) -> DeclaredVariables {
    let prefix = source.text("prefix", report).unwrap_or_default();
    let config_map = source.mapping("configMapRef", report);
    let secret = source.mapping("secretRef", report);
    let (place, path) = (source.place, source.path().to_owned());
    source.finish(&[], report);
    let (kind, mut fields) = match (config_map, secret) {
        (Some(fields), None) => (DataKind::ConfigMap, fields),
        (None, Some(fields)) => (DataKind::Secret, fields),
        (Some(_), Some(_)) | (None, None) => {
            report.refuse(place, format!("{path} must be exactly one of configMapRef and secretRef"));
            return DeclaredVariables::new();
        }
    };
    let reference = follow(kind, &mut fields, sources, report);
    fields.finish(&[], report);
    let Some(Reference { place, document: Some((name, document)), .. }) = reference else {
        return DeclaredVariables::new();
    };
    let mut variables = DeclaredVariables::new();
    let mut skipped = Vec::new();
    for (key, value) in &document.values {
        let variable = format!("{prefix}{key}");
        match value {
            Datum::Text(text) if can_be_a_name(&variable) && !RESERVED.contains(&variable.as_str()) => {
                variables.push((variable, EnvValue::Literal { literal: text.clone() }));
            }
            Datum::Text(_) | Datum::Binary => skipped.push(variable),
        }
    }
    if !skipped.is_empty() {
        let skipped = skipped.join(", ");
        let why = "ebb sets it itself, or it cannot be a variable";
        report.warn(place, format!("{path} takes everything of {name} but {skipped}: {why}"));
    }
    variables
}
