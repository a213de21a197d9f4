//! What documents show of manifests is what kustomize makes of them: their examples are read from the
//! documents themselves, and `kubectl` renders them, without a cluster.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const INSTALL: &str = "docs/operate/install.md";
const MANIFESTS: &str = "docs/operate/manifests.md";
const START: &str = "docs/start/cluster.md";
const GITOPS: &str = "docs/tasks/gitops.md";
const SECURITY: &str = "docs/operate/security.md";

/// The manifests of a person who knows nothing of ebb.
const APP: &str = "
apiVersion: v1
kind: Service
metadata: {name: hello, annotations: {team: shop}}
spec:
  selector: {app: hello}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec:
  replicas: 3
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec: {containers: [{name: app, image: hello, ports: [{containerPort: 8080}]}]}
";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// The one that is built for the cluster of tests; on another cluster, whose is in the path.
fn kubectl() -> PathBuf {
    let built = root().join("target/cluster/bin/kubectl");
    if built.exists() { built } else { "kubectl".into() }
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("the document is there")
}

/// The lines of an example that begins with a line `first`, up to its end or an empty line, as they are
/// written to a file.
fn shown(document: &str, first: &str) -> String {
    let mut lines = document.lines().skip_while(|line| line.trim() != first);
    let head = lines.next().unwrap_or_else(|| panic!("no example begins with {first}"));
    let indent = head.len() - head.trim_start().len();
    let rest = lines.take_while(|line| !line.trim().is_empty() && line.trim() != "```");
    let lines: Vec<&str> =
        std::iter::once(head).chain(rest).map(|line| line.get(indent..).unwrap_or(line)).collect();
    lines.join("\n") + "\n"
}

/// A folder with `deploy/` beside others.
fn beside_deploy(folders: &[(&str, &str)]) -> TempDir {
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    symlink(root().join("deploy"), place.path().join("deploy")).expect("a link can be made");
    for (name, kustomization) in folders {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).expect("a folder can be made");
        std::fs::write(folder.join("kustomization.yaml"), kustomization).expect("it can be written");
    }
    place
}

/// The objects that a program prints.
fn objects(output: &Output) -> Vec<Value> {
    let said = String::from_utf8_lossy(&output.stderr);
    // A warning is about what a later version of kustomize refuses.
    assert!(output.status.success() && said.is_empty(), "{said}");
    let text = std::str::from_utf8(&output.stdout).expect("manifests are UTF-8");
    serde_saphyr::from_multiple(text).expect("they are YAML")
}

fn rendered(folder: &Path) -> Vec<Value> {
    objects(&Command::new(kubectl()).arg("kustomize").arg(folder).output().expect("kubectl starts"))
}

fn object<'o>(objects: &'o [Value], kind: &str, name: &str) -> &'o Value {
    let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn containers(objects: &[Value]) -> impl Iterator<Item = &Value> {
    let lists = objects.iter().map(|object| &object["spec"]["template"]["spec"]["containers"]);
    lists.flat_map(|list| list.as_array().into_iter().flatten())
}

fn assert_adopted(objects: &[Value]) {
    let service = object(objects, "Service", "hello");
    assert_eq!(service["spec"], json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080}]}));
    let annotations = json!({"ebb.dev/revision": "deployment/hello", "team": "shop"});
    assert_eq!(service["metadata"]["annotations"], annotations);
    let deployment = object(objects, "Deployment", "hello");
    assert_eq!(deployment["spec"].get("replicas"), None);
    assert_eq!(deployment["spec"]["selector"], json!({"matchLabels": {"app": "hello"}}));
    let labels = json!({"app": "hello", "ebb.dev/inject": "true"});
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(deployment["metadata"]["annotations"], json!({"autoscaling.knative.dev/target": "10"}));
}

#[test]
fn the_patch_for_kustomize_makes_an_adopted_workload_of_any() {
    let place = beside_deploy(&[("hello", &shown(&document(GITOPS), "# hello/kustomization.yaml"))]);
    let folder = place.path().join("hello");
    std::fs::write(folder.join("app.yaml"), APP).expect("it can be written");
    assert_adopted(&rendered(&folder));
}

