//! By which keys do the objects of a revision of Knative's go?

use vocabulary::{KNATIVE_REVISION_KIND, LinkAddress, LinkChannel, RevisionName};

use crate::knative::pods;
use crate::resources::ObjectKey;

/// The key of a revision of Knative's; `None` for any other workload.
pub(super) fn key_of(revision: &RevisionName) -> Option<ObjectKey> {
    let (namespace, name) = (revision.namespace().to_owned(), revision.name().to_owned());
    (revision.kind() == KNATIVE_REVISION_KIND).then_some(ObjectKey { namespace, name })
}

/// The name of the revision with this key; `None` for a key that is no name.
pub(super) fn name_of(key: &ObjectKey) -> Option<RevisionName> {
    RevisionName::new(&key.namespace, KNATIVE_REVISION_KIND, &key.name).ok()
}

/// Where a pod takes a link, or, if its revision is Knative's, where its load is asked for and whether it is:
/// by `channel`, which no other revision has.
pub(super) fn link_of(link: Option<LinkAddress>, channel: Option<LinkChannel>) -> Option<LinkAddress> {
    let Some(channel) = channel else { return link };
    link.map(|link| pods::scrape_address(link, channel))
}
