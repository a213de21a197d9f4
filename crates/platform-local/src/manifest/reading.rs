//! What all files say at one moment, with and without problems, and which of it comes into force.

mod settings_document;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use runtime::{OBSERVABILITY_CONFIG_MAP, OLDER_TRACING_CONFIG_MAP, Observability, instead_of_older_tracing};
use settings::{CONFIG_MAP_NAME, ClusterConfig};
use vocabulary::{RevisionName, did_you_mean};

use crate::manifest::autoscalers::Autoscalers;
use crate::manifest::data::{self, DataDocuments, DataReading};
use crate::manifest::data_name::{DataKind, DataName};
use crate::manifest::document::{Document, DocumentKind, items, kind_of, place_of};
use crate::manifest::fields::Report;
use crate::manifest::item::Item;
use crate::manifest::own_hosts::{self, DomainMappings, HostClaims, PlacedHost};
use crate::manifest::service::{self, Surroundings};
use crate::manifest::source::{ForeignKinds, ManifestSource};
use crate::manifest::yaml::{self, TextPlace};
use crate::manifest::{LoadedManifest, PlacedService, Trouble, config_map};

use settings_document::{AppliedSettings, SettingsDocument};

/// What all files say at one moment.
#[derive(Debug, Default)]
pub(crate) struct FilesReading {
    /// The problems for which parts of files are refused.
    pub(crate) troubles: Vec<Trouble>,
    /// Accepted, but worth a word.
    pub(crate) warnings: Vec<Trouble>,
    /// Commands and directories that this machine does not have.
    pub(crate) absences: Vec<Trouble>,
    /// Files that hold no document at all.
    pub(crate) empty: BTreeSet<PathBuf>,
    /// Files that are not there, in directories that are.
    pub(crate) absent: BTreeSet<PathBuf>,
    /// Items that have been in no file for so long that they count as removed.
    pub(crate) removed: BTreeSet<Item>,
    /// Files that were written since they were read last.
    pub(crate) written: BTreeSet<PathBuf>,
    services: BTreeMap<RevisionName, PlacedService>,
    /// Services that stand in a file but were refused.
    refused: BTreeSet<RevisionName>,
    /// Files with a part of which not even the name can be read: they may hold anything that they held
    /// before.
    unclear: BTreeSet<PathBuf>,
    config: SettingsDocument<ClusterConfig>,
    observability: SettingsDocument<Observability>,
    data: DataReading,
    /// Of what holds data: what Services refer to.
    uses: BTreeSet<DataName>,
}

impl FilesReading {
    /// Reads all files. While the ConfigMap itself is refused, annotations are checked against that of
    /// `last_good`.
    pub(crate) fn read(source: &ManifestSource, last_good: &LoadedManifest) -> Self {
        Self::read_without(source, last_good, &BTreeSet::new())
    }

    /// The same, when what is `gone` will count as removed if it still stands in no file: whatever refers to
    /// it is read without it.
    pub(crate) fn read_without(
        source: &ManifestSource,
        last_good: &LoadedManifest,
        gone: &BTreeSet<Item>,
    ) -> Self {
        let mut reading = Self::default();
        let (files, failures) = source.files();
        for (directory, error) in failures {
            reading.refuse_whole(&directory, None, format!("cannot be read: {error}"));
        }
        let documents: Vec<Document<'_>> =
            files.iter().flat_map(|file| reading.read_file(source, file)).collect();
        let kinds: Vec<DocumentKind> =
            documents.iter().map(|document| reading.classify(document, source.foreign)).collect();
        let of_kind = |kind| {
            documents.iter().zip(&kinds).filter(move |(_, of)| **of == kind).map(|(document, _)| document)
        };
        let (config, reports) = SettingsDocument::read(
            of_kind(DocumentKind::ConfigMap),
            CONFIG_MAP_NAME,
            config_map::read_cluster,
        );
        reading.config = config;
        for report in reports {
            reading.collect(report);
        }
        let (config, reports) = SettingsDocument::read(
            of_kind(DocumentKind::Observability),
            OBSERVABILITY_CONFIG_MAP,
            config_map::read_observability,
        );
        reading.observability = config;
        for report in reports {
            reading.collect(report);
        }
        let cluster = reading.config_merged_over(last_good, gone).0;
        let observability = reading.observability_merged_over(last_good, gone).0;
        let autoscalers = reading.read_autoscalers(of_kind(DocumentKind::Autoscaler));
        let mappings = reading.read_mappings(of_kind(DocumentKind::DomainMapping));
        for kind in [DataKind::ConfigMap, DataKind::Secret] {
            reading.read_data(kind, of_kind(DocumentKind::Data(kind)));
        }
        let data = reading.data_merged_over(last_good, gone);
        let around = Surroundings {
            cluster: &cluster,
            observability: &observability,
            domain: &source.domain,
            autoscalers: &autoscalers,
            mappings: &mappings,
            data: &data,
            is_in_shadow: source.is_in_shadow,
            annotations: &source.annotations,
            images: source.images.support,
        };
        reading.read_services(of_kind(DocumentKind::Service), around);
        for report in autoscalers.refuse_strays(|service| reading.is_present(service)) {
            reading.collect(report);
        }
        for report in mappings.refuse_strays(|service| reading.is_present(service)) {
            reading.collect(report);
        }
        reading.warn_of_unused_data();
        reading
    }

