//! Reading a mapping field by field, noting everything that is wrong instead of stopping at the first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use settings::lacks_unit;
use vocabulary::{Findings, did_you_mean};

use crate::manifest::Trouble;
use crate::manifest::data_name::DataName;
use crate::manifest::yaml::{TextPlace, YamlKey, YamlNode, YamlValue};

/// What `kubectl get -o yaml` adds to a manifest.
pub(crate) const WRITTEN_BY_SERVERS: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Collects what is to be said about one file.
#[derive(Debug)]
pub(crate) struct Report {
    file: PathBuf,
    pub(crate) findings: Findings<Trouble>,
    /// Commands and directories that this machine does not have.
    pub(crate) absences: Vec<Trouble>,
    /// Documents from which environment variables are taken, whether they are there or not.
    pub(crate) uses: BTreeSet<DataName>,
}

impl Report {
    /// About this file, as the user named it.
    pub(crate) fn about(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            findings: Findings::default(),
            absences: Vec::new(),
            uses: BTreeSet::new(),
        }
    }

    /// Notes a problem for which the part is refused.
    pub(crate) fn refuse(&mut self, place: impl Into<Option<TextPlace>>, message: impl Into<String>) {
        self.findings.problems.push(self.trouble(place.into(), message.into()));
    }

    /// Notes something that was accepted.
    pub(crate) fn warn(&mut self, place: impl Into<Option<TextPlace>>, message: impl Into<String>) {
        self.findings.warnings.push(self.trouble(place.into(), message.into()));
    }

    /// Notes something that this machine does not have.
    pub(crate) fn note_absence(&mut self, place: impl Into<Option<TextPlace>>, message: impl Into<String>) {
        self.absences.push(self.trouble(place.into(), message.into()));
    }

    /// How much was refused so far.
    pub(crate) fn refusals(&self) -> usize {
        self.findings.problems.len()
    }

    /// The file that this is about.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    fn trouble(&self, place: Option<TextPlace>, message: String) -> Trouble {
        Trouble { file: self.file.clone(), place, message }
    }
}

/// A mapping that is being read: what was asked for is known, what is left at the end is not.
#[derive(Debug)]
pub(crate) struct ManifestFields<'n> {
    /// Where it is, as a person would write it (`spec.template.spec`); empty at the top.
    path: String,
    /// Line and column at which the mapping begins.
    pub(crate) place: TextPlace,
    entries: &'n [(YamlKey, YamlNode)],
    known: Vec<&'static str>,
}

/// A field that a Kubernetes user knows, and why it is refused here.
pub(crate) type RefusedField = (&'static str, &'static str);

impl<'n> ManifestFields<'n> {
    /// Begins to read a node that must be a mapping.
    pub(crate) fn of(node: &'n YamlNode, path: impl Into<String>, report: &mut Report) -> Option<Self> {
        let path = path.into();
        match &node.value {
            YamlValue::Map(entries) => Some(Self { path, place: node.place, entries, known: Vec::new() }),
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Integer(_)
            | YamlValue::Number(_)
            | YamlValue::Text(_)
            | YamlValue::List(_) => {
                let what = if path.is_empty() { "a manifest" } else { &path };
                report.refuse(node.place, format!("{what} must be a mapping, not {}", node.value.kind()));
                None
            }
        }
    }

    /// Where it is, as a person would write it; empty at the top.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The full path of one of its fields.
    pub(crate) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A field's node; a field without a value counts as absent.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<&'n YamlNode> {
        self.known.push(name);
        let (_, node) = self.entries.iter().find(|(key, _)| key.text == name)?;
        (node.value != YamlValue::Null).then_some(node)
    }

