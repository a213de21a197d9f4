mod containers;
mod env;
mod given_annotations;
mod hpa;
mod images;
mod observability;
mod own_hosts;

use std::fmt::Write as _;
use std::path::PathBuf;

use settings::ClusterConfig;
use vocabulary::{ProbeQuestion, RevisionName};

use super::*;
use crate::front_door::{CertifiedNames, FrontDoor, FrontTlsDoor};

const MINIMAL: &str = "\
apiVersion: serving.knative.dev/v1
kind: Service
metadata:
  name: hello
spec:
  template:
    spec:
      containers:
        - command: [\"ebb\", \"sample-app\"]
";

/// Files in a directory of their own; messages name them without it.
struct Files {
    directory: tempfile::TempDir,
    files: Vec<PathBuf>,
}

impl Files {
    /// Writes the texts as `0.yaml`, `1.yaml`, ….
    fn with(texts: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = (0..texts.len()).map(|index| directory.path().join(format!("{index}.yaml"))).collect();
        let files = Self { directory, files };
        for (index, text) in texts.iter().enumerate() {
            files.write(index, text);
        }
        files
    }

    fn write(&self, index: usize, text: &str) {
        std::fs::write(&self.files[index], text).expect("writing");
    }

    fn load(&self) -> Result<LoadedManifest, Vec<String>> {
        load(&self.source()).map_err(|findings| self.messages(&findings.problems))
    }

    fn read_over(&self, last_good: &LoadedManifest) -> (LoadedManifest, Vec<String>) {
        let mut reading = FilesReading::read(&self.source(), last_good);
        reading.refuse_empty();
        let messages = self.messages(&reading.troubles);
        (reading.merged_over(last_good), messages)
    }

    /// The same, two seconds later.
    fn read_later(&self, last_good: &LoadedManifest) -> (LoadedManifest, Vec<String>) {
        let mut reading = FilesReading::read(&self.source(), last_good);
        reading.refuse_empty();
        reading.removed = reading.missing(last_good);
        let messages = self.messages(&reading.troubles);
        (reading.merged_over(last_good), messages)
    }

    fn source(&self) -> ManifestSource {
        named(&self.files, ForeignKinds::Refused)
    }

    fn messages(&self, troubles: &[Trouble]) -> Vec<String> {
        let prefix = format!("{}/", self.directory.path().display());
        troubles.iter().map(|trouble| trouble.to_string().replace(&prefix, "")).collect()
    }
}

fn named(paths: &[PathBuf], foreign: ForeignKinds) -> ManifestSource {
    ManifestSource::new(paths.to_vec(), "example.com", foreign).expect("standard input is not read")
}

fn the_service(text: &str) -> (ManifestService, Vec<String>) {
    let files = Files::with(&[text]);
    let loaded = files.load().unwrap_or_else(|messages| panic!("{messages:#?}\n{text}"));
    let warnings = files.messages(&loaded.warnings);
    let placed = loaded.services.into_values().next().expect("one Service");
    (placed.service, warnings)
}

fn name(text: &str) -> RevisionName {
    RevisionName::parse(text).expect("a name")
}

/// The minimal manifest with more lines in its container, its pod, its template's metadata, or beside `spec`.
fn in_container(lines: &str) -> String {
    format!("{MINIMAL}{}", indented(lines, 10))
}

fn in_pod(lines: &str) -> String {
    MINIMAL.replace("      containers:\n", &format!("{}      containers:\n", indented(lines, 6)))
}

fn in_template(lines: &str) -> String {
    MINIMAL.replace("    spec:\n", &format!("{}    spec:\n", indented(lines, 4)))
}

fn in_service(lines: &str) -> String {
    MINIMAL.replace("spec:\n  template", &format!("spec:\n{}  template", indented(lines, 2)))
}

fn in_metadata(lines: &str) -> String {
    MINIMAL.replace("  name: hello\n", &format!("  name: hello\n{}", indented(lines, 2)))
}

fn indented(lines: &str, by: usize) -> String {
    let margin = " ".repeat(by);
    format!("{margin}{}\n", lines.replace('\n', &format!("\n{margin}")))
}

/// Each text with what is said of it.
fn table(rows: &[(&str, String)]) -> String {
    let mut table = String::new();
    for (row, text) in rows {
        let files = Files::with(&[text]);
        let (problems, warnings) = match load(&files.source()) {
            Ok(loaded) => (Vec::new(), [loaded.warnings, loaded.absences].concat()),
            Err(findings) => (findings.problems, findings.warnings),
        };
        let warnings = files.messages(&warnings).into_iter().map(|text| format!("(warning) {text}"));
        let messages = files.messages(&problems).into_iter().chain(warnings);
        writeln!(table, "{row}").expect("a string");
        for message in messages {
            writeln!(table, "    {message}").expect("a string");
        }
    }
    table
}

#[test]
fn a_minimal_service_has_knatives_defaults() {
    let (service, warnings) = the_service(MINIMAL);
    assert_eq!(warnings, [] as [&str; 0]);
    assert_eq!(service.name.as_str(), "default/service/hello");
    assert_eq!(service.host, "hello.default.example.com");
    assert_eq!(service.progress_deadline.as_secs(), 600);
    let template = service.template;
    assert_eq!(template.container_concurrency, 0);
    assert_eq!(template.timeouts.request.map(|timeout| timeout.as_secs()), Some(300));
    assert_eq!((template.timeouts.response_start, template.timeouts.idle), (None, None));
    assert_eq!(template.app.command, ["ebb", "sample-app"]);
    let readiness = template.probes.readiness.expect("Knative's default probe");
    let written = serde_json::to_string(&readiness).expect("plain data");
    assert_eq!(written, r#"{"tcpSocket":{"host":"127.0.0.1"},"successThreshold":1}"#);
    assert_eq!((template.probes.liveness, template.probes.startup), (None, None));
}

#[test]
fn a_url_leads_to_where_the_service_is_under_a_name_that_its_certificate_holds() {
    let (service, _) = the_service(&in_container(""));
    let address = |text: &str| text.parse().expect("an address");
    let plain = |requests| FrontDoor::without_tls(address(requests));
    let over_tls = |tls, names| FrontDoor {
        requests: address("127.0.0.1:8080"),
        tls: Some(FrontTlsDoor { address: address(tls), names }),
    };
    for (door, url) in [
        (plain("127.0.0.1:8080"), "http://hello.localhost:8080"),
        (plain("0.0.0.0:80"), "http://hello.localhost"),
        (plain("192.0.2.1:443"), "http://hello.default.example.com:443"),
        (over_tls("127.0.0.1:8443", CertifiedNames::All), "https://hello.localhost:8443"),
        (over_tls("127.0.0.1:8443", CertifiedNames::Hosts), "https://hello.default.example.com:8443"),
        (over_tls("0.0.0.0:443", CertifiedNames::Hosts), "https://hello.default.example.com"),
        (over_tls("192.0.2.1:80", CertifiedNames::All), "https://hello.default.example.com:80"),
    ] {
        assert_eq!(door.url(&service), url);
    }
}

#[test]
fn everything_that_is_honoured_arrives() {
    let (service, warnings) = the_service(
        "\
apiVersion: serving.knative.dev/v1
kind: Service
metadata:
  name: hello
  namespace: shop
  uid: 8f0d
  labels: {team: a}
spec:
  traffic:
    - latestRevision: true
      percent: 100
  template:
    metadata:
      name: hello-blue
      creationTimestamp: null
      labels: {app: hello}
      annotations:
        autoscaling.knative.dev/target: \"10\"
        serving.knative.dev/progress-deadline: 20s
        example.com/restarted: \"1\"
    spec:
      containerConcurrency: 3
      timeoutSeconds: 0
      terminationGracePeriodSeconds: 25
      responseStartTimeoutSeconds: 20
      idleTimeoutSeconds: 10
      containers:
        - name: app
          command: [serve]
          args: [--port, $(PORT)]
          workingDir: here
          env:
            - {name: A, value: \"1\"}
            - {name: B}
          ports: [{name: h2c, containerPort: 9000, protocol: TCP}]
          readinessProbe: {httpGet: {path: /ready, port: 9000, httpHeaders: [{name: X, value: y}]}, periodSeconds: 1}
          livenessProbe: {exec: {command: [check]}, failureThreshold: 2}
          startupProbe: {grpc: {port: 9001, service: s}, initialDelaySeconds: 3}
status: {}
",
    );
    assert_eq!(warnings, [] as [&str; 0]);
    assert_eq!(service.settings.target, Some(10.0));
    let mut shown = serde_json::to_value(&service.template).expect("plain data");
    let directory = service.template.app.directory.expect("one is given");
    assert!(directory.ends_with("here") && directory.is_absolute(), "beside the manifest: {directory:?}");
    shown["directory"] = "(beside the manifest)".into();
    let shown = serde_json::to_string_pretty(&shown).expect("plain data");
    insta::assert_snapshot!("everything_honoured", shown);
}

#[test]
fn a_port_that_a_probe_names_is_the_apps() {
    for probe in [
        "readinessProbe: {tcpSocket: {port: 8080}}",
        "readinessProbe: {tcpSocket: {port: 0}}",
        "readinessProbe: {tcpSocket: {}}",
        "ports: [{containerPort: 5000, name: http1}]\nreadinessProbe: {tcpSocket: {port: http1}}",
        "ports: [{containerPort: 5000}]\nreadinessProbe: {tcpSocket: {port: 5000}}",
    ] {
        let (service, _) = the_service(&in_container(probe));
        let readiness = service.template.probes.readiness.expect("a probe");
        assert_eq!(readiness.question, ProbeQuestion::Tcp { port: None }, "{probe}");
    }
    let (service, _) = the_service(&in_container("readinessProbe: {tcpSocket: {port: 8087}}"));
    let readiness = service.template.probes.readiness.expect("a probe");
    assert_eq!(readiness.question, ProbeQuestion::Tcp { port: Some(8087) }, "I2");
}

#[test]
fn refused_fields_of_the_service() {
    let rows = [
        ("misspelt", MINIMAL.replace("  template:", "  templat:")),
        (
            "traffic split",
            in_service(
                "traffic: [{revisionName: hello-00001, percent: 50}, {latestRevision: true, percent: 50}]",
            ),
        ),
        ("traffic tag", in_service("traffic: [{latestRevision: true, percent: 100, tag: blue}]")),
        ("A34: misplaced annotation", in_metadata("annotations: {autoscaling.knative.dev/min-scale: \"1\"}")),
        ("name", MINIMAL.replace("hello", "Hello_World")),
        ("namespace", in_metadata("namespace: -x")),
        ("no name", MINIMAL.replace("  name: hello\n", "  labels: {}\n")),
        ("generateName", in_metadata("generateName: x-")),
        ("no metadata", MINIMAL.replace("metadata:\n  name: hello\n", "")),
        (
            "no spec",
            "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: hello}\n".to_owned(),
        ),
        (
            "no template",
            "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: hello}\nspec: {}\n"
                .to_owned(),
        ),
        ("core Service", MINIMAL.replace("serving.knative.dev/v1", "v1")),
        ("other kind", MINIMAL.replace("kind: Service", "kind: Deployment")),
        ("misspelt kind", MINIMAL.replace("kind: Service", "kind: Servce")),
        ("no manifest", "a: 1\n".to_owned()),
        ("a list", "- a\n- b\n".to_owned()),
        ("broken", "a: [1, 2\nb: 3\n".to_owned()),
        ("a key twice", MINIMAL.replace("kind: Service\n", "kind: Service\nkind: Service\n")),
    ];
    insta::assert_snapshot!("refused_of_service", table(&rows));
}

#[test]
fn refused_fields_of_the_template() {
    let annotated = |annotation: &str| in_template(&format!("metadata:\n  annotations:\n    {annotation}"));
    let rows = [
        ("unknown annotation", annotated("autoscaling.knative.dev/min-scal: \"1\"")),
        ("out of range", annotated("autoscaling.knative.dev/target: \"0\"")),
        ("not a text", annotated("autoscaling.knative.dev/target: 10")),
        ("hpa", annotated("autoscaling.knative.dev/class: hpa.autoscaling.knative.dev")),
        ("progress deadline", annotated("serving.knative.dev/progress-deadline: 1.5s")),
        ("progress deadline without unit", annotated("serving.knative.dev/progress-deadline: \"600\"")),
        ("misspelt", in_template("metdata: {}")),
        ("containerConcurrency", in_pod("containerConcurrency: 1001")),
        ("containerConcurrency as text", in_pod("containerConcurrency: \"1\"")),
        ("timeout", in_pod("timeoutSeconds: -1")),
        ("response start beyond the whole", in_pod("timeoutSeconds: 10\nresponseStartTimeoutSeconds: 11")),
        ("idle beyond the whole", in_pod("idleTimeoutSeconds: 301")),
        ("volumes", in_pod("volumes: [{name: data, emptyDir: {}}]")),
        ("init containers", in_pod("initContainers: []")),
        ("security", in_pod("securityContext: {runAsUser: 0}")),
        ("grace period", in_pod("terminationGracePeriodSeconds: -1")),
        ("misspelt limit", in_pod("containerConcurency: 1")),
        (
            "no container",
            MINIMAL.replace(
                "      containers:\n        - command: [\"ebb\", \"sample-app\"]\n",
                "      containers: []\n",
            ),
        ),
        (
            "containers missing",
            MINIMAL.replace(
                "      containers:\n        - command: [\"ebb\", \"sample-app\"]\n",
                "      timeoutSeconds: 1\n",
            ),
        ),
    ];
    insta::assert_snapshot!("refused_of_template", table(&rows));
}

#[test]
fn refused_fields_of_the_container() {
    let rows = [
        ("image alone", MINIMAL.replace("command: [\"ebb\", \"sample-app\"]", "image: ghcr.io/a/b")),
        ("nothing to run", MINIMAL.replace("command: [\"ebb\", \"sample-app\"]", "name: app")),
        ("args alone", MINIMAL.replace("command: [\"ebb\", \"sample-app\"]", "args: [a]")),
        ("command as text", MINIMAL.replace("[\"ebb\", \"sample-app\"]", "ebb sample-app")),
        ("number in command", MINIMAL.replace("\"sample-app\"", "8080")),
        ("misspelt", MINIMAL.replace("command", "comand")),
        ("env number", in_container("env: [{name: A, value: 8080}]")),
        ("env bool", in_container("env: [{name: A, value: true}]")),
        ("env without name", in_container("env: [{value: a}]")),
        ("env twice", in_container("env: [{name: A}, {name: A}]")),
        ("env reserved", in_container("env: [{name: PORT, value: \"1\"}]")),
        ("env misspelt", in_container("env: [{nam: A}]")),
        ("volume mounts", in_container("volumeMounts: [{name: data, mountPath: /data}]")),
        ("lifecycle", in_container("lifecycle: {}")),
        ("security", in_container("securityContext: {}")),
        ("two ports", in_container("ports: [{containerPort: 1}, {containerPort: 2}]")),
        ("port range", in_container("ports: [{containerPort: 70000}]")),
        ("port name", in_container("ports: [{name: grpc}]")),
        ("port protocol", in_container("ports: [{protocol: UDP}]")),
        ("limit", in_container("resources: {limits: {memory: much}}")),
        ("more than the most", in_container("resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}")),
        ("host port", in_container("ports: [{hostPort: 80}]")),
    ];
    insta::assert_snapshot!("refused_of_container", table(&rows));
}

#[test]
fn refused_probes() {
    let rows = [
        ("two handlers", in_container("readinessProbe: {httpGet: {}, tcpSocket: {}}")),
        ("liveness without handler", in_container("livenessProbe: {periodSeconds: 1}")),
        ("startup success threshold", in_container("startupProbe: {tcpSocket: {}, successThreshold: 2}")),
        (
            "as fast as possible with thresholds",
            in_container("readinessProbe: {periodSeconds: 0, failureThreshold: 3}"),
        ),
        ("liveness period", in_container("livenessProbe: {tcpSocket: {}, periodSeconds: 0}")),
        ("other host", in_container("readinessProbe: {httpGet: {host: example.com}}")),
        ("scheme", in_container("readinessProbe: {httpGet: {scheme: http}}")),
        ("port name", in_container("readinessProbe: {httpGet: {port: admin}}")),
        ("header", in_container("readinessProbe: {httpGet: {httpHeaders: [{value: x}]}}")),
        ("empty exec", in_container("readinessProbe: {exec: {}}")),
        ("misspelt", in_container("readinessProbe: {httpget: {path: /}}")),
        ("misspelt inside", in_container("readinessProbe: {httpGet: {paht: /}}")),
        ("grace period", in_container("livenessProbe: {tcpSocket: {}, terminationGracePeriodSeconds: 1}")),
    ];
    insta::assert_snapshot!("refused_probes", table(&rows));
}

#[test]
fn fields_without_effect_are_accepted_with_a_warning() {
    let rows = [
        (
            "a limit of something else",
            in_container("resources: {limits: {cpu: \"1\", ephemeral-storage: 1Gi}}"),
        ),
        ("image beside a command", in_container("image: ghcr.io/a/b")),
        ("imagePullPolicy", in_container("imagePullPolicy: Always")),
        ("serviceAccountName", in_pod("serviceAccountName: robot")),
        (
            "old spelling",
            in_template(
                "metadata: {annotations: {autoscaling.knative.dev/minScale: \"1\", autoscaling.knative.dev/min-scale: \"2\"}}",
            ),
        ),
    ];
    insta::assert_snapshot!("warnings", table(&rows));
}

#[test]
fn config_maps() {
    let config = |data: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config-autoscaler}}\ndata:\n{}",
            indented(data, 2)
        )
    };
    let rows = [
        ("flawless", config("stable-window: 10s")),
        ("no data", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-autoscaler, namespace: knative-serving}\n".to_owned()),
        ("two problems", config("stable-window: 5\nstabel-window: 10s")),
        ("not a text", config("initial-scale: 1")),
        ("hpa by default", config("pod-autoscaler-class: hpa.autoscaling.knative.dev")),
        ("another name", config("a: b").replace("config-autoscaler", "config-autoscalr")),
        ("binary", config("stable-window: 10s") + "binaryData: {}\n"),
        ("twice", format!("{0}---\n{0}", config("stable-window: 10s"))),
    ];
    insta::assert_snapshot!("config_maps", table(&rows));
}

