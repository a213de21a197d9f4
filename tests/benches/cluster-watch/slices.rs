//! Follows all slices of a namespace: who is named by how many of them, and how fast they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use futures_util::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ListParams, WatchEvent, WatchParams};
use tests::bench::{api, clock};
use tests::cluster::TestNamespace;
use tokio::task::JoinSet;

/// What is known by now.
#[derive(Default)]
struct Known {
    /// The pods that each Service's slices name, by slice.
    named: BTreeMap<String, BTreeSet<String>>,
    written: Vec<Duration>,
}

/// A watch of them. It ends with this.
pub(crate) struct SliceWatch {
    known: Arc<Mutex<Known>>,
    _task: JoinSet<()>,
}

impl SliceWatch {
    pub(crate) async fn start(namespace: &TestNamespace) -> anyhow::Result<Self> {
        let slices = namespace.api::<EndpointSlice>();
        let known = Arc::<Mutex<Known>>::default();
        let list = slices.list(&ListParams::default()).await?;
        let present = list.metadata.resource_version.context("a list has a version")?;
        {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            for slice in list.items {
                known.note(slice);
            }
        }
        let mut events = slices.watch(&WatchParams::default(), &present).await?.boxed();
        let (noted, mut task) = (Arc::clone(&known), JoinSet::new());
        task.spawn(async move {
            while let Some(event) = events.next().await {
                let (WatchEvent::Added(slice) | WatchEvent::Modified(slice)) =
                    event.expect("the watch goes on")
                else {
                    continue;
                };
                let mut known = noted.lock().unwrap_or_else(PoisonError::into_inner);
                known.written.push(clock::now());
                known.note(slice);
            }
        });
        Ok(Self { known, _task: task })
    }

    /// How many slices name just these.
    fn naming(&self, pods: &BTreeSet<String>) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.named.values().filter(|named| *named == pods).count()
    }

    /// Waits until so many slices name just these; returns how long that took from `began` on.
    pub(crate) async fn name_only(
        &self,
        pods: &[&str],
        slices: usize,
        began: Duration,
        patience: Duration,
    ) -> anyhow::Result<Duration> {
        let pods: BTreeSet<String> = pods.iter().map(|pod| (*pod).to_owned()).collect();
        tests::eventually(&format!("{slices} slices name {pods:?}"), patience, || async {
            let found = self.naming(&pods);
            if found == slices { Ok(()) } else { Err(format!("{found} of {slices}")) }
        })
        .await;
        Ok(clock::since(began))
    }

    /// Waits until there are so many slices, or fails when patience ends.
    pub(crate) async fn count_is(&self, slices: usize, patience: Duration) {
        tests::eventually(&format!("there are {slices} slices"), patience, || async {
            let found = self.known.lock().unwrap_or_else(PoisonError::into_inner).named.len();
            if found == slices { Ok(()) } else { Err(format!("{found} of {slices}")) }
        })
        .await;
    }

    /// The most that were written within one second since then.
    pub(crate) fn most_in_a_second(&self, since: Duration) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let written: Vec<Duration> = known.written.iter().copied().filter(|at| *at >= since).collect();
        let within = |(index, at): (usize, &Duration)| {
            written[index..].iter().take_while(|other| **other < *at + Duration::from_secs(1)).count()
        };
        written.iter().enumerate().map(within).max().unwrap_or_default()
    }
}

impl Known {
    fn note(&mut self, slice: EndpointSlice) {
        let targets = slice.endpoints.into_iter().filter_map(|endpoint| endpoint.target_ref?.name);
        self.named.insert(slice.metadata.name.unwrap_or_default(), targets.collect());
    }
}

/// The revisions as the autoscaler's own API shows them.
pub(crate) fn revisions(address: std::net::SocketAddr) -> anyhow::Result<usize> {
    let list = api::get_json(address, "/v1/revisions")?;
    Ok(list["revisions"].as_array().context("a list")?.len())
}
