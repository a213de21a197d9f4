//! What do the files say? Knative `ManifestService` manifests, documents of kind `HorizontalPodAutoscaler`
//! and `DomainMapping`, and the ConfigMap `config-autoscaler`, with the `ConfigMap`s and `Secret`s that
//! Services take variables from; every problem at once.
//!
//! Reading has two steps, because annotations are checked against limits of the ConfigMap, which may stand in
//! another file: first all files become trees of YAML, then the ConfigMap is read, then the autoscalers'
//! documents and what holds data, then the Services. [`load`] wants all of it flawless; while ebb runs,
//! [`FilesReading::merged_over`] takes what is flawless and keeps the last good rest.

mod autoscalers;
mod config_map;
mod container;
mod data;
mod data_name;
mod document;
mod env;
mod existence;
mod fields;
mod image;
mod item;
mod loaded;
mod own_hosts;
mod pod;
mod probe;
mod reading;
mod resources;
mod security;
mod service;
mod source;
mod trouble;
mod waiting_page;
mod yaml;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use vocabulary::Findings;

pub use crate::manifest::autoscalers::{place_of, tree_of};
pub use crate::manifest::document::items;
pub(crate) use crate::manifest::item::Item;
pub(crate) use crate::manifest::loaded::PlacedService;
pub use crate::manifest::loaded::{LoadedManifest, ServiceAddress};
pub(crate) use crate::manifest::pod::MOST_SIDECARS;
pub(crate) use crate::manifest::reading::FilesReading;
pub(crate) use crate::manifest::service::ManifestService;
pub use crate::manifest::source::{ForeignKinds, ManifestSource, manifests_in, text_of};
pub use crate::manifest::trouble::Trouble;
pub use crate::manifest::yaml::{NotYaml, TextPlace, YamlKey, YamlNode, YamlValue, read_yaml};

/// Reads everything. Fails with every problem of every file, in their order, and with what else there is to
/// say.
pub fn load(source: &ManifestSource) -> Result<LoadedManifest, Findings<Trouble>> {
    let mut reading = FilesReading::read(source, &LoadedManifest::default());
    let whole = |file: &PathBuf, message: &str| Trouble {
        file: file.clone(),
        place: None,
        message: message.to_owned(),
    };
    let empty = reading.empty.iter().map(|file| whole(file, "holds no manifest"));
    let absent = reading.absent.iter().map(|file| whole(file, "cannot be read: there is no such file"));
    let mut problems: Vec<Trouble> = reading.troubles.iter().cloned().chain(empty).chain(absent).collect();
    let bare = source.bare_directories();
    problems.extend(bare.iter().map(|bare| whole(bare, "holds no manifest (*.yaml, *.yml, *.json)")));
    if problems.is_empty() {
        return Ok(reading.merged_over(&LoadedManifest::default()));
    }
    let files = source.files().0;
    let order = |file: &Path| files.iter().position(|named| named == file);
    problems.sort_by_key(|trouble| (order(&trouble.file), trouble.place));
    let mut warnings = std::mem::take(&mut reading.warnings);
    warnings.append(&mut reading.absences);
    Err(Findings { problems, warnings })
}