#[test]
fn annotations_are_checked_against_a_config_map_in_another_file() {
    let limited = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-autoscaler}\ndata: {max-scale-limit: \"5\", max-scale: \"5\"}\n";
    let service = in_template("metadata: {annotations: {autoscaling.knative.dev/max-scale: \"9\"}}");
    let messages = Files::with(&[&service, limited]).load().expect_err("9 is above the limit");
    assert!(
        messages[0].starts_with("0.yaml:7:30: ") && messages[0].contains("max-scale-limit"),
        "{messages:?}"
    );
}

#[test]
fn all_problems_of_all_files_are_told_at_once_in_their_order() {
    let twice = MINIMAL.replace("hello", "twin");
    let files = Files::with(&[
        &in_pod("volumes: []\ntimeoutSeconds: x"),
        "# nothing\n",
        &format!("{twice}---\n{MINIMAL}"),
        &twice,
        "a: [",
    ]);
    let mut files = files;
    files.files.insert(1, files.directory.path().join("nowhere.yaml"));
    let messages = files.load().expect_err("many problems").join("\n");
    insta::assert_snapshot!("all_at_once", messages);
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let mut files = Files::with(&[MINIMAL]);
    files.files.push(files.files[0].clone());
    assert_eq!(files.load().map(|loaded| loaded.services.len()), Ok(1));
}

