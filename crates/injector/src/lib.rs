//! How does a pod look with its sidecar?
//!
//! [`inject`] takes a pod (or the template of one) as JSON and gives it back with a queue-proxy: an ordinary
//! container after the app's, so that the app starts no later for it. Nothing else of the pod is read than
//! what the sidecar depends on, and nothing is lost that this crate does not know. A second pass changes
//! nothing. It asks no server and reads no clock, so the same template always becomes the same pod.
//!
//! ```text
//!   containers ──► ports (which are served) ──► probes, hooks, grace periods ──► queue-proxy
//! ```

mod container;
mod hooks;
mod inject;
mod injector_settings;
mod limits;
mod pod;
mod ports;
mod probes;
mod quality;
mod review;
mod tree;

pub use inject::{Injection, Outcome, inject};
pub use injector_settings::InjectorSettings;
pub use review::{ConfigMapCheck, ReviewAnswer, ReviewQuestion, ReviewVerdict, answer};
pub use settings::ClusterConfig;
