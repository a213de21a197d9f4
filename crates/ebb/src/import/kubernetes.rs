//! `ebb import --to kubernetes`: a Knative Service as the objects of a cluster without Knative.
//!
//! A Deployment, whose pods ask for a queue-proxy; a Service without a selector, which ebb serves; and, where
//! a Gateway is named, an `HTTPRoute`. What Knative fills in (`$PORT`, the port of a probe) is written out.

use settings::hpa::reading::DocumentNode;
use settings::hpa::yaml_of;
use vocabulary::{INJECT_LABEL, REVISION_ANNOTATION};

use super::knative;
use super::result::ImportResult;
use super::tree::{at, fields, map, number_at, text, text_at};
use crate::cli::GatewayName;

/// The port of an app that declares none, as in Knative.
const PORT_DEFAULT: i64 = 8080;
/// The port of the Service, at which clients call it.
const SERVICE_PORT: i64 = 80;
/// The whole time of a request where a Knative Service says nothing, in seconds; here there is no default.
const TIMEOUT_DEFAULT: i64 = 300;
/// The domain of hosts in Knative's default configuration.
const DOMAIN: &str = "example.com";
/// Fields of a Knative pod that are annotations of a pod template here, each with its unit.
const LIMITS: [(&str, &str, &str); 4] = [
    ("containerConcurrency", "ebb.dev/container-concurrency", ""),
    ("timeoutSeconds", "ebb.dev/timeout", "s"),
    ("responseStartTimeoutSeconds", "ebb.dev/response-start-timeout", "s"),
    ("idleTimeoutSeconds", "ebb.dev/idle-timeout", "s"),
];
/// Prefixes of annotations that are of the revision, and not of its pods.
const OF_REVISION: [&str; 3] = ["autoscaling.knative.dev/", "ebb.dev/", "serving.knative.dev/"];

type NodeEntries = Vec<(String, DocumentNode)>;

/// The objects as YAML documents, with notes before them.
pub(super) fn objects(document: &DocumentNode, gateway: Option<&GatewayName>) -> Result<String, Vec<String>> {
    let kind = text_at(document, &["kind"]).unwrap_or("nothing");
    if kind != "Service" || text_at(document, &["apiVersion"]) != Some("serving.knative.dev/v1") {
        return Err(vec![format!(
            "kind is {kind}; --to kubernetes takes a Service of serving.knative.dev/v1, for other kinds leave --to out"
        )]);
    }
    let name = text_at(document, &["metadata", "name"]);
    let name = name.ok_or_else(|| vec!["metadata.name is missing".to_owned()])?;
    let mut imported = knative::service(document);
    imported.check();
    let port = port_of(document);
    let mut all = vec![deployment(document, name, &imported, port), service(document, name, port)];
    all.extend(gateway.map(|gateway| route(document, name, gateway)));
    let mut printed: Vec<String> = notes(&imported, gateway.is_some());
    printed.extend(all.iter().map(|object| format!("---\n{}", yaml_of(object).trim_end())));
    Ok(printed.join("\n") + "\n")
}

/// What a person has to know of the objects, as comments.
fn notes(imported: &ImportResult, has_route: bool) -> Vec<String> {
    let is_done =
        |note: &&String| note.contains("becomes, on a cluster") || note.contains("can be used as it is");
    let notes = imported.notes.iter().filter(|note| !is_done(note)).cloned();
    let of_route = has_route.then(|| {
        format!("spec.hostnames of the HTTPRoute is Knative's default; write the host that clients call in its place ({DOMAIN})")
    });
    notes.chain(of_route).map(|note| format!("# note: {note}")).collect()
}

fn deployment(document: &DocumentNode, name: &str, imported: &ImportResult, port: i64) -> DocumentNode {
    let annotations: NodeEntries =
        imported.annotations.iter().map(|(key, value)| (key.clone(), text(value))).collect();
    let mut metadata = metadata(document, name);
    if !annotations.is_empty() {
        metadata.push(("annotations".to_owned(), DocumentNode::Map(annotations)));
    }
    let selected = map(&[("app", text(name))]);
    object(
        "apps/v1",
        "Deployment",
        metadata,
        &[("selector", map(&[("matchLabels", selected)])), ("template", template(document, name, port))],
    )
}

fn template(document: &DocumentNode, name: &str, port: i64) -> DocumentNode {
    let written = at(document, &["spec", "template", "metadata"]);
    let mut labels: NodeEntries =
        vec![("app".to_owned(), text(name)), (INJECT_LABEL.to_owned(), text("true"))];
    let own = written.and_then(|metadata| at(metadata, &["labels"]));
    labels.extend(fields(own).iter().filter(|(key, _)| key != "app" && key != INJECT_LABEL).cloned());
    let annotations = written.and_then(|metadata| at(metadata, &["annotations"]));
    let is_of_pods = |key: &str| !OF_REVISION.iter().any(|prefix| key.starts_with(prefix));
    let mut annotations: NodeEntries =
        fields(annotations).iter().filter(|(key, _)| is_of_pods(key)).cloned().collect();
    annotations.extend(limits(document));
    let mut metadata = vec![("labels", DocumentNode::Map(labels))];
    if !annotations.is_empty() {
        metadata.push(("annotations", DocumentNode::Map(annotations)));
    }
    map(&[("metadata", map(&metadata)), ("spec", pod(document, port))])
}

