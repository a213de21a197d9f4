//! `securityContext`, as Knative writes it into Services by itself, and as people do.
//!
//! Restrictions that a process of this machine runs without are worth a warning. A manifest that asks for
//! another user or for more rights is refused. An image runs with most of them, as another user too.

use crate::images::ContainerSecurity;
use crate::manifest::fields::{ManifestFields, RefusedField, Report};
use crate::manifest::yaml::YamlNode;

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

/// The largest number of a user or a group.
const MOST_ID: u32 = i32::MAX as u32;

const REFUSED_OF_IMAGE: &[RefusedField] = &[
    ("appArmorProfile", "the container has its engine's profile"),
    ("privileged", "the container has the rights that its engine gives; write capabilities.add"),
    ("procMount", "the container sees /proc as its engine shows it"),
];

/// Reads the field of a container that is an image.
pub(crate) fn read_of_image(owner: &mut ManifestFields<'_>, report: &mut Report) -> ContainerSecurity {
    let Some(mut context) = owner.mapping("securityContext", report) else {
        return ContainerSecurity::default();
    };
    let user = context.integer("runAsUser", 0..=MOST_ID, report);
    let group = context.integer("runAsGroup", 0..=MOST_ID, report);
    if user.is_none() && group.is_some() {
        let (group, user) = (context.path_of("runAsGroup"), context.path_of("runAsUser"));
        report.refuse(context.place, format!("{group} stands without {user}; write both"));
    }
    let (mut dropped_capabilities, mut added_capabilities) = (Vec::new(), Vec::new());
    if let Some(mut capabilities) = context.mapping("capabilities", report) {
        dropped_capabilities = capabilities.texts("drop", report).unwrap_or_default();
        added_capabilities = capabilities.texts("add", report).unwrap_or_default();
        capabilities.finish(&[], report);
    }
    let has_read_only_root = context.switch("readOnlyRootFilesystem", report) == Some(true);
    let may_gain_no_privileges = context.switch("allowPrivilegeEscalation", report) == Some(false);
    context.warn_of("runAsNonRoot", "the user of an image is not looked at; write runAsUser", report);
    context.warn_of("seLinuxOptions", "the container has its engine's label", report);
    // That of the engine is meant by RuntimeDefault.
    let profile = context.take("seccompProfile").and_then(|profile| profile.field("type"));
    if profile.and_then(YamlNode::text).is_some_and(|profile| profile != "RuntimeDefault") {
        context.warn_of("seccompProfile", "the container has its engine's profile", report);
    }
    context.finish(REFUSED_OF_IMAGE, report);
    ContainerSecurity {
        user,
        group,
        has_read_only_root,
        may_gain_no_privileges,
        dropped_capabilities,
        added_capabilities,
    }
}
