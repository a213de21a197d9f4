//! `securityContext`, as Knative writes it into Services by itself, and as people do.
//!
//! Restrictions that a process of this machine runs without are worth a warning. A manifest that asks for
//! another user or for more rights is refused.

use crate::manifest::fields::{ManifestFields, RefusedField, Report};

/// Knative's `secure-pod-defaults` writes most of these.
const RESTRICTIONS: [&str; 6] = [
    "allowPrivilegeEscalation",
    "capabilities",
    "readOnlyRootFilesystem",
    "runAsNonRoot",
    "seccompProfile",
    "seLinuxOptions",
];

const REFUSED: &[RefusedField] = &[
    ("appArmorProfile", "the app runs as the user that started ebb"),
    ("fsGroup", "the app runs as the user that started ebb"),
    ("fsGroupChangePolicy", "the app runs as the user that started ebb"),
    ("privileged", "the app runs as the user that started ebb"),
    ("procMount", "the app is a process of this machine"),
    ("runAsGroup", "the app runs as the user that started ebb"),
    ("runAsUser", "the app runs as the user that started ebb"),
    ("supplementalGroups", "the app runs as the user that started ebb"),
    ("sysctls", "the app is a process of this machine"),
];

/// Reads the field of a container or a pod.
pub(crate) fn read(owner: &mut ManifestFields<'_>, report: &mut Report) {
    let Some(mut context) = owner.mapping("securityContext", report) else { return };
    let restricts = RESTRICTIONS.into_iter().filter(|name| context.take(name).is_some()).count() > 0;
    context.finish(REFUSED, report);
    if restricts {
        owner.warn_of("securityContext", "the app may do what the user may that started ebb", report);
    }
}