#[test]
fn the_samples_are_flawless() {
    let samples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../config/samples");
    for sample in ["autoscale-go.yaml", "scale-bounds.yaml", "hard-limit.yaml", "rps.yaml"] {
        let loaded = load(&named(&[samples.join(sample)], ForeignKinds::Refused)).expect(sample);
        assert_eq!(loaded.warnings, [], "{sample}");
        let host = format!("{}.default.example.com", sample.trim_end_matches(".yaml"));
        assert_eq!(loaded.hosts().collect::<Vec<_>>(), [host]);
    }
}

#[test]
fn the_samples_of_class_hpa_are_flawless() {
    let samples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../config/samples");
    for (sample, services) in [("cpu.yaml", 1), ("hpa-metrics.yaml", 5)] {
        let loaded = load(&named(&[samples.join(sample)], ForeignKinds::Refused)).expect(sample);
        assert_eq!(loaded.warnings, [], "{sample}");
        let has_document = |placed: &&PlacedService| placed.service.settings.document.is_some();
        assert_eq!(loaded.services.values().filter(has_document).count(), services, "{sample}");
    }
}

#[test]
fn a_manifest_that_was_cut_off_anywhere_is_read_or_refused_with_a_message() {
    let whole = format!(
        "{}---\n{}",
        in_container("env: [{name: A, value: \"1\"}]\nreadinessProbe: {httpGet: {path: /}}"),
        MINIMAL.replace("hello", "other")
    );
    let files = Files::with(&[&whole]);
    for end in 0..whole.len() {
        files.write(0, &whole[..end]);
        if let Err(messages) = files.load() {
            assert!(
                !messages.is_empty() && messages.iter().all(|text| text.starts_with("0.yaml:")),
                "{messages:?}"
            );
        }
    }
}