    /// Fields that are accepted without a warning and have no effect, because exported manifests contain
    /// them.
    pub(crate) fn ignore(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// A field that is accepted but has no effect here.
    pub(crate) fn warn_of(&mut self, name: &'static str, why: &str, report: &mut Report) {
        if let Some(node) = self.take(name) {
            report.warn(node.place, format!("{} has no effect: {why}", self.path_of(name)));
        }
    }

    /// A field that must be a text.
    pub(crate) fn text(&mut self, name: &'static str, report: &mut Report) -> Option<&'n str> {
        let node = self.take(name)?;
        text_at(node, &self.path_of(name), report)
    }

    /// A field that must be a whole number within `range`.
    pub(crate) fn integer(
        &mut self,
        name: &'static str,
        range: std::ops::RangeInclusive<u32>,
        report: &mut Report,
    ) -> Option<u32> {
        let node = self.take(name)?;
        let number = match node.value {
            YamlValue::Integer(number) => u32::try_from(number).ok().filter(|number| range.contains(number)),
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Number(_)
            | YamlValue::Text(_)
            | YamlValue::List(_)
            | YamlValue::Map(_) => None,
        };
        if number.is_none() {
            let (path, found) = (self.path_of(name), shown(node));
            let (low, high) = (range.start(), range.end());
            let allowed =
                if low == high { low.to_string() } else { format!("a whole number from {low} to {high}") };
            report.refuse(node.place, format!("{path} is {found}; write {allowed}"));
        }
        number
    }

    /// A field that must be a name that can be part of a host.
    pub(crate) fn label(&mut self, name: &'static str, report: &mut Report) -> Option<&'n str> {
        let place = self.take(name)?.place;
        let text = self.text(name, report)?;
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_label = (1..=63).contains(&text.len())
            && text.bytes().all(legal)
            && !text.starts_with('-')
            && !text.ends_with('-');
        if is_label {
            return Some(text);
        }
        let path = self.path_of(name);
        report.refuse(
            place,
            format!(
                "{path} is {}; use 1 to 63 of a-z, 0-9 and \"-\", not beginning or ending with \"-\"",
                vocabulary::shown(text)
            ),
        );
        None
    }

    /// A field that must be true or false.
    pub(crate) fn switch(&mut self, name: &'static str, report: &mut Report) -> Option<bool> {
        let node = self.take(name)?;
        if let YamlValue::Bool(value) = node.value {
            return Some(value);
        }
        let (path, found) = (self.path_of(name), shown(node));
        report.refuse(node.place, format!("{path} is {found}; write true or false"));
        None
    }

    /// A field that must be a mapping; its reader.
    pub(crate) fn mapping(&mut self, name: &'static str, report: &mut Report) -> Option<ManifestFields<'n>> {
        let node = self.take(name)?;
        ManifestFields::of(node, self.path_of(name), report)
    }

    /// A field that must be a list; each item with its path.
    pub(crate) fn list(
        &mut self,
        name: &'static str,
        report: &mut Report,
    ) -> Option<Vec<(String, &'n YamlNode)>> {
        let node = self.take(name)?;
        let path = self.path_of(name);
        if let YamlValue::List(items) = &node.value {
            Some(items.iter().enumerate().map(|(index, item)| (format!("{path}[{index}]"), item)).collect())
        } else {
            report.refuse(node.place, format!("{path} must be a list, not {}", node.value.kind()));
            None
        }
    }

    /// A field that must be a list of texts.
    pub(crate) fn texts(&mut self, name: &'static str, report: &mut Report) -> Option<Vec<String>> {
        let items = self.list(name, report)?;
        let texts = items.iter().filter_map(|(path, item)| text_at(item, path, report));
        Some(texts.map(str::to_owned).collect())
    }

    /// A field that must be a mapping of texts, such as labels; each with the place of its key.
    pub(crate) fn text_map(
        &mut self,
        name: &'static str,
        report: &mut Report,
    ) -> Vec<(&'n YamlKey, &'n str)> {
        let Some(fields) = self.mapping(name, report) else { return Vec::new() };
        fields
            .entries
            .iter()
            .filter_map(|(key, node)| {
                let path = format!("{}[{:?}]", fields.path, key.text);
                // What is advised must be accepted.
                let unit = |found: &str| if lacks_unit(&key.text, found) { "s" } else { "" };
                text_with_unit(node, &path, unit, report).map(|text| (key, text))
            })
            .collect()
    }

    /// Ends the reading: refuses what was never asked for, the `refused` with their own reason.
    pub(crate) fn finish(self, refused: &[RefusedField], report: &mut Report) {
        for (key, _) in self.entries {
            let name = key.text.as_str();
            if self.known.contains(&name) {
                continue;
            }
            let path = self.path_of(name);
            if let Some((_, why)) = refused.iter().find(|(field, _)| *field == name) {
                report.refuse(key.place, format!("{path} is not supported on one machine: {why}"));
                continue;
            }
            let names = self.known.iter().copied().chain(refused.iter().map(|(field, _)| *field));
            report.refuse(key.place, format!("unknown field {path}{}", did_you_mean(name, names)));
        }
    }
}

/// A node that must be a text.
fn text_at<'n>(node: &'n YamlNode, path: &str, report: &mut Report) -> Option<&'n str> {
    text_with_unit(node, path, |_| "", report)
}

/// The same; `unit` says what a number lacks besides its quotes.
fn text_with_unit<'n>(
    node: &'n YamlNode,
    path: &str,
    unit: impl Fn(&str) -> &'static str,
    report: &mut Report,
) -> Option<&'n str> {
    match &node.value {
        YamlValue::Text(text) => return Some(text),
        YamlValue::Integer(_) | YamlValue::Number(_) | YamlValue::Bool(_) => {
            let found = shown(node);
            let unit = unit(&found);
            report
                .refuse(node.place, format!("{path} is {found} but must be a text; write \"{found}{unit}\""));
        }
        YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) => {
            report.refuse(node.place, format!("{path} must be a text, not {}", node.value.kind()));
        }
    }
    None
}

/// A value as a message shows it: a number as it is written.
fn shown(node: &YamlNode) -> String {
    if let Some(written) = &node.written {
        return vocabulary::printable(written);
    }
    let value = &node.value;
    match value {
        YamlValue::Bool(value) => value.to_string(),
        YamlValue::Integer(value) => value.to_string(),
        YamlValue::Number(value) => value.to_string(),
        YamlValue::Text(text) => vocabulary::shown(text),
        YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) => value.kind().to_owned(),
    }
}