#[test]
fn the_post_renderer_for_helm_does_the_same_to_what_it_is_given() {
    let place = beside_deploy(&[("hello", &shown(&document(GITOPS), "# hello/kustomization.yaml"))]);
    let script = place.path().join("hello/post-renderer");
    std::fs::write(&script, shown(&document(MANIFESTS), "#!/bin/sh")).expect("it can be written");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let own = kubectl().parent().map(Path::to_path_buf).into_iter();
    let paths = std::env::join_paths(own.chain(std::env::split_paths(&paths))).expect("no colons");
    let mut renderer = Command::new("sh")
        .arg(&script)
        .env("PATH", paths)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell starts");
    let mut input = renderer.stdin.take().expect("it was asked for");
    input.write_all(APP.as_bytes()).expect("it reads");
    drop(input);
    assert_adopted(&objects(&renderer.wait_with_output().expect("it ends")));
}

#[test]
fn overlays_of_the_documents_leave_no_image_unnamed() {
    let install = document(INSTALL);
    let plain = shown(&install, "# ebb/kustomization.yaml");
    let registry = shown(&install, "# registry/kustomization.yaml");
    let start = shown(&document(START), "# ebb/kustomization.yaml");
    let place = beside_deploy(&[("ebb", &plain), ("start", &start), ("registry", &registry)]);
    let named = json!([{"name": "registry"}]);
    for (name, secrets) in [("ebb", Value::Null), ("start", Value::Null), ("registry", named)] {
        let objects = rendered(&place.path().join(name));
        let images: BTreeSet<&str> =
            containers(&objects).filter_map(|container| container["image"].as_str()).collect();
        assert_eq!(images, BTreeSet::from(["REGISTRY/ebb:TAG"]), "{name}");
        let variables = containers(&objects).filter_map(|container| container["env"].as_array()).flatten();
        let of_pods: Vec<&Value> =
            variables.filter(|variable| variable["name"] == "QUEUE_PROXY_IMAGE").collect();
        assert_eq!(of_pods, [&json!({"name": "QUEUE_PROXY_IMAGE", "value": "REGISTRY/ebb-queue-proxy:TAG"})]);
        for program in ["autoscaler", "activator", "injector"] {
            let pod = &object(&objects, "Deployment", program)["spec"]["template"]["spec"];
            assert_eq!(pod["imagePullSecrets"], secrets, "{name}: {program}");
        }
    }
}

/// The objects of `deploy/base` with some of its components.
fn with_components(names: &[&str]) -> Vec<Value> {
    let paths: Vec<String> = names.iter().map(|name| format!("../deploy/components/{name}")).collect();
    let kustomization = json!({"resources": ["../deploy/base"], "components": paths}).to_string();
    let place = beside_deploy(&[("overlay", &kustomization)]);
    rendered(&place.path().join("overlay"))
}

#[test]
fn each_component_can_be_added_alone_and_with_all_others() {
    let entries = std::fs::read_dir(root().join("deploy/components")).expect("there are some");
    let names: BTreeSet<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let documented = document(INSTALL);
    let bare = with_components(&[]);
    let mut added = 0;
    for name in &names {
        assert!(documented.contains(&format!("* `deploy/components/{name}`:")), "{name} is told of nowhere");
        let with = with_components(&[name]);
        assert!(with != bare, "{name} changes nothing");
        added += with.len() - bare.len();
    }
    let all = with_components(&names);
    assert_eq!(all.len(), bare.len() + added, "no component takes another one's objects away");
    // Of a count that an autoscaler writes the manifest says nothing, or each apply would write it.
    assert_eq!(object(&all, "HorizontalPodAutoscaler", "activator")["spec"]["minReplicas"], 2);
    assert_eq!(object(&all, "Deployment", "activator")["spec"].get("replicas"), None);
    let board = object(&all, "ConfigMap", "ebb-grafana-board");
    assert_eq!(board["metadata"]["labels"]["grafana_dashboard"], "1");
    let file = document("deploy/components/grafana-board/ebb.json");
    assert_eq!(board["data"], json!({"ebb.json": file}));
    for object in &all {
        let (kind, namespace) = (&object["kind"], &object["metadata"]["namespace"]);
        let is_of_cluster = ["Namespace", "PriorityClass", "ClusterRole", "ClusterRoleBinding"]
            .iter()
            .any(|known| kind == known)
            || kind.as_str().is_some_and(|kind| {
                kind.ends_with("WebhookConfiguration") || kind.starts_with("ValidatingAdmissionPolicy")
            });
        let expected = if is_of_cluster { Value::Null } else { json!("ebb-system") };
        assert_eq!(namespace, &expected, "{kind} {}", object["metadata"]["name"]);
    }
}

