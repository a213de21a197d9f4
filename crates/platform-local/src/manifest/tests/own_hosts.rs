//! Hosts that manifests give to Services: `ebb.dev/hosts` and `kind: DomainMapping`.

use super::*;

const MAPPING: &str = "\
apiVersion: serving.knative.dev/v1beta1
kind: DomainMapping
metadata:
  name: Shop.example.org
spec:
  ref: {kind: Service, name: hello, apiVersion: serving.knative.dev/v1}
";

fn annotated(name: &str, hosts: &str) -> String {
    let metadata = format!("metadata:\n  name: {name}\n  annotations: {{ebb.dev/hosts: \"{hosts}\"}}\n");
    MINIMAL.replace("metadata:\n  name: hello\n", &metadata)
}

fn hosts_of(loaded: &LoadedManifest, service: &str) -> Vec<String> {
    loaded.services[&name(&format!("default/service/{service}"))].service.hosts()
}

#[test]
fn a_service_has_the_hosts_of_its_annotation_and_of_documents_behind_those_of_its_name() {
    let files = Files::with(&[&annotated("hello", "a.example.org, *.a.example.org"), MAPPING]);
    let loaded = files.load().expect("all of it is good");
    assert_eq!(
        hosts_of(&loaded, "hello"),
        [
            "hello.default.example.com",
            "hello.localhost",
            "hello.default.localhost",
            "a.example.org",
            "*.a.example.org",
            "shop.example.org",
        ]
    );
    assert_eq!(
        FrontDoor::without_tls(([127, 0, 0, 1], 80).into()).url(&only(loaded)),
        "http://hello.localhost"
    );
}

fn only(loaded: LoadedManifest) -> ManifestService {
    loaded.services.into_values().next().expect("one Service").service
}

#[test]
fn a_host_that_another_service_has_is_refused_with_both_places() {
    let files = Files::with(&[
        &annotated("one", "shop.example.org"),
        &annotated("two", "*.shop.example.org, SHOP.example.org"),
        &annotated("three", "one.default.example.com"),
    ]);
    let messages = files.load().expect_err("two conflicts");
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages[0].starts_with("1.yaml:5:17: the host shop.example.org belongs to the Service one"),
        "{messages:?}"
    );
    assert!(messages[0].contains("0.yaml:5:17"), "{messages:?}");
    assert!(
        messages[1].starts_with("2.yaml:5:17: the host one.default.example.com belongs to the Service one"),
        "{messages:?}"
    );
}

#[test]
fn a_domain_mapping_with_a_field_without_meaning_here_is_refused() {
    for (change, expected) in [
        (
            ("  ref:", "  tls: {secretName: s}\n  ref:"),
            "spec.tls is not supported on one machine: certificates are",
        ),
        (
            ("kind: Service, name", "kind: Route, name"),
            "spec.ref.kind is \"Route\"; on one machine a host leads to a Service",
        ),
        (("name: hello,", "name: hello, namespace: shop,"), "spec.ref.namespace is \"shop\""),
        (
            ("name: hello,", "name: other,"),
            "spec.ref is the Service other of namespace default, which stands in no file",
        ),
        (("serving.knative.dev/v1}", "v1}"), "spec.ref.apiVersion is \"v1\""),
        (("Shop.example.org", "https://shop"), "metadata.name is \"https://shop\"; write names such as"),
        (("v1beta1", "v1alpha1"), "kind is DomainMapping of serving.knative.dev/v1alpha1"),
    ] {
        let files = Files::with(&[MINIMAL, &MAPPING.replacen(change.0, change.1, 1)]);
        let messages = files.load().expect_err("one problem");
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].starts_with("1.yaml:") && messages[0].contains(expected), "{messages:?}");
    }
    let on_template = in_template("metadata: {annotations: {ebb.dev/hosts: a.example.org}}");
    let messages = Files::with(&[&on_template]).load().expect_err("no effect");
    assert!(messages[0].contains("ebb.dev/hosts stands on the template"), "{messages:?}");
    let messages = Files::with(&[&annotated("hello", "a.org:80,")]).load().expect_err("no hosts");
    assert_eq!(messages.len(), 2, "{messages:?}");
}

#[test]
fn a_host_stays_until_its_document_counts_as_removed() {
    let files = Files::with(&[MINIMAL, MAPPING]);
    let loaded = files.load().expect("all of it is good");
    files.write(1, &MINIMAL.replace("name: hello", "name: other"));
    let mut reading = FilesReading::read(&files.source(), &loaded);
    let item = Item::DomainMapping(name("default/service/hello"));
    assert_eq!(reading.missing(&loaded), [item.clone()].into());
    let kept = FilesReading::read(&files.source(), &loaded).merged_over(&loaded);
    assert_eq!(hosts_of(&kept, "hello").len(), 4, "it may be written again");
    reading.removed = [item].into();
    assert_eq!(hosts_of(&reading.merged_over(&loaded), "hello").len(), 3);
    files.write(1, &MAPPING.replace("kind: Service", "kind: Route"));
    assert_eq!(hosts_of(&files.read_over(&loaded).0, "hello").len(), 4, "the last good one stays");
}