mod while_running {
    use super::*;

    fn two() -> String {
        format!("{MINIMAL}---\n{}", MINIMAL.replace("hello", "other"))
    }

    fn running(texts: &[&str]) -> (Files, LoadedManifest) {
        let files = Files::with(texts);
        let loaded = files.load().expect("flawless");
        (files, loaded)
    }

    #[test]
    fn a_refused_service_keeps_its_last_good_version_while_others_change() {
        let (files, good) = running(&[&two()]);
        let edited = two()
            .replacen("sample-app\"]", "sample-app\"]\n          lifecycle: {}", 1)
            .replace("name: other", "name: third");
        files.write(0, &edited);
        let (now, messages) = files.read_later(&good);
        assert_eq!(messages.len(), 1, "{messages:?}");
        let names: Vec<&str> = now.services().map(RevisionName::as_str).collect();
        assert_eq!(names, ["default/service/hello", "default/service/third"]);
        assert_eq!(
            now.services[&name("default/service/hello")],
            good.services[&name("default/service/hello")]
        );
    }

    #[test]
    fn nothing_is_removed_because_a_file_cannot_be_read() {
        let (files, good) = running(&[&two()]);
        for text in ["a: [", "metadata: {name: x}\n", "apiVersion: serving.knative.dev/v1\nkind: Service\n"] {
            files.write(0, text);
            let (now, messages) = files.read_over(&good);
            assert_eq!((now.services.len(), messages.is_empty()), (2, false), "{text}");
        }
        std::fs::remove_file(&files.files[0]).expect("removing");
        assert_eq!(files.read_over(&good).0.services.len(), 2);
        assert_eq!(files.read_later(&good).0.services.len(), 0, "two seconds later it counts");
        std::fs::remove_dir(files.directory.path()).expect("removing");
        let (now, messages) = files.read_later(&good);
        assert_eq!((now.services.len(), messages.len()), (2, 1), "a mount that is gone removes nothing");
    }

