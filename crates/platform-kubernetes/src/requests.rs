//! How is something written to the API server, and what does its answer mean?
//!
//! Each request looks at the right by which it was ordered immediately before it is sent, and has a time
//! limit, so that a server that hangs is a failure like any other.

mod events;
mod handover;
mod hints;
mod revisions;
mod rights;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::resources::workload::{ObjectVersion, ScaleSubject};
use cluster::slices::SliceChange;
use cluster::{CountWrite, Failure, LEASE, LeaseRecord, LeaseWrite, Rights, ScaleAnswer, read_lease, scale};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::DynamicObject;
use kube::{Api, Client};
use orchestration::{Fence, OrderOutcome};
use parking_lot::Mutex;
use runtime::{Clock, ErrorChain};
use tokio::sync::watch;
use vocabulary::{PodCount, Timestamp};

#[cfg(test)]
pub(crate) use self::hints::HINTS_SHOWN_WITHIN;

/// How long an answer may take before the request has failed. Less than a lease lasts, so that a renewal can
/// be tried again.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(4);
/// The field manager under which the API server notes the fields that ebb writes.
const FIELD_MANAGER: &str = "ebb-autoscaler";

/// Whether pods of a namespace may be patched, as the API server said, and when it said so.
pub(crate) type PodRights = Arc<Mutex<BTreeMap<String, (bool, Timestamp)>>>;

/// The client, the clocks and the rights of every request to the API server; clones share the rights.
#[derive(Clone)]
pub(crate) struct Requests {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) clock: Clock,
    /// The rights that the Leases give; the platform's task keeps them up to date.
    pub(crate) rights: Arc<Mutex<Rights>>,
    pub(crate) pod_rights: PodRights,
    /// The newest version of a pod that the watch has shown; the platform's task keeps it up to date.
    pub(crate) shown_pods: watch::Sender<Option<ObjectVersion>>,
}

impl Requests {
    fn is_in_force(&self, fence: Fence) -> bool {
        let now = self.clock.now();
        let right = self.rights.lock().get(&fence.bucket).copied();
        right.is_some_and(|right| right.until > now && right.epoch == fence.epoch)
    }

    pub(crate) async fn fenced<Answer>(
        &self,
        fence: Fence,
        request: impl Future<Output = Result<Answer, kube::Error>>,
    ) -> Result<Answer, Failure> {
        if !self.is_in_force(fence) {
            return Err(Failure::NotOwner);
        }
        within(request).await
    }

