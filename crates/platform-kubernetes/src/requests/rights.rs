//! May we do to pods what only optional roles allow (`deploy/components/`)? The API server is asked before:
//! what is refused again and again would only fill its audit log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use parking_lot::Mutex;
use vocabulary::Timestamp;

use super::{Requests, within};

/// For so long a right is taken to be as it was.
const RIGHTS_KEPT: Duration = Duration::from_mins(5);

/// What may be done to the pods of a namespace, as far as that was asked, and when.
pub(crate) type PodRights = Arc<Mutex<BTreeMap<(PodVerb, String), (bool, Timestamp)>>>;

/// What an optional role allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PodVerb {
    Patch,
    Delete,
}

impl PodVerb {
    fn word(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

impl Requests {
    /// Whether we may do that to pods of this namespace. Nobody who does not answer has allowed it.
    pub(super) async fn may(&self, verb: PodVerb, namespace: &str) -> bool {
        let now = self.clock.now();
        let key = (verb, namespace.to_owned());
        let known = self.pod_rights.lock().get(&key).copied();
        if let Some((may, _)) = known.filter(|(_, asked)| now.saturating_since(*asked) < RIGHTS_KEPT) {
            return may;
        }
        let attributes = ResourceAttributes {
            namespace: Some(namespace.to_owned()),
            resource: Some("pods".to_owned()),
            verb: Some(verb.word().to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let Ok(answer) = within(api.create(&PostParams::default(), &review)).await else { return false };
        let may = answer.status.is_some_and(|status| status.allowed);
        let mut rights = self.pod_rights.lock();
        rights.retain(|_, (_, asked)| now.saturating_since(*asked) < RIGHTS_KEPT);
        rights.insert(key, (may, now));
        may
    }
}
