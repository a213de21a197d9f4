//! What all files say at one moment, flawless or not, and what applies of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scaling::ClusterConfig;
use scaling::config::CONFIG_MAP_NAME;
use vocabulary::RevisionName;

use crate::manifest::fields::{Report, did_you_mean};
use crate::manifest::service::{self, Surroundings};
use crate::manifest::yaml::{self, Node};
use crate::manifest::{Loaded, Placed, Trouble, config_map};

/// Far more than the manifests of one machine need; whoever names something else by mistake should not wait for it to be read.
const LARGEST_FILE: u64 = 4 << 20;

const SERVICES: &str = "serving.knative.dev/v1";

/// What all files say at one moment.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Refused parts.
    pub(crate) troubles: Vec<Trouble>,
    /// Accepted, but worth a word.
    pub(crate) warnings: Vec<Trouble>,
    /// Files that hold nothing.
    pub(crate) empty: BTreeSet<PathBuf>,
    services: BTreeMap<RevisionName, Placed>,
    /// Services that stand in a file but were refused.
    refused: BTreeSet<RevisionName>,
    /// Files with parts of which nobody can say what they are about.
    unclear: BTreeSet<PathBuf>,
    config: ConfigMap,
}

/// The ConfigMap in the files.
#[derive(Debug, Default)]
enum ConfigMap {
    #[default]
    Absent,
    Refused,
    Flawless {
        config: Arc<ClusterConfig>,
        file: PathBuf,
    },
}

/// A document and the file that it stands in.
#[derive(Debug)]
struct Document<'f> {
    file: &'f Path,
    node: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Service,
    ConfigMap,
    Unknown,
}

impl Reading {
    /// Reads all files. While the ConfigMap itself is refused, annotations are checked against that of `last_good`.
    pub(crate) fn of(files: &[PathBuf], domain: &str, last_good: &Loaded) -> Self {
        let mut reading = Self::default();
        let mut named = BTreeSet::new();
        let once = files.iter().filter(|file| named.insert(file.as_path()));
        let documents: Vec<Document<'_>> = once.flat_map(|file| reading.read_file(file)).collect();
        let kinds: Vec<Kind> = documents.iter().map(|document| reading.sort(document)).collect();
        let of_kind = |kind| {
            documents.iter().zip(&kinds).filter(move |(_, of)| **of == kind).map(|(document, _)| document)
        };
        reading.read_config_maps(of_kind(Kind::ConfigMap));
        let cluster = reading.config_over(last_good).0;
        reading.read_services(of_kind(Kind::Service), Surroundings { cluster: &cluster, domain });
        reading
    }

    /// What applies from now on: everything flawless, and the last good version of what is not. A Service is gone only if no file can
    /// still hold it.
    pub(crate) fn over(self, last_good: &Loaded) -> Loaded {
        let (cluster, cluster_file) = self.config_over(last_good);
        let Self { services, refused, unclear, .. } = self;
        let mut services: BTreeMap<RevisionName, Placed> =
            services.into_iter().filter(|(name, _)| !refused.contains(name)).collect();
        for (name, placed) in &last_good.services {
            let may_be_there = unclear.contains(&placed.file) && !services.contains_key(name);
            if may_be_there || refused.contains(name) {
                services.insert(name.clone(), placed.clone());
            }
        }
        Loaded { cluster, cluster_file, warnings: self.warnings, services }
    }

    /// The ConfigMap that applies, and the file that it stands in.
    fn config_over(&self, last_good: &Loaded) -> (Arc<ClusterConfig>, Option<PathBuf>) {
        let may_be_hidden = last_good.cluster_file.as_ref().is_some_and(|file| self.unclear.contains(file));
        match &self.config {
            ConfigMap::Flawless { config, file } => (Arc::clone(config), Some(file.clone())),
            ConfigMap::Absent if !may_be_hidden => (Arc::default(), None),
            ConfigMap::Absent | ConfigMap::Refused => {
                (Arc::clone(&last_good.cluster), last_good.cluster_file.clone())
            }
        }
    }

