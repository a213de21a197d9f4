//! What is said of everything that is handed over, as JSON. Another version of ebb may read it: fields are
//! added with a default and never get another meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{PodName, QueueProxyAnnouncement, ReplicaName, RevisionName, Routing};

use super::handles::{ContainerOutputs, PipeHandles, PodHandles};
use crate::pod::Template;

/// The record of everything that is handed over.
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

/// The records of all revisions with their pods.
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

    /// The pods whose app is an image.
    pub(crate) fn pods_of_images(&self) -> BTreeSet<PodName> {
        let is_image = |revision: &HandOverRevision, pod: &HandOverPod| {
            revision.templates.get(&pod.template).is_some_and(Template::has_image)
        };
        let of_revision = |revision: &HandOverRevision| -> Vec<PodName> {
            let pods = revision.pods.iter().filter(|pod| is_image(revision, pod));
            pods.map(|pod| pod.name.clone()).collect()
        };
        self.revisions.iter().flat_map(of_revision).collect()
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
    /// How a pod failed last.
    #[serde(default)]
    pub(crate) last_failure: Option<FailureRecord>,
    /// How a pod was killed last.
    #[serde(default)]
    pub(crate) last_kill: Option<KillRecord>,
    /// What is known of templates whose pods failed.
    #[serde(default)]
    pub(crate) restarts: BTreeMap<u32, RestartsRecord>,
}

/// The last failure of a revision's pods.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailureRecord {
    pub(crate) pod: PodName,
    pub(crate) before: Duration,
    pub(crate) reason: String,
    pub(crate) last_lines: Vec<String>,
}

/// How a pod was killed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KillRecord {
    pub(crate) pod: PodName,
    pub(crate) before: Duration,
    pub(crate) reason: String,
}

/// The failures of one template.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RestartsRecord {
    /// How long the wait after the next failure is.
    pub(crate) next_wait: Duration,
    /// How long no pod is started yet.
    pub(crate) wait_left: Duration,
    pub(crate) last_before: Option<Duration>,
    /// The last failure that lengthened the wait.
    pub(crate) last_new_before: Option<Duration>,
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) reason_without_output: Option<String>,
    pub(crate) in_a_row: u32,
    pub(crate) hold: Option<String>,
}

/// The route that was ordered last for a revision.
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
    #[serde(default)]
    pub(crate) trouble_without_output: Option<String>,
    pub(crate) drain_limit: Duration,
    /// `None`: as long as no word says otherwise.
    #[serde(default)]
    pub(crate) app_grace: Option<Duration>,
    pub(crate) announced: Option<QueueProxyAnnouncement>,
    /// How long ago it was last seen to work.
    #[serde(default)]
    pub(crate) proved_before: Option<Duration>,
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
    /// The last lines of its standard error, oldest first: its last words, should it fail.
    #[serde(default)]
    pub(crate) last: Vec<String>,
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

    /// The number of descriptors that belong to the pod.
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
        let mut last = Vec::new();
        let mut begun = |output: Option<PipeHandles>| {
            output.map(|output| {
                // At the moment at which the record gets its text, so that order and number agree by
                // themselves.
                descriptors.push(output.pipe);
                // Of standard output none are remembered.
                last.extend(output.last);
                output.begun
            })
        };
        let (stdout, stderr) = (begun(outputs.stdout), begun(outputs.stderr));
        Self { container: outputs.container, stdout, stderr, last }
    }

    fn outputs(self, descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<ContainerOutputs> {
        let mut output = |begun: Option<Vec<u8>>, last| match begun {
            Some(begun) => descriptors.next().map(|pipe| Some(PipeHandles { pipe, begun, last })),
            None => Some(None),
        };
        let (stdout, stderr) = (output(self.stdout, Vec::new())?, output(self.stderr, self.last)?);
        Some(ContainerOutputs { container: self.container, stdout, stderr })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the first version wrote it. It is never edited: an `ebb up` of that version can be upgraded to this
    /// one for as long as this test passes.
    const FIRST: &str = include_str!("testdata/record-1.json");

    #[test]
    fn the_record_of_the_first_version_is_understood() {
        let record: PlatformRecord = serde_json::from_str(FIRST).expect("it is understood");
        let [revision] = &record.fleet.revisions[..] else { panic!("{record:?}") };
        assert_eq!((record.epoch, revision.wanted, revision.pods.len()), (7, 2, 2));
        assert_eq!(revision.templates[&1].app.command, ["ebb", "sample-app"]);
        assert!(revision.last_failure.is_none() && revision.restarts.is_empty());
        let within = Duration::from_secs(4);
        assert_eq!(
            [revision.pods[0].stage, revision.pods[1].stage],
            [StageRecord::Serving, StageRecord::Leaving { within }]
        );
        let descriptors: Vec<usize> = record.processes.values().map(ProcessRecord::descriptors).collect();
        assert_eq!(descriptors, [4, 2]);
    }

    /// An older version knows none of the newer fields, and must find its own as they were.
    #[test]
    fn the_record_has_every_field_of_the_first_version() {
        let first: serde_json::Value = serde_json::from_str(FIRST).expect("JSON");
        let record: PlatformRecord = serde_json::from_str(FIRST).expect("it is understood");
        let present = serde_json::to_value(record).expect("records are plain data");
        assert_includes(&present, &first, "record");
    }

    fn assert_includes(present: &serde_json::Value, first: &serde_json::Value, place: &str) {
        match (present, first) {
            (serde_json::Value::Object(present), serde_json::Value::Object(first)) => {
                for (name, value) in first {
                    let place = format!("{place}.{name}");
                    let found = present.get(name).unwrap_or_else(|| panic!("{place} is missing"));
                    assert_includes(found, value, &place);
                }
            }
            (serde_json::Value::Array(present), serde_json::Value::Array(first)) => {
                assert_eq!(present.len(), first.len(), "{place}");
                present.iter().zip(first).for_each(|(present, first)| assert_includes(present, first, place));
            }
            (present, first) => assert_eq!(present, first, "{place}"),
        }
    }
}
