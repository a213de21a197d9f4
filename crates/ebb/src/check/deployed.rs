//! Are the Deployments those of this version, and do pods get their queue-proxy from where ebb's own image
//! is?

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;

use super::findings::CheckFinding;
use crate::cluster_install::{QUEUE_PROXY_IMAGE, VERSION_LABEL};

/// The version of this executable, and of the manifests that it was built with.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The program that gives pods their queue-proxy.
const INJECTOR: &str = "injector";

/// The findings about one Deployment as it was applied.
pub(super) fn check(program: &str, deployment: &Deployment) -> Vec<CheckFinding> {
    let mut findings = vec![of_version(program, deployment)];
    if program == INJECTOR {
        findings.extend(of_images(deployment));
    }
    findings
}

fn of_version(program: &str, deployment: &Deployment) -> CheckFinding {
    let what = format!("the manifest of deployment/{program} is of version {VERSION}, as this ebb is");
    let labels = deployment.metadata.labels.as_ref();
    let found = match labels.and_then(|labels| labels.get(VERSION_LABEL)) {
        Some(found) if found == VERSION => return CheckFinding::well(what),
        Some(other) => format!("it is of version {other}"),
        None => format!("it has no label {VERSION_LABEL}, as older ones"),
    };
    let cure =
        "`kubectl ebb install`, or your overlay of deploy/base of that version, applies the present one";
    CheckFinding::remark(what, format!("{found}; {cure}"))
}

/// `None` where the Deployment names no image of a queue-proxy, which the injector itself refuses.
fn of_images(deployment: &Deployment) -> Option<CheckFinding> {
    let template = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let container = template.containers.iter().find(|container| container.name == INJECTOR)?;
    let (own, given) = (container.image.as_deref()?, queue_proxy_image(container)?);
    let what = format!("pods get the queue-proxy {given} from where ebb's own image {own} is");
    let (own_place, place) = (registry(own), registry(given));
    if own_place == place {
        return Some(CheckFinding::well(what));
    }
    let cure = format!(
        "set {QUEUE_PROXY_IMAGE} of deployment/{INJECTOR}: `kubectl ebb install --image {own}` names both"
    );
    Some(match (own_place, place) {
        // With ebb's image from a registry, the nodes look for the other one at Docker Hub, where it is not.
        (Some(registry), None) => CheckFinding::wrong(
            what,
            format!("{given} names no registry, and {own} is in {registry}; {cure}"),
        ),
        (Some(_) | None, _) => {
            CheckFinding::remark(what, format!("they are in two registries; if that is not meant, {cure}"))
        }
    })
}

fn queue_proxy_image(container: &Container) -> Option<&str> {
    let mut variables = container.env.iter().flatten();
    variables.find(|variable| variable.name == QUEUE_PROXY_IMAGE)?.value.as_deref()
}

/// What stands before the last part of an image's name; `None` for a name alone.
fn registry(image: &str) -> Option<&str> {
    image.rsplit_once('/').map(|(registry, _)| registry)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::findings::tests::text_of;

    fn injector(image: &str, queue_proxy: &str) -> Deployment {
        let env = json!([{"name": "OTHER", "value": "x"}, {"name": QUEUE_PROXY_IMAGE, "value": queue_proxy}]);
        let containers = json!([{"name": "injector", "image": image, "env": env}]);
        let deployment = json!({
            "metadata": {"labels": {VERSION_LABEL: VERSION}},
            "spec": {"selector": {}, "template": {"spec": {"containers": containers}}},
        });
        serde_json::from_value(deployment).expect("a Deployment")
    }

    #[test]
    fn a_queue_proxy_comes_from_the_registry_of_ebbs_own_image() {
        for (image, queue_proxy, expected) in [
            ("ebb:0.1.0", "ebb-queue-proxy:0.1.0", "ok       pods get"),
            ("r.example:5000/a/ebb:1", "r.example:5000/a/ebb-queue-proxy:1", "ok       pods get"),
            ("r.example/ebb@sha256:00", "ebb-queue-proxy:1", "ebb-queue-proxy:1 names no registry, and"),
            ("ebb:test", "r.example/ebb-queue-proxy:1", "two registries"),
            ("r.example/ebb:1", "mirror.example/ebb-queue-proxy:1", "--image r.example/ebb:1` names both"),
        ] {
            let text = text_of(of_images(&injector(image, queue_proxy)).expect("both are named"));
            assert!(text.contains(expected), "{image}, {queue_proxy}: {text}");
            assert_eq!(text.contains("WRONG"), expected.contains("no registry"), "{text}");
        }
        assert!(of_images(&Deployment::default()).is_none());
    }

    #[test]
    fn a_manifest_of_another_version_is_a_remark_with_the_cure() {
        let mut deployment = injector("ebb:1", "ebb-queue-proxy:1");
        assert!(text_of(of_version(INJECTOR, &deployment)).contains("ok       the manifest of"));
        let labels = deployment.metadata.labels.as_mut().expect("it has labels");
        labels.insert(VERSION_LABEL.to_owned(), "0.0.9".to_owned());
        let older = text_of(of_version(INJECTOR, &deployment));
        assert!(
            older.contains("remark   ") && older.contains("it is of version 0.0.9; `kubectl ebb install`")
        );
        deployment.metadata.labels = None;
        assert!(
            text_of(of_version(INJECTOR, &deployment)).contains("has no label app.kubernetes.io/version")
        );
    }
}