/// The limits of a pod's queue-proxy. Zero means none, which is the default of the number of requests.
fn limits(document: &DocumentNode) -> impl Iterator<Item = (String, DocumentNode)> + '_ {
    LIMITS.iter().filter_map(|(field, annotation, unit)| {
        let written = number_at(document, &["spec", "template", "spec", field]);
        let number = written.or((*field == "timeoutSeconds").then_some(TIMEOUT_DEFAULT))?;
        Some(((*annotation).to_owned(), text(&format!("{number}{unit}"))))
    })
}

fn pod(document: &DocumentNode, port: i64) -> DocumentNode {
    let spec = at(document, &["spec", "template", "spec"]);
    let is_limit = |key: &str| LIMITS.iter().any(|(field, ..)| *field == key);
    let kept = fields(spec).iter().filter(|(key, _)| !is_limit(key));
    let kept = kept.map(|(key, value)| match (key.as_str(), value) {
        ("containers", DocumentNode::List(containers)) => {
            let app = app_of(containers);
            let place =
                |(index, one): (usize, &DocumentNode)| container(one, (index == app).then_some(port), index);
            (key.clone(), DocumentNode::List(containers.iter().enumerate().map(place).collect()))
        }
        _ => (key.clone(), value.clone()),
    });
    DocumentNode::Map(kept.collect())
}

/// The container that takes requests: the one with ports, else the first.
fn app_of(containers: &[DocumentNode]) -> usize {
    containers.iter().position(|container| at(container, &["ports"]).is_some()).unwrap_or(0)
}

/// A container with what Knative fills in. `port` is that of the app.
fn container(written: &DocumentNode, port: Option<i64>, index: usize) -> DocumentNode {
    let mut entries: NodeEntries = fields(Some(written)).to_vec();
    if at(written, &["name"]).is_none() {
        let name = if port.is_some() { "app".to_owned() } else { format!("container-{index}") };
        entries.insert(0, ("name".to_owned(), text(&name)));
    }
    let Some(port) = port else { return DocumentNode::Map(entries) };
    for (key, value) in &mut entries {
        if key.ends_with("Probe") {
            *value = with_port(value, port);
        }
    }
    if at(written, &["ports"]).is_none() {
        let ports = vec![map(&[("containerPort", DocumentNode::Integer(port))])];
        entries.push(("ports".to_owned(), DocumentNode::List(ports)));
    }
    let variable = map(&[("name", text("PORT")), ("value", text(&port.to_string()))]);
    match entries.iter_mut().find(|(key, _)| key == "env") {
        Some((_, DocumentNode::List(env))) => {
            if !env.iter().any(|one| text_at(one, &["name"]) == Some("PORT")) {
                env.push(variable);
            }
        }
        Some(_) => {}
        None => entries.push(("env".to_owned(), DocumentNode::List(vec![variable]))),
    }
    DocumentNode::Map(entries)
}

/// A probe whose question names its port.
fn with_port(probe: &DocumentNode, port: i64) -> DocumentNode {
    let asked = fields(Some(probe)).iter().map(|(key, value)| {
        let asks = ["httpGet", "tcpSocket", "grpc"].contains(&key.as_str());
        // Knative reads a port of 0 as none, too.
        let has_port =
            text_at(value, &["port"]).is_some() || number_at(value, &["port"]).is_some_and(|one| one > 0);
        if !asks || has_port {
            return (key.clone(), value.clone());
        }
        let mut question: NodeEntries =
            fields(Some(value)).iter().filter(|(key, _)| key != "port").cloned().collect();
        question.push(("port".to_owned(), DocumentNode::Integer(port)));
        (key.clone(), DocumentNode::Map(question))
    });
    DocumentNode::Map(asked.collect())
}

/// The port that the app's container declares.
fn port_of(document: &DocumentNode) -> i64 {
    let Some(DocumentNode::List(containers)) = at(document, &["spec", "template", "spec", "containers"])
    else {
        return PORT_DEFAULT;
    };
    let declared = containers.get(app_of(containers)).and_then(|app| match at(app, &["ports"]) {
        Some(DocumentNode::List(ports)) => number_at(ports.first()?, &["containerPort"]),
        Some(_) | None => None,
    });
    declared.unwrap_or(PORT_DEFAULT)
}