    #[test]
    fn a_service_that_stands_nowhere_any_more_is_gone() {
        let (files, good) = running(&[&two()]);
        files.write(0, MINIMAL);
        let (now, messages) = files.read_over(&good);
        assert_eq!((now.services.len(), messages), (2, vec![]), "maybe it is being written anew");
        let (now, messages) = files.read_later(&good);
        assert_eq!((now.services.len(), messages), (1, vec![]));
    }

    #[test]
    fn a_file_that_became_empty_is_refused_and_removes_nothing_however_long_that_lasts() {
        let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-autoscaler}\ndata: {stable-window: 10s}\n";
        let (files, good) = running(&[&two(), config]);
        for text in ["", "# a comment\n", "---\n", "---\n---\n# x\n"] {
            files.write(0, text);
            files.write(1, text);
            let (now, messages) = files.read_later(&good);
            assert_eq!((now.services.len(), messages.len()), (2, 2), "{text:?}");
            assert_eq!(now.cluster.stable_window.as_secs(), 10);
            assert!(messages[0].contains("ebb delete"), "{messages:?}");
        }
    }

    #[test]
    fn a_name_given_twice_keeps_what_ran() {
        let (files, good) = running(&[MINIMAL]);
        files.write(0, &format!("{}---\n{MINIMAL}", in_pod("containerConcurrency: 7")));
        let (now, messages) = files.read_over(&good);
        assert_eq!(messages.len(), 1);
        assert_eq!(now.services, good.services);
    }

    #[test]
    fn annotations_are_checked_against_the_config_map_that_applies_also_while_its_file_cannot_be_read() {
        let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-autoscaler}\ndata: {allow-zero-initial-scale: \"true\"}\n";
        let annotation = "metadata:\n  annotations:\n    autoscaling.knative.dev/initial-scale: \"0\"";
        let service = in_template(annotation);
        let (files, good) = running(&[&service, config]);
        files.write(1, "a: [");
        files.write(0, &service.replace("sample-app", "another-app"));
        let (now, messages) = files.read_over(&good);
        assert!(matches!(&messages[..], [about] if about.starts_with("1.yaml:")), "{messages:?}");
        assert_ne!(now.services, good.services, "the edit applies");
    }

    #[test]
    fn the_config_map_keeps_its_last_good_version_and_can_be_removed() {
        let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-autoscaler}\ndata: {stable-window: 10s}\n";
        let (files, good) = running(&[MINIMAL, config]);
        assert_eq!(good.cluster.stable_window.as_secs(), 10);
        for bad in [config.replace("10s", "1s"), "a: [".to_owned()] {
            files.write(1, &bad);
            let (now, messages) = files.read_over(&good);
            assert_eq!((now.cluster.stable_window.as_secs(), messages.len()), (10, 1), "{bad}");
        }
        files.write(1, &MINIMAL.replace("hello", "another"));
        assert_eq!(files.read_over(&good).0.cluster.stable_window.as_secs(), 10);
        assert_eq!(files.read_later(&good).0.cluster.as_ref(), &ClusterConfig::default());
    }
}

