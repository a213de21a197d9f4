//! What stands in files, as it is named when it goes missing.

use std::fmt;

use runtime::OBSERVABILITY_CONFIG_MAP;
use settings::CONFIG_MAP_NAME;
use vocabulary::RevisionName;

use crate::manifest::data_name::DataName;

/// Something that stands in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// The settings of scaling: the ConfigMap `config-autoscaler`.
    ConfigMap,
    /// The settings of logs, metrics and traces: the ConfigMap `config-observability`.
    Observability,
    /// A Knative Service, by its name.
    Service(RevisionName),
    /// The `HorizontalPodAutoscaler` of a Service.
    Autoscaler(RevisionName),
    /// A document of kind `DomainMapping` that gives a Service a host.
    DomainMapping(RevisionName),
    /// A document from which environment variables may be taken.
    Data(DataName),
}

impl fmt::Display for Item {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConfigMap => write!(formatter, "the ConfigMap {CONFIG_MAP_NAME}"),
            Self::Observability => write!(formatter, "the ConfigMap {OBSERVABILITY_CONFIG_MAP}"),
            Self::Service(name) => write!(formatter, "the Service {name}"),
            Self::Autoscaler(name) => write!(formatter, "the HorizontalPodAutoscaler of {name}"),
            Self::DomainMapping(name) => write!(formatter, "a DomainMapping of {name}"),
            Self::Data(name) => name.fmt(formatter),
        }
    }
}
