//! What is said of everything that is handed over, as JSON. Another version of ebb may read it: fields are
//! added with a default and never get another meaning.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{PodName, QueueProxyAnnouncement, ReplicaName, RevisionName, Routing};

use super::{ContainerOutputs, PipeHandles, PodHandles};
use crate::pod::Template;

/// Everything.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlatformRecord {
    /// Of the orders that were obeyed until now.
    pub(crate) epoch: u64,
    /// What a person removed, with the file that says otherwise.
    pub(crate) deleted: BTreeMap<RevisionName, PathBuf>,
    pub(crate) fleet: FleetRecord,
    /// The control group that is divided among the pods, if there is one.
    #[serde(default)]
    pub(crate) control_group: Option<PathBuf>,
    /// In the order of their descriptors.
    pub(crate) processes: BTreeMap<PodName, ProcessRecord>,
}

/// Every revision.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetRecord {
    /// How many names were given to pods.
    pub(crate) names_given: u64,
    pub(crate) revisions: Vec<HandOverRevision>,
}

impl FleetRecord {
    /// Whether the pod is in it.
    pub(crate) fn has(&self, pod: &PodName) -> bool {
        self.revisions.iter().any(|revision| revision.pods.iter().any(|known| known.name == *pod))
    }
}

/// A Service and its pods.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandOverRevision {
    pub(crate) name: RevisionName,
    pub(crate) host: String,
    pub(crate) wanted: u32,
    pub(crate) is_going: bool,
    /// Whether there was ever something that an autoscaler is to keep.
    pub(crate) is_found: bool,
    pub(crate) route: Option<HandOverRoute>,
    pub(crate) hop_keys: Vec<String>,
    pub(crate) templates: BTreeMap<u32, Template>,
    pub(crate) present: u32,
    pub(crate) numbers_given: u32,
    pub(crate) pods: Vec<HandOverPod>,
}

/// Who serves it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandOverRoute {
    pub(crate) routing: Routing,
    pub(crate) activators: Vec<ReplicaName>,
}

/// A pod that has a process. Points in time are spans here: each process has an axis of its own.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandOverPod {
    pub(crate) name: PodName,
    pub(crate) template: u32,
    pub(crate) stage: StageRecord,
    pub(crate) started_before: Duration,
    pub(crate) ready_for: Option<Duration>,
    pub(crate) trouble: Option<String>,
    pub(crate) drain_limit: Duration,
    /// `None`: as nobody says otherwise.
    #[serde(default)]
    pub(crate) app_grace: Option<Duration>,
    pub(crate) announced: Option<QueueProxyAnnouncement>,
    pub(crate) details: BTreeMap<String, String>,
}

/// How far its life has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StageRecord {
    Serving,
    Leaving { within: Duration },
    Ending { within: Duration },
}

/// Its process: its number, and what was begun to be read. Descriptors follow in this order: socket, process,
/// standard output and standard error of the app and then of each other container, as far as they are open.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    pub(crate) pid: i32,
    pub(crate) begun: Vec<u8>,
    #[serde(flatten)]
    pub(crate) app: OutputsRecord,
    #[serde(default)]
    pub(crate) sidecars: Vec<OutputsRecord>,
}

/// What was begun to be read of a container's outputs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OutputsRecord {
    #[serde(default)]
    pub(crate) container: Option<String>,
    pub(crate) stdout: Option<Vec<u8>>,
    pub(crate) stderr: Option<Vec<u8>>,
}

impl ProcessRecord {
    pub(super) fn new(handles: PodHandles, descriptors: &mut Vec<OwnedFd>) -> Self {
        // In the order in which they are taken out again below. Nothing but their place says which is which.
        descriptors.extend([handles.socket, handles.process]);
        let outputs = handles.outputs.into_iter();
        let mut outputs = outputs.map(|outputs| OutputsRecord::new(outputs, descriptors));
        let app = outputs.next().expect("a pod has an app");
        Self { pid: handles.pid, begun: handles.begun, app, sidecars: outputs.collect() }
    }

    /// How many there are.
    pub(super) fn descriptors(&self) -> usize {
        let open = |outputs: &OutputsRecord| {
            usize::from(outputs.stdout.is_some()) + usize::from(outputs.stderr.is_some())
        };
        2 + open(&self.app) + self.sidecars.iter().map(open).sum::<usize>()
    }

    /// Joins the record with its descriptors again; `None` if there are not enough.
    pub(super) fn handles(self, descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<PodHandles> {
        let (socket, process) = (descriptors.next()?, descriptors.next()?);
        let outputs = std::iter::once(self.app).chain(self.sidecars);
        let outputs = outputs.map(|record| record.outputs(descriptors)).collect::<Option<Vec<_>>>()?;
        Some(PodHandles { socket, process, pid: self.pid, begun: self.begun, outputs })
    }
}

impl OutputsRecord {
    fn new(outputs: ContainerOutputs, descriptors: &mut Vec<OwnedFd>) -> Self {
        let mut begun = |output: Option<PipeHandles>| {
            output.map(|output| {
                // At the moment at which the record gets its text, so that order and number agree by
                // themselves.
                descriptors.push(output.pipe);
                output.begun
            })
        };
        let (stdout, stderr) = (begun(outputs.stdout), begun(outputs.stderr));
        Self { container: outputs.container, stdout, stderr }
    }

    fn outputs(self, descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<ContainerOutputs> {
        let mut output = |begun: Option<Vec<u8>>| match begun {
            Some(begun) => descriptors.next().map(|pipe| Some(PipeHandles { pipe, begun })),
            None => Some(None),
        };
        let (stdout, stderr) = (output(self.stdout)?, output(self.stderr)?);
        Some(ContainerOutputs { container: self.container, stdout, stderr })
    }
}