#[test]
fn only_a_file_that_can_be_read_again_is_read() {
    let findings = load(&named(&["/dev/zero".into()], ForeignKinds::Refused)).expect_err("not a file");
    assert_eq!(findings.problems[0].message, "cannot be read: it is not a regular file");
}

#[test]
fn an_export_of_kubectl_goes_in_as_it_is() {
    let export = include_str!("tests/export.yaml");
    let (service, warnings) = the_service(export);
    assert_eq!(
        (service.host.as_str(), service.template.container_concurrency),
        ("hello.default.example.com", 0)
    );
    assert_eq!(service.template.app.command, ["ebb", "sample-app"]);
    insta::assert_snapshot!("warnings_of_export", warnings.join("\n"));
    let list = format!(
        "apiVersion: v1\nkind: List\nmetadata: {{resourceVersion: \"\"}}\nitems:\n- {}",
        indented(export, 2).trim_start()
    );
    let mut item = the_service(&list).0;
    item.template.app.directory.clone_from(&service.template.app.directory);
    assert_eq!(item, service, "as an item of a List");
}

#[test]
fn a_directory_means_the_manifests_that_lie_in_it() {
    let files = Files::with(&[MINIMAL, &MINIMAL.replace("hello", "other")]);
    std::fs::write(files.directory.path().join("notes.txt"), "no manifest").expect("writing");
    std::fs::write(files.directory.path().join(".hidden.yaml"), "a: [").expect("writing");
    let directory = named(&[files.directory.path().to_owned()], ForeignKinds::Refused);
    let loaded = load(&directory).expect("flawless");
    assert_eq!(loaded.services.len(), 2);
    std::fs::remove_file(&files.files[1]).expect("removing");
    let mut reading = FilesReading::read(&directory, &loaded);
    assert_eq!(reading.missing(&loaded), [Item::Service(name("default/service/other"))].into());
    reading.removed = reading.missing(&loaded);
    assert_eq!(reading.merged_over(&loaded).services.len(), 1);
    std::fs::remove_file(&files.files[0]).expect("removing");
    let findings = load(&directory).expect_err("nothing is left");
    assert!(findings.problems[0].message.contains("*.yaml"), "{findings:?}");
}

