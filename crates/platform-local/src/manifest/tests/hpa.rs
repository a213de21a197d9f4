//! Documents of class hpa: where they stand, what they need, and that they go and stay with their files.

use vocabulary::PodCount;

use super::*;

const DOCUMENT: &str = "\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: by-cpu
spec:
  scaleTargetRef: {apiVersion: serving.knative.dev/v1, kind: Service, name: hello}
  minReplicas: 2
  maxReplicas: 7
";

/// The bounds that class hpa goes by, if that is the class.
fn bounds(loaded: &LoadedManifest) -> Option<(u32, u32)> {
    let service = &loaded.services.values().next().expect("one Service").service;
    let spec = service.settings.resolve(&ClusterConfig::default(), 0, service.progress_deadline);
    spec.hpa.map(|hpa| (hpa.spec.min.value(), hpa.spec.max.value()))
}

fn annotated(lines: &str) -> String {
    in_template(&format!("metadata:\n  annotations:\n    {}", lines.replace('\n', "\n    ")))
}

#[test]
fn a_document_in_any_file_scales_its_service() {
    for texts in [vec![MINIMAL, DOCUMENT], vec![DOCUMENT, MINIMAL]] {
        assert_eq!(bounds(&Files::with(&texts).load().expect("flawless")), Some((2, 7)));
    }
    let annotation = annotated("ebb.dev/hpa: |\n  minReplicas: 3\n  maxReplicas: 4");
    assert_eq!(bounds(&Files::with(&[&annotation]).load().expect("flawless")), Some((3, 4)));
    let json = annotated("ebb.dev/hpa: '{\"maxReplicas\": 4}'");
    assert_eq!(bounds(&Files::with(&[&json]).load().expect("flawless")), Some((1, 4)));
}

#[test]
fn problems_of_a_document_name_its_line() {
    let refused = |texts: &[&str]| Files::with(texts).load().expect_err("refused");
    let stray = DOCUMENT.replace("name: hello", "name: nobody");
    assert_eq!(
        refused(&[MINIMAL, &stray]),
        [
            "1.yaml:1:1: spec.scaleTargetRef is the Service nobody of namespace default, which stands in no file; write its name, \
          or remove this document"
        ]
    );
    let twice = format!("{DOCUMENT}---\n{DOCUMENT}");
    assert!(
        refused(&[MINIMAL, &twice])[0].starts_with(
            "1.yaml:15:19: spec.scaleTargetRef is the Service hello, which the HorizontalPodAutoscaler by-cpu ("
        ),
        "{:?}",
        refused(&[MINIMAL, &twice])
    );
    let zero = DOCUMENT.replace("maxReplicas: 7", "maxReplicas: 0");
    assert!(
        refused(&[MINIMAL, &zero])[0].starts_with("1.yaml:8:16: spec.maxReplicas is 0"),
        "{:?}",
        refused(&[MINIMAL, &zero])
    );
    let broken = annotated("ebb.dev/hpa: |\n  maxReplicas: 4\n  minReplica: 3");
    assert!(
        refused(&[&broken])[0].starts_with("0.yaml:9:9: annotation ebb.dev/hpa.minReplica"),
        "{:?}",
        refused(&[&broken])
    );
    let no_yaml = annotated("ebb.dev/hpa: '{'");
    assert!(
        refused(&[&no_yaml])[0].starts_with("0.yaml:9:9: annotation ebb.dev/hpa is neither YAML nor JSON: "),
        "{:?}",
        refused(&[&no_yaml])
    );
}

#[test]
fn both_places_are_named_when_something_is_said_twice() {
    let annotation = annotated(
        "autoscaling.knative.dev/max-scale: \"3\"\nautoscaling.knative.dev/class: kpa.autoscaling.knative.dev",
    );
    let said = Files::with(&[&annotation, DOCUMENT]).load().expect_err("said twice");
    let [first, second] = said.as_slice() else { panic!("two problems: {said:?}") };
    assert!(
        first.starts_with("0.yaml:9:9: annotation autoscaling.knative.dev/max-scale is \"3\", which the HorizontalPodAutoscaler by-cpu ("),
        "{first}"
    );
    assert!(first.ends_with("1.yaml:1:1) says too (maxReplicas); remove one of them"), "{first}");
    assert!(second.contains(
        "annotation autoscaling.knative.dev/class is \"kpa.autoscaling.knative.dev\", but the Horizontal"
    ));
    let both = annotated("ebb.dev/hpa: '{maxReplicas: 4}'");
    let said = Files::with(&[&both, DOCUMENT]).load().expect_err("said twice");
    assert!(
        said[0].contains("annotation ebb.dev/hpa says what the HorizontalPodAutoscaler by-cpu"),
        "{said:?}"
    );
}