    /// Leaves out the Services that a person removed, although their files still hold them.
    pub(crate) fn leave_out(&mut self, deleted: &BTreeMap<RevisionName, PathBuf>) {
        self.services.retain(|name, _| !deleted.contains_key(name));
    }

    /// While ebb runs, a file without a manifest is an edit that is refused: an editor may write it in two
    /// steps.
    pub(crate) fn refuse_empty(&mut self) {
        let message = "holds no manifest; to remove a Service, remove its file or use `ebb delete`";
        let trouble =
            |file: &PathBuf| Trouble { file: file.clone(), place: None, message: message.to_owned() };
        let troubles: Vec<Trouble> = self.empty.iter().map(trouble).collect();
        self.troubles.extend(troubles);
    }

    /// The items of `last_good` that stand in no file now. They may be written again; an item whose former
    /// file cannot be understood does not count as missing.
    pub(crate) fn missing(&self, last_good: &LoadedManifest) -> BTreeSet<Item> {
        let is_unclear = |file: &PathBuf| {
            // A directory that cannot be read may hold what it held.
            self.empty.contains(file) || self.unclear.iter().any(|unclear| file.starts_with(unclear))
        };
        let is_missing =
            |name: &RevisionName| !self.services.contains_key(name) && !self.refused.contains(name);
        let services = last_good.services.iter();
        let services = services.filter(|(name, placed)| is_missing(name) && !is_unclear(&placed.file));
        let lost = last_good.services.iter().filter(|(name, before)| {
            let has_lost = self.services.get(*name).is_some_and(|now| now.autoscaler_file.is_none());
            has_lost && before.autoscaler_file.as_ref().is_some_and(|file| !is_unclear(file))
        });
        let config = last_good.cluster_file.as_ref();
        let config =
            config.filter(|file| matches!(self.config, SettingsDocument::Absent) && !is_unclear(file));
        let observability = last_good.observability_file.as_ref();
        let observability = observability
            .filter(|file| matches!(self.observability, SettingsDocument::Absent) && !is_unclear(file));
        let data = last_good.data.iter();
        let data = data.filter(|(name, placed)| !self.data.is_present(name) && !is_unclear(&placed.file));
        let services = services.map(|(name, _)| Item::Service(name.clone()));
        let lost = lost.map(|(name, _)| Item::Autoscaler(name.clone()));
        let unmapped = self.without_mapping(last_good, |placed| !is_unclear(&placed.file));
        let unmapped = unmapped.into_iter().map(Item::DomainMapping);
        let data = data.map(|(name, _)| Item::Data(name.clone()));
        let settings = [config.map(|_| Item::ConfigMap), observability.map(|_| Item::Observability)]
            .into_iter()
            .flatten();
        settings.chain(services).chain(lost).chain(unmapped).chain(data).collect()
    }