#[test]
fn foreign_kinds_are_skipped_with_a_warning_where_that_is_asked_for() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
    let other_config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n";
    let files = Files::with(&[&format!("{MINIMAL}---\n{deployment}---\n{other_config}")]);
    assert_eq!(files.load().expect_err("refused").len(), 1);
    let loaded = load(&named(&files.files, ForeignKinds::Skipped)).expect("skipped");
    assert_eq!((loaded.services.len(), loaded.warnings.len()), (1, 2));
    let warnings = files.messages(&loaded.warnings);
    assert!(warnings[0].contains("Deployment web of apps/v1 is skipped"), "{warnings:?}");
}

#[test]
fn problems_and_warnings_are_told_together() {
    let files = Files::with(&[&in_pod("serviceAccountName: robot\nvolumes: []")]);
    let findings = load(&files.source()).expect_err("volumes are refused");
    assert_eq!((findings.problems.len(), findings.warnings.len()), (1, 1));
}

#[test]
fn missing_commands_and_directories_are_named() {
    let files = Files::with(&[MINIMAL]);
    let here = files.directory.path();
    std::fs::write(here.join("plain"), "").expect("writing");
    let said = |command: &str, more: &str| {
        files.write(0, &format!("{}{more}", MINIMAL.replace("[\"ebb\", \"sample-app\"]", command)));
        let absences = load(&files.source()).expect("it can be read").absences;
        files.messages(&absences).join("\n")
    };
    assert_eq!(said("[sh, -c, exit]", ""), "");
    assert_eq!(said("[\"$(SHELL)\"]", ""), "");
    assert!(
        said("[no-such-command]", "")
            .starts_with("0.yaml:9:20: the command \"no-such-command\" is not in PATH")
    );
    assert!(said("[./nowhere]", "").contains("does not exist"));
    assert!(said("[./plain]", "").contains("is not executable"));
    assert!(said("[sh]", "          workingDir: nowhere\n").contains("is no directory"));
}

#[test]
fn relative_paths_are_beside_the_manifest() {
    let files = Files::with(&[MINIMAL]);
    let loaded = files.load().expect("flawless");
    let placed = loaded.services.values().next().expect("one Service");
    assert_eq!(placed.service.template.app.directory.as_deref(), Some(files.directory.path()));
}
