//! Do programs of Knative's and of ebb's stand side by side that must not? (Contract §7.1.)
//!
//! ebb's activators hear nothing from an autoscaler of Knative's. Where Knative's manifest is applied alone,
//! its autoscaler comes while ebb's is still there, which is the last moment at which ebb can say so.

use orchestration::Subject;
use vocabulary::ReplicaName;

use super::Index;
use crate::notice::{Notice, UNSUPPORTED_MIXTURE};
use crate::resources::ObjectKey;
use crate::resources::pod::PodObject;
use crate::resources::ports::TargetPort;

/// The name of a port that ebb's autoscaler declares in an installed Knative, and Knative's does not.
const API_PORT_NAME: &str = "api";

impl Index {
    /// A pod of the Deployment `autoscaler`; `None` for one that is gone.
    pub(crate) fn put_autoscaler_pod(&mut self, key: ObjectKey, pod: Option<&PodObject>) {
        let is_knatives = pod.is_some_and(|pod| pod.stays() && !is_ebbs(pod));
        let is_news = if is_knatives {
            self.knatives_autoscalers.insert(key)
        } else {
            self.knatives_autoscalers.remove(&key)
        };
        if is_news {
            self.review_mixture();
        }
    }

    /// Looks which activators of ebb's stand beside an autoscaler of Knative's, and tells people of each.
    pub(super) fn review_mixture(&mut self) {
        if self.revisions.domain().is_none() {
            return;
        }
        let notice = self.knatives_autoscalers.first().map(|ObjectKey { namespace, name }| {
            let text = format!(
                "pod {namespace}/{name}: an autoscaler of Knative's, from which ebb's activators hear nothing, so that new revisions are unknown to them; apply deploy/knative/activator again, or Knative's manifest whole"
            );
            Notice::new(UNSUPPORTED_MIXTURE, text)
        });
        let ours = self.pods.activators().filter(|activator| !activator.is_knatives());
        let ours: Vec<ReplicaName> = ours.map(|activator| activator.name.clone()).collect();
        for name in ours {
            self.notices.put(Subject::Activator(name), notice.clone().into_iter().collect());
        }
    }
}

/// Whether an autoscaler is ebb's.
fn is_ebbs(pod: &PodObject) -> bool {
    pod.ports.number(&TargetPort::Name(API_PORT_NAME.to_owned())).is_some()
}