#[test]
fn requests_are_read_for_targets_in_percent() {
    let resources = in_container("name: app\nresources:\n  requests: {cpu: 250m, memory: 64Mi}");
    let (service, warnings) = the_service(&resources);
    assert_eq!(warnings, [""; 0]);
    let [container] = service.settings.requests.containers.as_slice() else { panic!("one container") };
    assert_eq!(&*container.name, "app");
    assert_eq!(container.requests.cpu.map(vocabulary::MilliValue::value), Some(250));
    let needed = Files::with(&[&resources, DOCUMENT]).load().expect("flawless");
    assert_eq!(needed.warnings, []);
    let most = in_container("resources:\n  limits: {cpu: 250m, memory: 64Mi}");
    let (service, _) = the_service(&most);
    let [container] = service.settings.requests.containers.as_slice() else { panic!("one container") };
    assert_eq!(container.requests.cpu.map(vocabulary::MilliValue::value), Some(250), "as on a cluster");
    let bad = in_container("resources:\n  requests: {cpu: many}");
    let said = Files::with(&[&bad]).load().expect_err("no quantity");
    assert!(said[0].contains("resources.requests.cpu is \"many\", which "), "{said:?}");
}

#[test]
fn a_document_goes_when_it_has_been_gone_for_a_while_and_stays_while_its_file_cannot_be_read() {
    let files = Files::with(&[MINIMAL, DOCUMENT]);
    let loaded = files.load().expect("flawless");
    files.write(1, "kind: [\n");
    assert_eq!(bounds(&files.read_later(&loaded).0), Some((2, 7)), "nobody can say what the file holds");
    files.write(1, &DOCUMENT.replace("maxReplicas: 7", "maxReplicas: 0"));
    assert_eq!(bounds(&files.read_over(&loaded).0), Some((2, 7)), "the last good one stays");
    files.write(1, &DOCUMENT.replace("maxReplicas: 7", "maxReplicas: 9"));
    assert_eq!(bounds(&files.read_over(&loaded).0), Some((2, 9)));
    files.write(1, &MINIMAL.replace("name: hello", "name: other"));
    let (kept, _) = files.read_over(&loaded);
    let hello = &kept.services[&name("default/service/hello")];
    assert!(hello.autoscaler_file.is_some(), "it may be written again");
    let mut reading = FilesReading::read(&files.source(), &loaded);
    assert_eq!(reading.missing(&loaded), [Item::Autoscaler(name("default/service/hello"))].into());
    reading.removed = reading.missing(&loaded);
    let gone = reading.merged_over(&loaded);
    assert!(gone.services[&name("default/service/hello")].service.settings.document.is_none());
    let spec = gone.services[&name("default/service/hello")].service.settings.resolve(
        &ClusterConfig::default(),
        0,
        std::time::Duration::ZERO,
    );
    assert_eq!((spec.min_scale, spec.hpa), (PodCount::ZERO, None));
}

#[test]
fn a_target_in_percent_of_nothing_is_warned_of() {
    let warned = |texts: &[&str]| {
        let files = Files::with(texts);
        let loaded = files.load().expect("flawless");
        files.messages(&loaded.warnings)
    };
    assert_eq!(
        warned(&[MINIMAL, DOCUMENT]),
        [
            "0.yaml: cpu is aimed at in percent of what is requested, and container user-container requests none, so the \
             metric fails; write resources.requests.cpu"
        ]
    );
    let memory_only = in_container("resources:\n  requests: {memory: 64Mi}");
    assert_eq!(warned(&[&memory_only, DOCUMENT]).len(), 1, "of another resource");
    let target = "{type: AverageValue, averageValue: 100m}";
    let metrics = format!("  metrics: [{{type: Resource, resource: {{name: cpu, target: {target}}}}}]\n");
    assert_eq!(warned(&[MINIMAL, &format!("{DOCUMENT}{metrics}")]), [""; 0], "an amount refers to nothing");
}

#[test]
fn one_container_of_several_is_not_measured_on_one_machine() {
    let metrics = "  metrics: [{type: ContainerResource, containerResource: {name: cpu, container: app, target: {type: AverageValue, averageValue: 1}}}]\n";
    let document = format!("{DOCUMENT}{metrics}");
    let one = in_container("name: app");
    assert!(Files::with(&[&one, &document]).load().is_ok());
    let ports = "name: app\nports: [{containerPort: 8080}]";
    let two = format!("{}        - {{name: other, command: [\"sleep\", \"9\"]}}\n", in_container(ports));
    let said = Files::with(&[&two, &document]).load().expect_err("refused");
    assert!(said.iter().any(|one| one.contains("names one of several containers")), "{said:?}");
}
