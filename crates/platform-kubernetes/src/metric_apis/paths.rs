//! Under which path is a metric asked for? Names come from tenants' annotations, so each is encoded, and none
//! leads to another path.

use cluster::resources::selector::Selector;
use runtime::percent_encoded;
use settings::hpa::LabelSelector;

/// The versions that are read, the better one first.
pub(crate) const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// The usage of all pods of a namespace.
pub(crate) fn pod_metrics(namespace: &str) -> String {
    format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods")
}

/// The versions of the custom metrics API.
pub(crate) fn custom_group() -> String {
    "/apis/custom.metrics.k8s.io".to_owned()
}

/// A number that each of some pods has.
pub(crate) fn of_pods(
    version: &str,
    namespace: &str,
    metric: (&str, &LabelSelector),
    pods: &Selector,
) -> String {
    let (name, selector) = metric;
    let name = percent_encoded(name);
    let path = format!("/apis/custom.metrics.k8s.io/{version}/namespaces/{namespace}/pods/*/{name}");
    with_query(path, &[("labelSelector", pods.to_string()), ("metricLabelSelector", selector.to_string())])
}

/// A number that one object has. `resource` is `plural` or `plural.group`; a namespace is described by
/// itself.
pub(crate) fn of_object(
    version: &str,
    namespace: &str,
    metric: (&str, &LabelSelector),
    object: (&str, &str),
) -> String {
    let ((name, selector), (resource, object)) = (metric, object);
    let (name, object) = (percent_encoded(name), percent_encoded(object));
    let path = match resource {
        "namespaces" => format!("metrics/{name}"),
        _ => format!("{resource}/{object}/{name}"),
    };
    let path = format!("/apis/custom.metrics.k8s.io/{version}/namespaces/{namespace}/{path}");
    with_query(path, &[("metricLabelSelector", selector.to_string())])
}

/// A number from outside of the cluster.
pub(crate) fn external(namespace: &str, metric: (&str, &LabelSelector)) -> String {
    let (name, selector) = metric;
    let name = percent_encoded(name);
    let path = format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{name}");
    with_query(path, &[("labelSelector", selector.to_string())])
}

/// The resources in a version of a group. The core group has no name, and only a version.
pub(crate) fn resources(api_version: &str) -> String {
    match api_version {
        "" => "/api/v1".to_owned(),
        group_version if group_version.contains('/') => format!("/apis/{group_version}"),
        version => format!("/api/{version}"),
    }
}

/// The resource as `kubectl` names it: `pods`, or `ingresses.networking.k8s.io`.
pub(crate) fn qualified(plural: &str, api_version: &str) -> String {
    match api_version.split_once('/') {
        Some((group, _)) => format!("{plural}.{group}"),
        None => plural.to_owned(),
    }
}

/// A parameter without a value is left out.
fn with_query(mut path: String, parameters: &[(&str, String)]) -> String {
    let mut separator = '?';
    for (key, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        path.push(separator);
        path.push_str(key);
        path.push('=');
        path.push_str(&percent_encoded(value));
        separator = '&';
    }
    path
}

#[cfg(test)]
mod tests {
    use settings::hpa::{LabelCondition, LabelRequirement};

    use super::*;

    fn queue() -> LabelSelector {
        LabelSelector::new(vec![LabelRequirement {
            label: "queue".into(),
            condition: LabelCondition::In(vec!["mail".into(), "print".into()]),
        }])
    }

    #[test]
    fn paths_are_those_of_the_reference() {
        let pods = Selector::new(
            serde_json::from_str(r#"{"matchLabels": {"app": "hello", "a": "b"}}"#).expect("a selector"),
        );
        assert_eq!(pod_metrics("shop"), "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods");
        assert_eq!(
            of_pods("v1beta2", "shop", ("packets", &queue()), &pods),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/packets?labelSelector=a%3Db%2Capp%3Dhello&metricLabelSelector=queue%20in%20%28mail%2Cprint%29"
        );
        assert_eq!(
            of_object(
                "v1beta1",
                "shop",
                ("hits", &LabelSelector::default()),
                ("ingresses.networking.k8s.io", "main")
            ),
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/ingresses.networking.k8s.io/main/hits"
        );
        assert_eq!(
            of_object("v1beta2", "shop", ("hits", &queue()), ("namespaces", "other")),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/metrics/hits?metricLabelSelector=queue%20in%20%28mail%2Cprint%29"
        );
        assert_eq!(
            external("shop", ("jobs", &LabelSelector::default())),
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/jobs"
        );
    }

    #[test]
    fn a_name_leads_to_no_other_path() {
        let none = LabelSelector::default();
        assert_eq!(
            external("shop", ("../../../api/v1/secrets?a#b", &none)),
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/..%2F..%2F..%2Fapi%2Fv1%2Fsecrets%3Fa%23b"
        );
        let path = of_object("v1beta2", "shop", ("a/b", &none), ("services", "../c"));
        assert_eq!(path, "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/services/..%2Fc/a%2Fb");
    }

    #[test]
    fn kinds_are_looked_up_where_their_group_lists_them() {
        for (api_version, path, name) in [
            ("", "/api/v1", "things"),
            ("v1", "/api/v1", "things"),
            ("networking.k8s.io/v1", "/apis/networking.k8s.io/v1", "things.networking.k8s.io"),
        ] {
            assert_eq!(
                (resources(api_version).as_str(), qualified("things", api_version).as_str()),
                (path, name)
            );
        }
    }
}
