//! The manifests in force: the settings and Services of all files, each with the file that it stands in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use runtime::{Observability, RequestReporting};
use settings::ClusterConfig;
use vocabulary::RevisionName;

use crate::front_door::FrontDoor;
use crate::manifest::Trouble;
use crate::manifest::data::DataDocuments;
use crate::manifest::own_hosts::PlacedHost;
use crate::manifest::service::ManifestService;

/// Everything that the files say.
#[derive(Clone, Debug, Default)]
pub struct LoadedManifest {
    /// The ConfigMap `config-autoscaler`, or the defaults.
    pub cluster: Arc<ClusterConfig>,
    /// The file that the ConfigMap stands in, if there is one.
    pub(crate) cluster_file: Option<PathBuf>,
    /// The ConfigMap `config-observability`, or the defaults.
    pub observability: Arc<Observability>,
    /// The file that it stands in, if there is one.
    pub(crate) observability_file: Option<PathBuf>,
    /// Accepted, but worth a word.
    pub warnings: Vec<Trouble>,
    /// Commands and directories that this machine does not have: their pods will fail.
    pub absences: Vec<Trouble>,
    /// The documents from which environment variables may be taken.
    pub(crate) data: DataDocuments,
    /// The Services, each with the file that it stands in.
    pub(crate) services: BTreeMap<RevisionName, PlacedService>,
}

impl LoadedManifest {
    /// Whether the ConfigMap `config-autoscaler` stands in one of the files.
    pub fn has_cluster_config(&self) -> bool {
        self.cluster_file.is_some()
    }

    /// The Services' names, in order.
    pub fn services(&self) -> impl Iterator<Item = &RevisionName> {
        self.services.keys()
    }

    /// Where any client and where a browser reaches each Service.
    pub fn addresses(&self, front_door: FrontDoor) -> impl Iterator<Item = ServiceAddress> {
        self.services.values().map(move |placed| ServiceAddress {
            service: placed.service.name.clone(),
            address: front_door.address(),
            browser_url: front_door.url(&placed.service),
            host: placed.service.host.clone(),
        })
    }

    /// Which logs, metrics and traces are written about each request.
    pub(crate) fn reporting(&self) -> Arc<RequestReporting> {
        Arc::new(self.observability.reporting().expect("it was read, and refused if it was not understood"))
    }

    /// Every host under which a Service is reached.
    pub fn all_hosts(&self) -> Vec<String> {
        self.services.values().flat_map(|placed| placed.service.hosts()).collect()
    }

    /// The hosts under which the Services are reached, in the order of their names.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.services.values().map(|placed| placed.service.host.as_str())
    }
}

/// How a Service is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    /// The revision that the Service becomes: `NAMESPACE/service/NAME`.
    pub service: RevisionName,
    /// The URL of the listening address, which takes requests with the header `Host` for this Service.
    pub address: String,
    /// The URL under which a browser reaches the Service.
    pub browser_url: String,
    /// The header `Host` of requests that are sent to the listening address.
    pub host: String,
}

/// A Service and the file that it stands in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedService {
    /// The file, as the user named it.
    pub(crate) file: PathBuf,
    /// The file of the `HorizontalPodAutoscaler` that scales it, if there is one.
    pub(crate) autoscaler_file: Option<PathBuf>,
    /// The hosts that documents of kind `DomainMapping` give it, each with its file.
    pub(crate) mappings: Vec<PlacedHost>,
    /// The Service as the file has it, checked.
    pub(crate) service: ManifestService,
}
