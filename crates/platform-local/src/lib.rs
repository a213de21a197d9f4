//! Pods as processes of this machine.
//!
//! [`load`] reads Knative manifests, [`LocalPlatform`] keeps as many `ebb pod` processes as the autoscaler
//! orders, and [`pod_main`] is what such a process does: it runs one app with its queue-proxy and leaves
//! nothing behind, however it ends.

mod control_groups;
mod executable;
mod front_door;
mod images;
mod lines;
mod manifest;
mod memory;
mod pod;
mod proc;
mod supervisor;
mod watch;

pub use front_door::{CertifiedNames, FrontDoor, FrontTlsDoor};
pub use images::{ImageEngine, ImageNetwork, ImageSettings, ImageSupport};
pub use manifest::{
    ForeignKinds, LoadedManifest, ManifestSource, NotYaml, ServiceAddress, TextPlace, Trouble, YamlKey,
    YamlNode, YamlValue, items, load, manifests_in, place_of, read_yaml, text_of, tree_of,
};
pub use memory::pods_that_fit;
pub use pod::pod_main;
pub use supervisor::{
    CertifiedHosts, Deletion, Handover, HandoverDecision, LocalConfig, LocalPlatform, LogLine, LogOptions,
    LogQuery, LogStore, LogStream, RolloutAnswer, first_facts,
};
