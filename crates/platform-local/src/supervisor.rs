//! Which pods should there be, and which are there?

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use platform::{ActivatorFacts, Platform, PlatformCommand, PlatformEvent};
use runtime::Clock;
use tokio::sync::mpsc;

use crate::manifest::Loaded;

/// What [`LocalPlatform::start`] needs to know.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// The manifests, watched for changes.
    pub files: Vec<PathBuf>,
    /// What follows `NAME.NAMESPACE.` in the hosts.
    pub domain: String,
    /// The `ebb` executable, for `ebb pod` and `ebb queue-proxy`.
    pub ebb: PathBuf,
    /// This process's clock.
    pub clock: Clock,
}

/// Pods as processes of this machine.
#[derive(Debug)]
pub struct LocalPlatform {
    subscriber: Mutex<Option<mpsc::Sender<PlatformEvent>>>,
}

impl LocalPlatform {
    /// Starts to supervise what was loaded, on the current tokio runtime.
    pub fn start(_config: LocalConfig, _loaded: Loaded) -> Arc<Self> {
        Arc::new(Self { subscriber: Mutex::new(None) })
    }

    /// Says which activators exist, for the autoscaler to find them.
    pub fn set_activators(&self, _activators: Vec<ActivatorFacts>) {}

    /// Ends every pod in an orderly way; returns when the last has ended. Orders are no longer taken.
    pub async fn drain(&self) {}

    /// Ends every pod at once.
    pub fn kill(&self) {}
}

impl Platform for LocalPlatform {
    fn subscribe(&self) -> mpsc::Receiver<PlatformEvent> {
        let (events, receiver) = mpsc::channel(256);
        let _ = events.try_send(PlatformEvent::Synced);
        *self.subscriber.lock() = Some(events);
        receiver
    }

    fn execute(&self, _command: PlatformCommand) {}
}