#[test]
fn the_plugin_of_kubectl_installs_what_kustomize_makes_of_the_base() {
    let mut plugin = Command::new(tests::ebb::executable());
    let printed = plugin.arg0("kubectl-ebb").args(["install", "--print"]).output().expect("it runs");
    let sorted = |mut objects: Vec<Value>| {
        objects.sort_by_key(|object| format!("{} {}", object["kind"], object["metadata"]["name"]));
        objects
    };
    assert_eq!(sorted(objects(&printed)), sorted(with_components(&[])));
}

/// The three programs as `deploy/base` has them, with some components.
fn programs(components: &[&str]) -> [Value; 3] {
    let objects = with_components(components);
    ["autoscaler", "activator", "injector"].map(|name| object(&objects, "Deployment", name).clone())
}

#[test]
fn the_component_of_records_mounts_the_folder_that_its_config_map_names() {
    let objects = with_components(&["record"]);
    let pod = &object(&objects, "Deployment", "autoscaler")["spec"]["template"]["spec"];
    let mount = &pod["containers"][0]["volumeMounts"][0];
    let config = object(&objects, "ConfigMap", "config-autoscaler");
    assert_eq!(config["data"]["record-directory"], mount["mountPath"]);
    assert_eq!(pod["volumes"][0]["name"], mount["name"]);
    // Kubelet evicts a pod whose volume is fuller than this: a record has 256Mi without `record-size`.
    assert!(mebibytes(&pod["volumes"][0]["emptyDir"]["sizeLimit"]) >= 512, "{pod}");
    assert_eq!(
        object(&with_components(&[]), "ConfigMap", "config-autoscaler")["data"].get("record-directory"),
        None
    );
}

/// Memory that a text of Kubernetes' form says, in MiB.
fn mebibytes(text: &Value) -> u32 {
    let text = text.as_str().expect("a quantity");
    let number = text.strip_suffix("Mi").unwrap_or_else(|| panic!("{text} is not in Mi"));
    number.parse().expect("a number")
}

#[test]
fn pods_of_each_program_are_spread_over_nodes_within_their_own_template() {
    for program in programs(&[]) {
        let pod = &program["spec"]["template"];
        let [spread] =
            pod["spec"]["topologySpreadConstraints"].as_array().expect("they are spread").as_slice()
        else {
            panic!("{pod}")
        };
        assert_eq!(spread["topologyKey"], "kubernetes.io/hostname");
        assert_eq!(spread["labelSelector"]["matchLabels"], pod["metadata"]["labels"]);
        assert_eq!(spread["matchLabelKeys"], json!(["pod-template-hash"]));
    }
}

#[test]
fn each_program_has_its_priority_and_memory_and_no_cpu_limit() {
    let class = with_components(&[]);
    let class = object(&class, "PriorityClass", "ebb-control-plane");
    assert_eq!((&class["value"], &class["globalDefault"]), (&json!(1_000_000_000), &json!(false)));
    for program in programs(&[]) {
        let pod = &program["spec"]["template"]["spec"];
        assert_eq!(pod["priorityClassName"], "ebb-control-plane");
        let resources = &pod["containers"][0]["resources"];
        assert!(mebibytes(&resources["requests"]["memory"]) >= 128, "{resources}");
        assert_eq!(resources["limits"].get("cpu"), None, "{resources}");
    }
}

#[test]
fn the_component_guaranteed_gives_each_container_limits_that_are_its_requests() {
    for program in programs(&["guaranteed"]) {
        let resources = &program["spec"]["template"]["spec"]["containers"][0]["resources"];
        assert_eq!(resources["requests"], resources["limits"]);
        assert_eq!(resources["limits"].as_object().expect("there are some").len(), 2, "{resources}");
    }
}

#[test]
fn every_right_stands_in_the_table_of_rights() {
    let document = document(SECURITY);
    let table: Vec<&str> = document.lines().filter(|line| line.starts_with("| ")).collect();
    let texts = |list: &Value| -> Vec<String> {
        let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let mut seen = 0;
    let objects = with_components(&["pod-deletion-cost"]);
    for rule in objects.iter().filter_map(|object| object["rules"].as_array()).flatten() {
        let verbs = format!("| {} |", texts(&rule["verbs"]).join(", "));
        let mut words = texts(&rule["resources"]);
        if words == ["*"] {
            words = texts(&rule["apiGroups"]);
        }
        for word in words {
            let mut needed = texts(&rule["resourceNames"]);
            needed.push(word);
            let is_told = table.iter().any(|row| {
                row.contains(&verbs) && needed.iter().all(|word| row.contains(&format!("`{word}`")))
            });
            assert!(is_told, "no row has {needed:?} with {verbs}");
            seen += 1;
        }
    }
    assert!(seen > 25, "{seen} are hardly all");
}
