//! A write that is missing, and the step of the controller that it belongs to.

use serde_json::{Value, json};

use crate::knative::objects::{KnownObjects, ObjectId, contains};

/// A part of the controller's work that a test can delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ControllerStep {
    /// Revisions, their Deployments and their `PodAutoscaler`s.
    Revisions,
    /// Conditions of revisions and Services.
    Statuses,
    /// The two Services of a `ServerlessService`.
    Services,
    /// The Endpoints of the public Service.
    Endpoints,
    /// The status of a `ServerlessService`.
    ServerlessStatus,
}

impl ControllerStep {
    pub(super) const ALL: [Self; 5] =
        [Self::Revisions, Self::Statuses, Self::Services, Self::Endpoints, Self::ServerlessStatus];

    /// The key of the step in the ConfigMap of a test.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Revisions => "revisions",
            Self::Statuses => "statuses",
            Self::Services => "services",
            Self::Endpoints => "endpoints",
            Self::ServerlessStatus => "serverless-status",
        }
    }
}

/// How an object is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WriteForm {
    /// The whole object is made.
    Create(Value),
    /// A merge patch of the object.
    Patch(Value),
    /// A merge patch of its status.
    PatchStatus(Value),
}

/// A write that is missing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedWrite {
    pub(super) step: ControllerStep,
    pub(super) id: ObjectId,
    pub(super) form: WriteForm,
}

/// The write by which an object becomes as it is wanted; `None` where it is so already.
pub(super) fn ensured(
    known: &KnownObjects,
    step: ControllerStep,
    id: ObjectId,
    wanted: Value,
) -> Option<PlannedWrite> {
    let form = match known.get(&id) {
        None => WriteForm::Create(whole(&id, wanted)),
        Some(live) if contains(live, &wanted) => return None,
        Some(_) => WriteForm::Patch(wanted),
    };
    Some(PlannedWrite { step, id, form })
}

/// The write by which a status becomes as it is wanted.
pub(super) fn ensured_status(
    step: ControllerStep,
    id: &ObjectId,
    live: &Value,
    status: &Value,
) -> Option<PlannedWrite> {
    let wanted = json!({"status": status});
    let form = (!contains(live, &wanted)).then_some(WriteForm::PatchStatus(wanted))?;
    Some(PlannedWrite { step, id: id.clone(), form })
}

/// The object with its kind and its name.
fn whole(id: &ObjectId, mut wanted: Value) -> Value {
    wanted["apiVersion"] = json!(id.kind.api_version());
    wanted["kind"] = json!(id.kind.kind());
    wanted["metadata"]["name"] = json!(id.name);
    wanted["metadata"]["namespace"] = json!(id.namespace);
    wanted
}