    fn read_file<'f>(&mut self, file: &'f Path) -> Vec<Document<'f>> {
        let (place, message) = match read_regular(file) {
            Ok(text) => match yaml::read_documents(&text) {
                Ok(nodes) => {
                    if nodes.is_empty() {
                        self.empty.insert(file.to_owned());
                    }
                    return nodes.into_iter().map(|node| Document { file, node }).collect();
                }
                Err(error) => (error.place, format!("is not YAML: {}", error.message)),
            },
            Err(error) => (None, format!("cannot be read: {error}")),
        };
        self.unclear.insert(file.to_owned());
        self.troubles.push(Trouble { file: file.to_owned(), place, message });
        Vec::new()
    }

    fn sort(&mut self, document: &Document<'_>) -> Kind {
        let mut report = Report::about(document.file);
        let kind = kind_of(&document.node, &mut report);
        if kind == Kind::Unknown || (kind == Kind::Service && service::name_of(&document.node).is_none()) {
            self.unclear.insert(document.file.to_owned());
        }
        self.take(report);
        kind
    }

    fn read_config_maps<'d>(&mut self, documents: impl Iterator<Item = &'d Document<'d>>) {
        let mut first: Option<&Document<'_>> = None;
        for document in documents {
            let mut report = Report::about(document.file);
            if let Some(first) = first {
                let first = place_of(first);
                report.refuse(
                    document.node.place,
                    format!("the ConfigMap {CONFIG_MAP_NAME} is given twice, first in {first}; keep one"),
                );
                self.config = ConfigMap::Refused;
            } else {
                first = Some(document);
                self.config = match config_map::read(&document.node, &mut report) {
                    Some(config) => {
                        let (config, file) = (Arc::new(config), document.file.to_owned());
                        ConfigMap::Flawless { config, file }
                    }
                    None => ConfigMap::Refused,
                };
            }
            self.take(report);
        }
    }

    fn read_services<'d>(
        &mut self,
        documents: impl Iterator<Item = &'d Document<'d>>,
        around: Surroundings<'_>,
    ) {
        let mut first_places: BTreeMap<RevisionName, String> = BTreeMap::new();
        for document in documents {
            let mut report = Report::about(document.file);
            let service = service::read(&document.node, around, &mut report);
            if let Some(name) = service::name_of(&document.node) {
                if let Some(first) = first_places.get(&name) {
                    let (short, namespace) = (name.name(), name.namespace());
                    report.refuse(
                        document.node.place,
                        format!(
                            "the Service {short} of namespace {namespace} is given twice, first in \
                             {first}; rename or remove one"
                        ),
                    );
                    self.refused.insert(name);
                } else {
                    first_places.insert(name.clone(), place_of(document));
                    if let Some(service) = service {
                        self.services.insert(name, Placed { file: document.file.to_owned(), service });
                    } else {
                        self.refused.insert(name);
                    }
                }
            }
            self.take(report);
        }
    }

    fn take(&mut self, report: Report) {
        self.troubles.extend(report.troubles);
        self.warnings.extend(report.warnings);
    }
}

/// A file that can be read again and again, as an edit needs it: a pipe would be empty the second time.
fn read_regular(file: &Path) -> io::Result<String> {
    let metadata = std::fs::metadata(file)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > LARGEST_FILE {
        return Err(io::Error::other(format!("it has more than {LARGEST_FILE} bytes")));
    }
    std::fs::read_to_string(file)
}

fn place_of(document: &Document<'_>) -> String {
    let (line, column) = document.node.place;
    format!("{}:{line}:{column}", document.file.display())
}

fn kind_of(document: &Node, report: &mut Report) -> Kind {
    let text = |name| document.field(name).and_then(Node::text);
    let (Some(version), Some(kind)) = (text("apiVersion"), text("kind")) else {
        report.refuse(
            document.place,
            format!(
                "is no manifest: apiVersion and kind must say what it is \
             (apiVersion: {SERVICES}, kind: Service)"
            ),
        );
        return Kind::Unknown;
    };
    match (version, kind) {
        (SERVICES, "Service") => Kind::Service,
        ("v1", "ConfigMap") => Kind::ConfigMap,
        (_, "Service") => {
            let place = document.field("apiVersion").map(|node| node.place);
            report.refuse(
                place,
                format!("apiVersion is {version:?}; a Service that ebb can run has apiVersion: {SERVICES}"),
            );
            Kind::Unknown
        }
        (_, kind) => {
            let place = document.field("kind").map(|node| node.place);
            let near = did_you_mean(kind, ["Service", "ConfigMap"].into_iter());
            report.refuse(
                place,
                format!(
                    "kind is {kind} of {version}; what can be read is Service of {SERVICES} and \
                     ConfigMap of v1{near}"
                ),
            );
            Kind::Unknown
        }
    }
}