    /// The manifests in force from now on: every item without a problem, and the last good version of the
    /// others. An item that stood in a file goes only when it counts as removed.
    pub(crate) fn merged_over(self, last_good: &LoadedManifest) -> LoadedManifest {
        let (cluster, cluster_file) = self.config_merged_over(last_good, &self.removed);
        let (observability, observability_file) = self.observability_merged_over(last_good, &self.removed);
        let data = self.data_merged_over(last_good, &self.removed);
        let unmapped = self.without_mapping(last_good, |_| true);
        let Self { services, refused, removed, .. } = self;
        let mut services: BTreeMap<RevisionName, PlacedService> =
            services.into_iter().filter(|(name, _)| !refused.contains(name)).collect();
        for (name, placed) in &last_good.services {
            let stays = !services.contains_key(name) && !removed.contains(&Item::Service(name.clone()));
            let keeps_autoscaler = placed.autoscaler_file.is_some()
                && services.get(name).is_some_and(|now| now.autoscaler_file.is_none())
                && !removed.contains(&Item::Autoscaler(name.clone()));
            let keeps_mapping =
                unmapped.contains(name) && !removed.contains(&Item::DomainMapping(name.clone()));
            if stays || keeps_autoscaler || keeps_mapping || refused.contains(name) {
                services.insert(name.clone(), placed.clone());
            }
        }
        LoadedManifest {
            cluster,
            cluster_file,
            observability,
            observability_file,
            warnings: self.warnings,
            absences: self.absences,
            data,
            services,
        }
    }

    /// The Services of `last_good` that would lose a host of a `DomainMapping` because no document gives it
    /// to any Service now. Hosts for which `counts` is false are passed over.
    fn without_mapping(
        &self,
        last_good: &LoadedManifest,
        counts: impl Fn(&PlacedHost) -> bool,
    ) -> BTreeSet<RevisionName> {
        let present = self.services.values().flat_map(|placed| &placed.mappings);
        let present: BTreeSet<&str> = present.map(|placed| placed.host.as_str()).collect();
        let is_lost = |placed: &PlacedHost| !present.contains(placed.host.as_str()) && counts(placed);
        let services = last_good.services.iter().filter(|(name, before)| {
            self.services.contains_key(*name) && before.mappings.iter().any(is_lost)
        });
        services.map(|(name, _)| name.clone()).collect()
    }

    /// The documents with data that are in force. A document that is in no file for a moment may be being
    /// written anew.
    fn data_merged_over(&self, last_good: &LoadedManifest, gone: &BTreeSet<Item>) -> DataDocuments {
        self.data.merged_over(&last_good.data, |name| gone.contains(&Item::Data(name.clone())))
    }

    /// The ConfigMap that applies, and the file that it stands in.
    fn config_merged_over(
        &self,
        last_good: &LoadedManifest,
        gone: &BTreeSet<Item>,
    ) -> AppliedSettings<ClusterConfig> {
        self.config
            .merged_over((&last_good.cluster, &last_good.cluster_file), gone.contains(&Item::ConfigMap))
    }

    /// The same of what is told about each request.
    fn observability_merged_over(
        &self,
        last_good: &LoadedManifest,
        gone: &BTreeSet<Item>,
    ) -> AppliedSettings<Observability> {
        let before = (&last_good.observability, &last_good.observability_file);
        self.observability.merged_over(before, gone.contains(&Item::Observability))
    }

