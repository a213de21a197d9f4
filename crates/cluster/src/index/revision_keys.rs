//! By which keys do the objects of a revision of Knative's go?

use vocabulary::{KNATIVE_REVISION_KIND, LinkAddress, RevisionName};

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

/// Where a pod takes a link, or, if its revision is Knative's, where its load is asked for.
pub(super) fn link_of(revision: &RevisionName, link: Option<LinkAddress>) -> Option<LinkAddress> {
    if key_of(revision).is_some() { link.map(pods::scrape_address) } else { link }
}
