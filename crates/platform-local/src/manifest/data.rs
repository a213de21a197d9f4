//! What do the `ConfigMap`s and `Secret`s of the files hold? Environment variables may be taken from them.
//!
//! Values are looked up when a Service is read, so they are part of its template: an edit of a document
//! starts new pods, as an edit of the Service does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::manifest::data_name::{DataKind, DataName};
use crate::manifest::fields::{ManifestFields, Report};
use crate::manifest::yaml::{TextPlace, YamlKey, YamlNode};

/// The namespace of a document that names none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// One value. What it is never gets into a log.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Datum {
    /// A text that an environment variable can hold.
    Text(String),
    /// Anything else, such as a key in binary form.
    Binary,
}

impl fmt::Debug for Datum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Text(_) => "(a text)",
            Self::Binary => "(binary)",
        })
    }
}

/// A document and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedData {
    /// The file, as the user named it.
    pub(crate) file: PathBuf,
    /// Line and column at which the document begins.
    pub(crate) place: TextPlace,
    /// The values of `data` and, of a Secret, `stringData`, by key.
    pub(crate) values: BTreeMap<String, Datum>,
}

/// All documents that hold data, by kind, namespace and name.
pub(crate) type DataDocuments = BTreeMap<DataName, PlacedData>;

/// The documents that stand in the files at one moment.
#[derive(Debug, Default)]
pub(crate) struct DataReading {
    /// The documents that can be used.
    pub(crate) found: DataDocuments,
    /// The names of documents that stand in a file but were refused.
    pub(crate) refused: BTreeSet<DataName>,
}

impl DataReading {
    /// Reads a document of this kind.
    pub(crate) fn read(&mut self, kind: DataKind, document: &YamlNode, report: &mut Report) {
        let Some(name) = name_of(kind, document) else {
            report.refuse(document.place, format!("metadata.name is missing: the {kind} needs a name"));
            return;
        };
        if let Some(first) = self.found.get(&name) {
            let (line, column) = first.place;
            let first = format!("{}:{line}:{column}", first.file.display());
            report.refuse(document.place, format!("{name} is given twice, first in {first}; keep one"));
            self.refused.insert(name);
            return;
        }
        let refused_before = report.refusals();
        let values = values(kind, document, report);
        if report.refusals() > refused_before {
            self.refused.insert(name);
            return;
        }
        let placed = PlacedData { file: report.file().to_owned(), place: document.place, values };
        self.found.insert(name, placed);
    }

    /// The documents in force: a document that is refused, or in no file any more and not `gone` for good,
    /// stays as in `last_good`.
    pub(crate) fn merged_over(
        &self,
        last_good: &DataDocuments,
        is_gone: impl Fn(&DataName) -> bool,
    ) -> DataDocuments {
        let mut documents = self.found.clone();
        documents.retain(|name, _| !self.refused.contains(name));
        for (name, placed) in last_good {
            if !documents.contains_key(name) && (self.refused.contains(name) || !is_gone(name)) {
                documents.insert(name.clone(), placed.clone());
            }
        }
        documents
    }

    /// Whether it stands in a file, refused or not.
    pub(crate) fn is_present(&self, name: &DataName) -> bool {
        self.found.contains_key(name) || self.refused.contains(name)
    }
}

/// The document's name, if it can be read.
pub(crate) fn name_of(kind: DataKind, document: &YamlNode) -> Option<DataName> {
    let metadata = document.field("metadata")?;
    let namespace = metadata.field("namespace").and_then(YamlNode::text).unwrap_or(DEFAULT_NAMESPACE);
    let name = metadata.field("name")?.text().filter(|name| !name.is_empty())?;
    Some(DataName { kind, namespace: namespace.to_owned(), name: name.to_owned() })
}

fn values(kind: DataKind, document: &YamlNode, report: &mut Report) -> BTreeMap<String, Datum> {
    let Some(mut fields) = ManifestFields::of(document, "", report) else { return BTreeMap::new() };
    fields.ignore(&["apiVersion", "kind", "metadata", "immutable"]);
    let data = fields.text_map("data", report);
    let values = match kind {
        DataKind::ConfigMap => {
            // Environment variables are not taken from there on a cluster either.
            fields.ignore(&["binaryData"]);
            texts(&data)
        }
        DataKind::Secret => {
            fields.ignore(&["type"]);
            let mut values = decoded(&data, report);
            values.extend(texts(&fields.text_map("stringData", report)));
            values
        }
    };
    fields.finish(&[], report);
    values
}

fn texts(data: &[(&YamlKey, &str)]) -> BTreeMap<String, Datum> {
    data.iter().map(|(key, value)| (key.text.clone(), datum((*value).to_owned()))).collect()
}

fn decoded(data: &[(&YamlKey, &str)], report: &mut Report) -> BTreeMap<String, Datum> {
    let mut values = BTreeMap::new();
    for (key, value) in data {
        // `base64` and editors break long lines.
        let written: String = value.split_ascii_whitespace().collect();
        match BASE64_STANDARD.decode(written) {
            Ok(bytes) => {
                values.insert(key.text.clone(), String::from_utf8(bytes).map_or(Datum::Binary, datum));
            }
            // The value is a secret: what it is stays unsaid.
            Err(_) => report.refuse(
                key.place,
                format!("data[{:?}] is not base64; write it under stringData as it is", key.text),
            ),
        }
    }
    values
}

fn datum(text: String) -> Datum {
    if text.contains('\0') { Datum::Binary } else { Datum::Text(text) }
}
