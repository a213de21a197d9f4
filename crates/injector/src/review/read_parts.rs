//! The parts of objects that a review reads; the rest of them does not become values.

use vocabulary::INJECT_LABEL;

use crate::tree::TreePart;

/// The parts of a pod that are read: `spec` and the annotations are written again whole.
const POD: TreePart = TreePart::Fields(&[
    (
        "metadata",
        TreePart::Fields(&[
            ("labels", TreePart::Fields(&[(INJECT_LABEL, TreePart::Whole)])),
            ("annotations", TreePart::Whole),
            ("ownerReferences", TreePart::Each(&TreePart::Fields(&[("kind", TreePart::Whole)]))),
        ]),
    ),
    ("spec", TreePart::Whole),
]);
pub(super) static INJECTED_POD: TreePart = POD;

/// The parts of `managedFields` that say which client has applied the count.
const FIELD_OWNERS: TreePart = TreePart::Each(&TreePart::Fields(&[
    ("operation", TreePart::Whole),
    ("subresource", TreePart::Whole),
    ("time", TreePart::Whole),
    ("fieldsV1", TreePart::Fields(&[("f:spec", TreePart::Fields(&[("f:replicas", TreePart::Presence)]))])),
]));

/// The parts of a ConfigMap or a workload that are checked.
pub(super) static CHECKED_OBJECT: TreePart = TreePart::Fields(&[
    ("kind", TreePart::Whole),
    (
        "metadata",
        TreePart::Fields(&[
            ("name", TreePart::Whole),
            ("annotations", TreePart::Whole),
            ("managedFields", FIELD_OWNERS),
        ]),
    ),
    ("data", TreePart::Whole),
    ("spec", TreePart::Fields(&[("replicas", TreePart::Whole), ("template", POD)])),
]);

/// The part of an applied manifest that is checked: whether it names the count.
pub(super) static APPLIED_MANIFEST: TreePart =
    TreePart::Fields(&[("spec", TreePart::Fields(&[("replicas", TreePart::Presence)]))]);