    fn read_file<'f>(&mut self, source: &ManifestSource, file: &'f Path) -> Vec<Document<'f>> {
        let text = match source.read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_in_a_directory(file) => {
                self.absent.insert(file.to_owned());
                return Vec::new();
            }
            Err(error) => {
                self.refuse_whole(file, None, format!("cannot be read: {error}"));
                return Vec::new();
            }
        };
        match yaml::read_yaml(&text) {
            Ok(nodes) => {
                if nodes.is_empty() {
                    self.empty.insert(file.to_owned());
                }
                nodes.into_iter().flat_map(items).map(|node| Document { file, node }).collect()
            }
            Err(error) => {
                self.refuse_whole(file, error.place, format!("is not YAML: {}", error.message));
                Vec::new()
            }
        }
    }

    /// Refuses a file of which not even the names can be read.
    fn refuse_whole(&mut self, file: &Path, place: Option<TextPlace>, message: String) {
        self.unclear.insert(file.to_owned());
        self.troubles.push(Trouble { file: file.to_owned(), place, message });
    }

    fn classify(&mut self, document: &Document<'_>, foreign: ForeignKinds) -> DocumentKind {
        let mut report = Report::about(document.file);
        let kind = kind_of(&document.node, foreign, &mut report);
        let is_nameless = match kind {
            DocumentKind::Service => service::name_of(&document.node).is_none(),
            DocumentKind::Data(kind) => data::name_of(kind, &document.node).is_none(),
            DocumentKind::Autoscaler
            | DocumentKind::DomainMapping
            | DocumentKind::ConfigMap
            | DocumentKind::Observability
            | DocumentKind::Foreign
            | DocumentKind::Unknown => false,
        };
        if kind == DocumentKind::Unknown || is_nameless {
            self.unclear.insert(document.file.to_owned());
        }
        self.collect(report);
        kind
    }

    /// A Service whose document is refused stays as it was.
    fn read_autoscalers<'d>(&mut self, documents: impl Iterator<Item = &'d Document<'d>>) -> Autoscalers {
        let mut autoscalers = Autoscalers::default();
        for document in documents {
            let mut report = Report::about(document.file);
            autoscalers.read(&document.node, &mut report);
            self.collect(report);
        }
        self.refused.extend(autoscalers.refused().cloned());
        autoscalers
    }

    /// A Service whose document is refused stays as it was.
    fn read_mappings<'d>(&mut self, documents: impl Iterator<Item = &'d Document<'d>>) -> DomainMappings {
        let mut mappings = DomainMappings::default();
        for document in documents {
            let mut report = Report::about(document.file);
            mappings.read(&document.node, &mut report);
            self.collect(report);
        }
        self.refused.extend(mappings.refused().cloned());
        mappings
    }

    fn read_data<'d>(&mut self, kind: DataKind, documents: impl Iterator<Item = &'d Document<'d>>) {
        for document in documents {
            let mut report = Report::about(document.file);
            self.data.read(kind, &document.node, &mut report);
            self.collect(report);
        }
    }

    /// Warns of documents that no Service refers to: their name may be misspelt here or in the Service.
    fn warn_of_unused_data(&mut self) {
        let unused = self.data.found.iter().filter(|(name, _)| !self.uses.contains(*name));
        let warnings = unused.map(|(name, placed)| {
            let near = did_you_mean(&name.name, [CONFIG_MAP_NAME, OBSERVABILITY_CONFIG_MAP]);
            let near = if name.kind == DataKind::ConfigMap { near.as_str() } else { "" };
            let message = if name.kind == DataKind::ConfigMap && name.name == OLDER_TRACING_CONFIG_MAP {
                instead_of_older_tracing()
            } else {
                format!("{name} has no effect: no Service there refers to it{near}")
            };
            Trouble { file: placed.file.clone(), place: Some(placed.place), message }
        });
        let warnings: Vec<Trouble> = warnings.collect();
        self.warnings.extend(warnings);
    }

    fn is_present(&self, service: &RevisionName) -> bool {
        self.services.contains_key(service) || self.refused.contains(service)
    }

    fn read_services<'d>(
        &mut self,
        documents: impl Iterator<Item = &'d Document<'d>>,
        around: Surroundings<'_>,
    ) {
        let mut first_places: BTreeMap<RevisionName, String> = BTreeMap::new();
        let mut claims = Vec::new();
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
                    if let Some((service, own)) = service {
                        let by_name = service.hosts_by_name().into_iter().map(|host| PlacedHost {
                            host,
                            file: document.file.to_owned(),
                            place: document.node.place,
                        });
                        claims.push(HostClaims { service: name.clone(), by_name: by_name.collect(), own });
                        let autoscaler = around.autoscalers.of(&name);
                        let placed = PlacedService {
                            file: document.file.to_owned(),
                            autoscaler_file: autoscaler.map(|autoscaler| autoscaler.file.clone()),
                            mappings: around.mappings.of(&name).to_vec(),
                            service,
                        };
                        self.services.insert(name, placed);
                    } else {
                        self.refused.insert(name);
                    }
                }
            }
            self.collect(report);
        }
        for (service, trouble) in own_hosts::conflicts(&claims) {
            self.refused.insert(service);
            self.troubles.push(trouble);
        }
    }

    fn collect(&mut self, report: Report) {
        self.troubles.extend(report.findings.problems);
        self.warnings.extend(report.findings.warnings);
        self.absences.extend(report.absences);
        self.uses.extend(report.uses);
    }
}

/// A missing directory is another problem than a missing file: a mount may be away.
fn is_in_a_directory(file: &Path) -> bool {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).is_dir()
}