fn service(document: &DocumentNode, name: &str, port: i64) -> DocumentNode {
    let mut metadata = metadata(document, name);
    let revision = text(&format!("deployment/{name}"));
    metadata.push(("annotations".to_owned(), map(&[(REVISION_ANNOTATION, revision)])));
    let port = map(&[
        ("name", text("http")),
        ("port", DocumentNode::Integer(SERVICE_PORT)),
        ("targetPort", DocumentNode::Integer(port)),
    ]);
    object("v1", "Service", metadata, &[("ports", DocumentNode::List(vec![port]))])
}

fn route(document: &DocumentNode, name: &str, gateway: &GatewayName) -> DocumentNode {
    let namespace = text_at(document, &["metadata", "namespace"]).unwrap_or("default");
    let parent = map(&[("namespace", text(&gateway.namespace)), ("name", text(&gateway.name))]);
    let host = text(&format!("{name}.{namespace}.{DOMAIN}"));
    let backend = map(&[("name", text(name)), ("port", DocumentNode::Integer(SERVICE_PORT))]);
    let rule = map(&[("backendRefs", DocumentNode::List(vec![backend]))]);
    object(
        "gateway.networking.k8s.io/v1",
        "HTTPRoute",
        metadata(document, name),
        &[
            ("parentRefs", DocumentNode::List(vec![parent])),
            ("hostnames", DocumentNode::List(vec![host])),
            ("rules", DocumentNode::List(vec![rule])),
        ],
    )
}

/// The name of an object, and the namespace of the document if it names one.
fn metadata(document: &DocumentNode, name: &str) -> NodeEntries {
    let namespace = text_at(document, &["metadata", "namespace"]);
    let namespace = namespace.map(|namespace| ("namespace".to_owned(), text(namespace)));
    [("name".to_owned(), text(name))].into_iter().chain(namespace).collect()
}

fn object(version: &str, kind: &str, metadata: NodeEntries, spec: &[(&str, DocumentNode)]) -> DocumentNode {
    map(&[
        ("apiVersion", text(version)),
        ("kind", text(kind)),
        ("metadata", DocumentNode::Map(metadata)),
        ("spec", map(spec)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: hello, namespace: shop}
spec:
  template:
    metadata:
      annotations: {autoscaling.knative.dev/target: '7', team: web}
    spec:
      containerConcurrency: 10
      timeoutSeconds: 60
      containers:
        - image: registry.example.com/hello:1
          env: [{name: GREETING, value: hi}]
          readinessProbe: {httpGet: {path: /}}
";

    fn printed(manifest: &str, gateway: Option<&GatewayName>) -> Result<String, Vec<String>> {
        objects(&serde_saphyr::from_str(manifest).expect("YAML"), gateway)
    }

    #[test]
    fn a_knative_service_becomes_whole_objects() {
        let gateway = GatewayName { namespace: "infra".to_owned(), name: "public".to_owned() };
        let text = printed(MANIFEST, Some(&gateway)).expect("sound");
        let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).expect("YAML");
        let [deployment, service, route] = &objects[..] else { panic!("three objects:\n{text}") };
        assert_eq!(
            (&deployment["kind"], &deployment["metadata"]["namespace"]),
            (&"Deployment".into(), &"shop".into())
        );
        assert_eq!(deployment["metadata"]["annotations"]["autoscaling.knative.dev/target"], "7");
        let template = &deployment["spec"]["template"];
        assert_eq!(template["metadata"]["labels"], deployment_labels());
        assert_eq!(template["metadata"]["annotations"]["ebb.dev/timeout"], "60s");
        assert_eq!(template["metadata"]["annotations"]["ebb.dev/container-concurrency"], "10");
        assert_eq!(template["metadata"]["annotations"]["team"], "web");
        let app = &template["spec"]["containers"][0];
        assert_eq!((&app["name"], &app["ports"][0]["containerPort"]), (&"app".into(), &8080.into()));
        assert_eq!((&app["env"][1]["name"], &app["env"][1]["value"]), (&"PORT".into(), &"8080".into()));
        assert_eq!(app["readinessProbe"]["httpGet"]["port"], 8080);
        assert!(template["spec"].get("timeoutSeconds").is_none(), "{text}");
        assert_eq!(service["metadata"]["annotations"][REVISION_ANNOTATION], "deployment/hello");
        assert!(
            service["spec"].get("selector").is_none() && service["spec"]["ports"][0]["targetPort"] == 8080
        );
        assert_eq!(route["spec"]["parentRefs"][0]["name"], "public");
        assert_eq!(route["spec"]["hostnames"][0], "hello.shop.example.com");
    }

    fn deployment_labels() -> serde_json::Value {
        serde_json::json!({"app": "hello", "ebb.dev/inject": "true"})
    }

    #[test]
    fn other_kinds_are_refused() {
        let problems = printed("kind: ScaledObject\n", None).expect_err("no Knative Service");
        assert!(problems[0].starts_with("kind is ScaledObject; --to kubernetes takes"), "{problems:?}");
    }
}