    /// Writes a count, unless another writer has changed it since it was decided upon.
    pub(crate) async fn scale(
        &self,
        write: &CountWrite,
        target: &ScaleSubject,
    ) -> Result<ScaleAnswer, Failure> {
        let ScaleSubject { name, uid, resource } = target;
        let namespace = write.revision.namespace();
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, resource);
        let patch = Patch::Json::<()>(scale::patch(uid, write.from, write.to));
        let parameters = patch_parameters();
        match self.fenced(write.fence, api.patch_scale(name, &parameters, &patch)).await {
            Ok(present) => Ok(done(&present)),
            Err(Failure::Refused(why)) => {
                let present = self.fenced(write.fence, api.get_scale(name)).await?;
                let found = present.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
                let found = PodCount::new(u32::try_from(found).unwrap_or_default());
                let is_same = present.metadata.uid.as_ref() == Some(uid);
                match (is_same, found == write.from) {
                    // The count is the wanted one already, perhaps by a request of ours whose answer never
                    // came.
                    (true, false) if found == write.to => Ok(done(&present)),
                    // Another object of this name, about which nothing was decided.
                    (false, _) => Ok(OrderOutcome::Gone.into()),
                    (true, false) => Ok(OrderOutcome::Conflict { found }.into()),
                    // The patch's tests hold, so it was refused for another reason.
                    (true, true) => Err(Failure::Refused(why)),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// Writes slices, one after the other; returns what is there now, and `None` for those that are gone.
    pub(crate) async fn write_slices(
        &self,
        fence: Fence,
        changes: Vec<SliceChange>,
    ) -> (Vec<(SliceChange, Option<EndpointSlice>)>, Result<(), Failure>) {
        let mut written = Vec::new();
        for change in changes {
            match self.write_slice(fence, &change).await {
                Ok(slice) => written.push((change, slice)),
                Err(failure) => return (written, Err(failure)),
            }
        }
        (written, Ok(()))
    }

    async fn write_slice(
        &self,
        fence: Fence,
        change: &SliceChange,
    ) -> Result<Option<EndpointSlice>, Failure> {
        let (SliceChange::Create(slice) | SliceChange::Replace(slice) | SliceChange::Delete(slice)) = change;
        let namespace = slice.metadata.namespace.clone().unwrap_or_default();
        let name = slice.metadata.name.clone().unwrap_or_default();
        let api: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &namespace);
        let parameters = post_parameters();
        match change {
            SliceChange::Create(_) => self.fenced(fence, api.create(&parameters, slice)).await.map(Some),
            SliceChange::Replace(_) => {
                self.fenced(fence, api.replace(&name, &parameters, slice)).await.map(Some)
            }
            SliceChange::Delete(_) => {
                let preconditions = Preconditions {
                    uid: slice.metadata.uid.clone(),
                    resource_version: slice.metadata.resource_version.clone(),
                };
                let parameters = DeleteParams::default().preconditions(preconditions);
                match self.fenced(fence, api.delete(&name, &parameters)).await {
                    Ok(_) | Err(Failure::Gone(_)) => Ok(None),
                    Err(failure) => Err(failure),
                }
            }
        }
    }

    /// Writes a Lease, which needs no right: the version it is written over is the proof.
    pub(crate) async fn write_lease(&self, name: &str, write: &LeaseWrite) -> Result<LeaseRecord, Failure> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let now = jiff::Timestamp::try_from(runtime::wall_time()).unwrap_or_default();
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                resource_version: write.over.clone(),
                annotations: Some(write.notes.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: write.holder.clone(),
                lease_duration_seconds: i32::try_from(LEASE.as_secs()).ok(),
                lease_transitions: Some(write.transitions),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        };
        let parameters = post_parameters();
        let written = match write.over {
            None => within(api.create(&parameters, &lease)).await?,
            Some(_) => within(api.replace(name, &parameters, &lease)).await?,
        };
        Ok(read_lease(&written))
    }
}

/// The answer to a write after which the workload has the wanted count.
fn done(present: &Scale) -> ScaleAnswer {
    ScaleAnswer { outcome: OrderOutcome::Done, version: ObjectVersion::of(&present.metadata) }
}

/// Of a request that creates or replaces: which fields are ours.
pub(crate) fn post_parameters() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// The parameters of a request that patches.
fn patch_parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Why a request did nothing, as the API server says it.
fn failure_of(error: &kube::Error) -> Failure {
    let kube::Error::Api(status) = error else {
        return Failure::Passing { why: ErrorChain(error).to_string(), after: None };
    };
    let message = status.message.clone();
    match status.code {
        404 | 410 => Failure::Gone(message),
        409 => Failure::Conflict,
        401 | 403 => Failure::Forbidden(message),
        400 | 405 | 413 | 415 | 422 => Failure::Refused(message),
        _ => {
            let seconds = status.details.as_ref().map(|details| u64::from(details.retry_after_seconds));
            let after = seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
            Failure::Passing { why: message, after }
        }
    }
}

async fn within<Answer>(
    request: impl Future<Output = Result<Answer, kube::Error>>,
) -> Result<Answer, Failure> {
    within_time(ANSWER_WITHIN, request).await
}

/// The answer to a request, or why there is none.
pub(crate) async fn within_time<Answer>(
    patience: Duration,
    request: impl Future<Output = Result<Answer, kube::Error>>,
) -> Result<Answer, Failure> {
    let Ok(answer) = tokio::time::timeout(patience, request).await else {
        let why = format!("the API server did not answer within {} s", patience.as_secs());
        return Err(Failure::Passing { why, after: None });
    };
    answer.map_err(|error| failure_of(&error))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_answer_of_the_server_means_one_thing() {
        let failure = |code: u16, seconds: u32| {
            let answer = json!({"code": code, "message": "why", "details": {"retryAfterSeconds": seconds}});
            let status: Status = serde_json::from_value(answer).expect("a Status");
            failure_of(&kube::Error::Api(Box::new(status)))
        };
        assert!(matches!(failure(404, 0), Failure::Gone(_)));
        assert!(matches!(failure(409, 0), Failure::Conflict));
        assert!(matches!(failure(403, 0), Failure::Forbidden(_)));
        assert!(matches!(failure(422, 0), Failure::Refused(_)));
        assert!(matches!(failure(500, 0), Failure::Passing { after: None, .. }));
        let Failure::Passing { after, .. } = failure(429, 7) else { panic!("it may be asked again") };
        assert_eq!(after, Some(Duration::from_secs(7)));
    }
}
