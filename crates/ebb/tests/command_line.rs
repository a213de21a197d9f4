//! The command line as a person meets it. (An integration test of this package also makes `cargo test
//! --workspace` build the executable that the suites in `tests/` run.)

use std::process::{Command, Output};

fn ebb(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebb"))
        .args(arguments)
        .env_remove("EBB_API")
        .output()
        .expect("the executable starts")
}

#[test]
fn help_names_every_command() {
    let output = ebb(&["--help"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for command in ["up", "get", "explain", "lint", "delete", "restart", "sample-app"] {
        assert!(text.contains(command), "{command} is missing in\n{text}");
    }
}

#[test]
fn arguments_that_cannot_be_used_end_with_2() {
    for arguments in [&["up"][..], &["fly"], &["up", "-f", "x.yaml", "--listen", "nowhere"], &["restart"]] {
        let output = ebb(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_bad_address_is_answered_with_a_good_one() {
    for (flag, value) in [("--listen", "8080"), ("--api", "localhost:9000")] {
        let output = ebb(&["up", "-f", "x.yaml", flag, value]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(flag) && errors.contains("such as 127.0.0.1:8080"), "{errors}");
    }
}

#[test]
fn an_api_that_does_not_answer_is_named() {
    // No program has this one; a port of the kernel's choice could be another test's as soon as it is given
    // back.
    let api = "http://127.0.0.1:1";
    for arguments in
        [&["get", "--api", api][..], &["explain", "x", "--api", api], &["restart", "activator", "--api", api]]
    {
        let output = ebb(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(api) && errors.contains("--api"), "{errors}");
    }
}

#[test]
fn the_shipped_samples_can_be_used() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
    for name in ["autoscale-go", "scale-bounds", "hard-limit", "rps", "short-windows", "config-autoscaler"] {
        let output = ebb(&["lint", "-f", &format!("{samples}/{name}.yaml")]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

const ASKING_DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec:
  template:
    metadata: {labels: {ebb.dev/inject: "true"}}
    spec:
      containers:
      - name: app
        image: app
        ports: [{containerPort: 8080}]
        resources: {requests: {cpu: "1"}}
"#;

/// What `kubectl get configmap NAME -o yaml` prints, with these lines of data.
fn config_map(name: &str, data: &str) -> String {
    format!(
        "apiVersion: v1\ndata:\n{data}\nkind: ConfigMap\nmetadata:\n  annotations: {{a: b}}\n  name: {name}\n  namespace: ebb-system\n  resourceVersion: \"5\"\n"
    )
}

#[test]
fn inject_gives_pods_the_settings_of_the_cluster() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    };
    let (manifest, ca) = (file("hello.yaml", ASKING_DEPLOYMENT), file("ca.crt", "BEGIN CERTIFICATE"));
    let inject = |config: &[&str]| ebb(&[&["inject", "-f", &manifest, "--ca", &ca], config].concat());
    let without = inject(&[]);
    let printed = String::from_utf8_lossy(&without.stdout);
    assert!(printed.contains("300s") && printed.contains("20m"), "{printed}");

    let data = "  _example: \"drain-limit: 1s\"\n  drain-limit: 20s\n  queue-proxy-cpu-request: 33m";
    let config = file("config.yaml", &config_map("config-autoscaler", data));
    let output = inject(&["--config", &config]);
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(printed.contains("20s") && printed.contains("33m") && !printed.contains("300s"), "{printed}");

    let broken = file("broken.yaml", &config_map("config-autoscaler", "  drain-limit: soon"));
    let output = inject(&["--config", &broken]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{errors}");
    for part in ["broken.yaml:3", "drain-limit", "\"soon\"", "from 0s to 24h"] {
        assert!(errors.contains(part), "{part} is missing in {errors}");
    }

    // As `kubectl get` prints two, or one in a file each.
    let traces =
        "  tracing-protocol: http/protobuf\n  tracing-endpoint: collector\n  tracing-sampling-rate: \"1\"";
    let observability = config_map("config-observability", traces);
    let own_file = file("observability.yaml", &observability);
    let both = [config_map("config-autoscaler", data), observability].map(|map| map.replace('\n', "\n  "));
    let list =
        format!("apiVersion: v1\nkind: List\nitems:\n- {}\n- {}", both[0].trim_end(), both[1].trim_end());
    let list = file("list.yaml", &list);
    for arguments in [&["--config", &config, "--config", &own_file][..], &["--config", &list]] {
        let output = inject(arguments);
        let (with, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{errors}");
        let is_new = |line: &&str| !printed.lines().any(|former| former == *line);
        let more: Vec<&str> = with.lines().filter(is_new).collect();
        let names = ["SERVING_POD_IP", "status.podIP", "OBSERVABILITY_CONFIG", "\"endpoint\":\"collector\""];
        let is_named = |line: &&str| names.iter().any(|name| line.replace('\\', "").contains(name));
        assert!(names.iter().all(|name| with.replace('\\', "").contains(name)), "{with}");
        assert!(more.iter().all(is_named), "{more:#?}");
    }

    let other = file("other.yaml", &config_map("config-logging", "  a: b"));
    let output = inject(&["--config", &other]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{errors}");
    assert!(errors.contains("other.yaml holds no ConfigMap config-autoscaler"), "{errors}");
}

/// The annotations in a document, wherever they stand, as an autoscaler takes them.
fn assert_annotations_are_taken(yaml: &str, place: &[&str]) {
    let document: serde_json::Value = serde_saphyr::from_str(yaml).expect("it is YAML");
    let annotations = place.iter().fold(&document, |node, name| &node[*name]);
    let annotations: std::collections::BTreeMap<String, String> =
        serde_json::from_value(annotations.clone()).expect("texts by their names");
    assert!(!annotations.is_empty(), "{yaml}");
    settings::RevisionSettings::read(&annotations, &settings::ClusterConfig::default(), None)
        .expect("an autoscaler takes them");
}

#[test]
fn autoscale_prints_annotations_that_are_taken() {
    let output = ebb(&["autoscale", "web", "--min", "2", "--max", "10", "--cpu-percent", "50"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_annotations_are_taken(&printed, &["spec", "template", "metadata", "annotations"]);
    assert_annotations_are_taken(&printed, &["metadata", "annotations"]);
    assert!(printed.contains("autoscaling.knative.dev/max-scale: \"10\""), "{printed}");
    let output = ebb(&["autoscale", "web", "--min", "3", "--max", "2"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--max is 2, which is below --min 3"));
}

/// The executable by the name under which `kubectl` finds it.
fn plugin(arguments: &[&str]) -> Output {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.arg0("kubectl-ebb").args(arguments).output().expect("the executable starts")
}

#[test]
fn the_plugin_of_kubectl_prints_one_manifest_with_both_images() {
    let output = plugin(&["install", "--print", "--image", "registry.example/ebb:7"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).expect("it is YAML");
    assert_eq!(objects[0]["kind"], "Namespace");
    for image in ["registry.example/ebb:7", "registry.example/ebb-queue-proxy:7"] {
        assert!(text.contains(image), "{image} is missing in\n{text}");
    }
    let output = plugin(&["up", "-f", "x.yaml"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("knows no cluster; run `ebb up`"), "{errors}");
}

#[test]
fn import_reads_files_and_standard_input_and_prints_what_is_taken() {
    use std::io::Write as _;
    const AUTOSCALER: &str = "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
        scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  maxReplicas: 10\n";
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("web.yaml");
    std::fs::write(&file, AUTOSCALER).expect("it can be written");
    let of_file = ebb(&["import", "-f", &file.display().to_string()]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ebb"))
        .args(["import", "-f", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the executable starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(AUTOSCALER.as_bytes()).expect("it is read");
    drop(input);
    let of_input = child.wait_with_output().expect("it ends");
    assert_eq!((of_file.status.code(), &of_file.stdout), (Some(0), &of_input.stdout));
    assert_annotations_are_taken(&String::from_utf8_lossy(&of_file.stdout), &[]);

    let broken = AUTOSCALER.replace("maxReplicas: 10", "maxReplicas: 0");
    std::fs::write(&file, format!("{broken}---\n{AUTOSCALER}")).expect("it can be written");
    let output = ebb(&["import", "-f", &file.display().to_string()]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), false), "{errors}");
    assert!(errors.contains("web.yaml:") && errors.contains(": spec.maxReplicas is 0"), "{errors}");
}

#[test]
fn units_of_a_package_take_no_option_that_would_be_lost() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let units = folder.path().join("units");
    let units_text = units.display().to_string();
    let place = ["install", "--system", "--for-package", "--unit-directory", &units_text];
    for (more, named) in [
        (&["--log=debug", "--shadow"][..], &["--log has", "--shadow has"][..]),
        (&["--tls-cert", "c.pem", "--tls-key", "k.pem"], &["--tls-cert has", "--tls-key has"]),
        (&["--run-as", "daemon", "--dry-run"], &["--run-as has", "--dry-run has"]),
        (&["-f", "manifests"], &["--filename has"]),
        (&["--uninstall"], &["--uninstall has"]),
    ] {
        let output = ebb(&[&place[..], more].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {errors}");
        assert!(named.iter().all(|option| errors.contains(option)), "{more:?}: {errors}");
        assert!(errors.contains("no effect on what a package brings; remove it"), "{errors}");
        assert!(!units.exists(), "{more:?}");
    }
    let output = ebb(&[&place[..], &["--listen", "0.0.0.0:80"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let socket = std::fs::read_to_string(units.join("ebb.socket")).expect("it was written");
    assert!(socket.contains("ListenStream=0.0.0.0:80\n"), "{socket}");
}

#[test]
fn a_simulation_prints_a_row_for_each_variant_and_says_when_they_differ() {
    let output =
        simulation(&["--load", "autoscale-go=clients=50", "--minutes", "2", "--compare", "target=20"]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{errors}");
    for expected in ["VARIANT", "as written", "target=20", "target=20 differs most from as written"] {
        assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
    }
}

#[test]
fn a_simulation_names_what_it_cannot_use() {
    for (load, compare, expected) in [
        ("autoscale-go=constnt,rate=1rps", "target=20", "did you mean constant?"),
        ("autoscal=constant,rate=1rps", "target=20", "did you mean autoscale-go?"),
        ("autoscale-go=clients=5", "target=10", "changes nothing"),
        ("autoscale-go=clients=5", "target=x", "--compare \"target=x\": "),
        ("autoscale-go=clients=5", "windw=30s", "did you mean window?"),
    ] {
        let output = simulation(&["--load", load, "--minutes", "1", "--compare", compare]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{load}, {compare}: {errors}");
        assert!(errors.contains(expected), "{load}, {compare}: {errors}");
    }
}

#[test]
fn a_simulation_reads_a_load_file_judges_an_objective_and_writes_its_numbers() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("load.csv"), "600\n0\n").expect("writing");
    let (load, json) = (format!("autoscale-go={}", path("load.csv")), path("out.json"));
    let usual = ["--load", load.as_str(), "--bin", "1m", "--minutes", "2", "--json", json.as_str()];
    for (goal, code) in [("max wait < 0s", 1), ("max wait < 1m", 0)] {
        let output = simulation(&[&usual[..], &["--objective", goal]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{goal}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(&format!("objective {goal}: ")), "{text}");
    }
    let (svg, html) = (path("counts.svg"), path("report.html"));
    let drawn = ["--svg", svg.as_str(), "--html", html.as_str()];
    let output = simulation(&[&usual[..], &drawn[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(html).expect("it was written");
    let drawing = std::fs::read_to_string(svg).expect("it was written");
    assert!(drawing.starts_with("<svg ") && drawing.contains("default/service/autoscale-go"), "{drawing}");
    for expected in ["POD-HOURS", "<script type=\"module\">", "\"name\":\"default/service/autoscale-go\""] {
        assert!(page.contains(expected), "{expected} is missing in {page}");
    }
    let written = std::fs::read_to_string(json).expect("it was written");
    assert!(written.contains("\"requests\": 600"), "{written}");
    for (load, bin, expected) in [
        ("autoscale-go=clients=5", "1m", "--bin is about a load that stands in a file"),
        ("autoscale-go=./none.csv", "1m", "--load autoscale-go: ./none.csv: "),
        (load.as_str(), "10s", "the file ends after 20s, and the load is to last 1m"),
    ] {
        let output = simulation(&["--load", load, "--bin", bin, "--minutes", "1"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{load}: {errors}");
        assert!(errors.contains(expected), "{load}: {errors}");
    }
}

#[test]
fn a_simulation_of_too_many_requests_goes_by_whole_seconds_and_says_so() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples/autoscale-go.yaml");
    let times = ["simulate", "-f", sample, "--service-time", "1ms", "--start-up", "1s"];
    let day = ["--load", "autoscale-go=constant,rate=12000rps", "--hours", "24"];
    let output = ebb(&[&times[..], &day[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("about 1.0e9 requests are too many to follow each: "), "{text}");
    let hour = ["--load", "*=constant,rate=10rps", "--hours", "1", "--fast", "--cores", "2"];
    let output = ebb(&[&times[..], &hour[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("VARIANT"), "{text}");
}

#[test]
fn a_scenario_file_says_what_options_say_and_nothing_beside_it_does() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("scenario.yaml").display().to_string();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples/autoscale-go.yaml");
    let text = format!(
        "kind: Simulation\nmanifests: {sample}\nloads: {{autoscale-go: clients=5}}\nserviceTime: 100ms\nstartUp: 1s\nminutes: 1\n"
    );
    std::fs::write(&path, &text).expect("writing");
    let from_file = ebb(&["simulate", &path, "--seed", "3"]);
    let errors = String::from_utf8_lossy(&from_file.stderr);
    assert_eq!(from_file.status.code(), Some(0), "{errors}");
    let from_options = simulation(&["--load", "autoscale-go=clients=5", "--minutes", "1", "--seed", "3"]);
    assert_eq!(from_file.stdout, from_options.stdout);
    let mixed = ebb(&["simulate", &path, "--minutes", "2"]);
    assert_eq!(mixed.status.code(), Some(2));
    std::fs::write(&path, text.replace("startUp", "startup")).expect("writing");
    let refused = ebb(&["simulate", &path]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("scenario.yaml line 5: unknown field \"startup\"; did you mean startUp?"),
        "{errors}"
    );
}

#[test]
fn simulate_repeats_the_world_of_a_seed_and_takes_no_load_for_it() {
    let first = ebb(&["simulate", "--world", "random", "--seed", "3"]);
    let printed = String::from_utf8_lossy(&first.stdout).into_owned();
    assert_eq!(first.status.code(), Some(0), "{printed}");
    assert!(printed.starts_with("seed 3: ") && printed.contains("every check held"), "{printed}");
    let second = ebb(&["simulate", "--world", "random", "--seed", "3"]);
    assert_eq!(String::from_utf8_lossy(&second.stdout), printed);
    let mixed = ebb(&["simulate", "--world", "random", "--service-time", "1s"]);
    let errors = String::from_utf8_lossy(&mixed.stderr);
    assert_eq!(mixed.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--service-time"), "{errors}");
}

/// A simulation of the main sample, with these arguments too.
fn simulation(more: &[&str]) -> Output {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples/autoscale-go.yaml");
    let usual = ["simulate", "-f", sample, "--service-time", "100ms", "--start-up", "1s"];
    ebb(&[&usual[..], more].concat())
}
