//! How the app and the queue-proxy are started, and what an engine is told that runs the app's image.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde::Serialize;
use vocabulary::{ProbeQuestion, ProbeSpec, format_duration};

use crate::executable::this_executable;
use crate::images::{ContainerImage, ContainerRun, ImageNetwork, ProcessLimits};
use crate::pod::engine_container::no_engine;
use crate::pod::ports::ReservedPort;
use crate::pod::{Container, DownwardFact, EnvValue, PodSpec, Probes};

/// Where every pod's app is reached.
const POD_ADDRESS: &str = "127.0.0.1";

/// A container of a pod, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedContainer<'a> {
    container: &'a Container,
    /// The port that this container is to listen on (`$PORT`).
    port: u16,
    /// The ports of all containers of the pod, in their order.
    ports: &'a [ReservedPort],
}

impl<'a> PlacedContainer<'a> {
    /// The container at this place in the order of all; the app is the first.
    pub(crate) fn of(spec: &'a PodSpec, ports: &'a [ReservedPort], index: usize) -> Self {
        let container = spec.template.containers().nth(index).expect("one of the containers");
        Self { container, port: ports[index].number, ports }
    }
}

/// Starts a container. Its outputs are ours, which the supervisor reads, unless it has some of its own.
pub(crate) fn start(
    spec: &PodSpec,
    placed: PlacedContainer<'_>,
    outputs: Option<(OwnedFd, OwnedFd)>,
) -> io::Result<Child> {
    let variables = variables_of(spec, placed);
    let words: Vec<String> = placed.container.command.iter().map(|word| expand(word, &variables)).collect();
    if let Some(image) = &placed.container.image {
        return start_image(spec, placed, image, &variables, &words);
    }
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = command_of(program);
    command.args(arguments).envs(variables).stdin(Stdio::null());
    if let Some((stdout, stderr)) = outputs {
        command.stdout(stdout).stderr(stderr);
    }
    enter_directory(&mut command, placed.container);
    command.spawn().map_err(|error| {
        let is_relative = program.contains('/') && !program.starts_with('/');
        let directory = placed.container.directory.as_ref().filter(|_| is_relative);
        let place = directory.map(|path| format!(" in {}", path.display()));
        io::Error::other(format!("{program:?}{}: {error}", place.unwrap_or_default()))
    })
}

/// Variables of a service manager, which an engine would take for its own.
const OF_SERVICE_MANAGER: [&str; 4] = ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// Has an engine run the image of a container in the foreground: it prints what the container prints.
fn start_image(
    spec: &PodSpec,
    placed: PlacedContainer<'_>,
    image: &ContainerImage,
    variables: &ContainerVariables,
    words: &[String],
) -> io::Result<Child> {
    let runtime = spec.images.as_ref().ok_or_else(no_engine)?;
    let (name, pod) = (runtime.container_of(&spec.pod), spec.full_name());
    let run = ContainerRun {
        runtime,
        name: &name,
        pod: &pod,
        image,
        port: placed.port,
        limits: placed.container.limits,
        process_limits: ProcessLimits::own(),
        variables,
        words,
    };
    let mut command = Command::new(runtime.engine.program());
    for variable in OF_SERVICE_MANAGER {
        command.env_remove(variable);
    }
    command.args(run.arguments()).envs(run.environment()).stdin(Stdio::null());
    command.spawn().map_err(|error| io::Error::other(format!("{}: {error}", runtime.engine)))
}

/// Starts the queue-proxy, which announces its ports on its standard output, logs on its standard error and
/// reads on its standard input what the app uses.
pub(crate) fn start_queue_proxy(spec: &PodSpec, app: PlacedContainer<'_>) -> io::Result<Child> {
    let mut command = command_of("ebb");
    command
        .arg("queue-proxy")
        .arg(spec.full_name())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Our settings for another program (a test's, a shell's) are not this one's; what it does not know it
    // refuses.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_foreign_setting(name)) {
        command.env_remove(name);
    }
    command.envs(queue_proxy_variables(spec, app));
    // Exec probes run where the app runs.
    enter_directory(&mut command, app.container);
    command.spawn()
}

/// `ebb` is the one word that needs no installation: it means the executable that runs already.
fn command_of(program: &str) -> Command {
    if program != "ebb" {
        return Command::new(program);
    }
    let mut command = Command::new(this_executable());
    command.arg0(program);
    command
}

/// Settings of `ebb` in its environment that hold for the queue-proxies, too.
const PASSED_ON: [&str; 2] = ["EBB_LOG", "EBB_SHADOWING_HEADERS"];

fn is_foreign_setting(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"EBB_") && !PASSED_ON.iter().any(|passed_on| name == *passed_on)
}

fn enter_directory(command: &mut Command, container: &Container) {
    if let Some(directory) = &container.directory {
        command.current_dir(directory);
    }
}

type ContainerVariables = BTreeMap<String, String>;

/// The variables of a container. A process has them besides those that `ebb` itself was started with. Of
/// several containers each finds the ports of the others, too.
fn variables_of(spec: &PodSpec, placed: PlacedContainer<'_>) -> ContainerVariables {
    let ours = [
        ("PORT", own_port(spec, placed).to_string()),
        ("K_SERVICE", spec.service.clone()),
        ("K_CONFIGURATION", spec.service.clone()),
        ("K_REVISION", spec.revision.clone()),
    ];
    let mut variables: ContainerVariables =
        ours.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    for (container, port) in spec.template.containers().zip(placed.ports) {
        if let Some(name) = &container.name {
            variables.insert(port_variable(name), port.number.to_string());
        }
    }
    for (name, value) in &placed.container.env {
        let value = match value {
            EnvValue::Written(text) => expand(text, &variables),
            EnvValue::Literal { literal } => literal.clone(),
            EnvValue::Fact { fact } => fact_about(spec, *fact),
        };
        variables.insert(name.clone(), value);
    }
    variables
}

/// The port on which a container listens. In a network of its own that is the port of its manifest, as on
/// Knative, and the engine publishes it on the pod's.
fn own_port(spec: &PodSpec, placed: PlacedContainer<'_>) -> u16 {
    match (&placed.container.image, network_of(spec)) {
        (Some(image), Some(ImageNetwork::Auto | ImageNetwork::Bridge)) => image.port,
        (Some(_) | None, _) => placed.port,
    }
}

/// The network of the app if it is an image.
fn network_of(spec: &PodSpec) -> Option<ImageNetwork> {
    spec.images.as_ref().filter(|_| spec.template.has_image()).map(|images| images.network)
}

/// Under which the others find a container: `PORT_LOG_SHIPPER` for `log-shipper`.
fn port_variable(container: &str) -> String {
    format!("PORT_{}", container.to_uppercase().replace('-', "_"))
}

fn fact_about(spec: &PodSpec, fact: DownwardFact) -> String {
    match fact {
        DownwardFact::Name => spec.pod.clone(),
        DownwardFact::Namespace => spec.namespace.clone(),
        DownwardFact::Address => POD_ADDRESS.to_owned(),
    }
}

/// Kubernetes' `$(NAME)` in commands, arguments and values: a known name is replaced, an unknown one stays,
/// `$$` is a dollar sign.
fn expand(text: &str, variables: &ContainerVariables) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let name = after.strip_prefix('(').and_then(|name| name.split_once(')'));
        if let Some(escaped) = after.strip_prefix('$') {
            expanded.push('$');
            rest = escaped;
        } else if let Some((name, after)) = name {
            match variables.get(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded + rest
}

/// Knative's variables, and ours for what Knative gives to its kubelet.
fn queue_proxy_variables(spec: &PodSpec, app: PlacedContainer<'_>) -> Vec<(&'static str, String)> {
    let template = &spec.template;
    let seconds = |timeout: Option<std::time::Duration>| timeout.unwrap_or_default().as_secs().to_string();
    let probe = |probe: &Option<ProbeSpec>| match probe {
        Some(probe) => json_of(&completed(probe, spec, app)),
        None => String::new(),
    };
    let Probes { readiness, liveness, startup } = &template.probes;
    let observability = template.observability.as_ref().map_or_else(String::new, json_of);
    vec![
        ("CONTAINER_CONCURRENCY", template.container_concurrency.to_string()),
        ("QUEUE_SERVING_PORT", "0".to_owned()),
        ("QUEUE_SERVING_TLS_PORT", String::new()),
        ("USER_PORT", app.port.to_string()),
        ("EBB_APP_PROTOCOL", template.protocol.as_str().to_owned()),
        ("EBB_APP_NETWORK", app_network(spec).to_owned()),
        ("REVISION_TIMEOUT_SECONDS", seconds(template.timeouts.request)),
        ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", seconds(template.timeouts.response_start)),
        ("REVISION_IDLE_TIMEOUT_SECONDS", seconds(template.timeouts.idle)),
        ("SERVING_NAMESPACE", spec.namespace.clone()),
        ("SERVING_SERVICE", spec.service.clone()),
        ("SERVING_CONFIGURATION", spec.service.clone()),
        ("SERVING_REVISION", spec.revision.clone()),
        ("SERVING_POD", spec.pod.clone()),
        ("SERVING_POD_IP", POD_ADDRESS.to_owned()),
        ("SERVING_LOGGING_CONFIG", String::new()),
        ("SERVING_LOGGING_LEVEL", String::new()),
        ("OBSERVABILITY_CONFIG", observability),
        ("SERVING_READINESS_PROBE", probe(readiness)),
        ("EBB_LIVENESS_PROBE", probe(liveness)),
        ("EBB_STARTUP_PROBE", probe(startup)),
        ("EBB_DRAIN_LIMIT", format_duration(spec.drain_limit)),
        ("EBB_IGNORE_USER_AGENTS", spec.ignored_user_agents.to_string()),
        ("EBB_APP_GRACE", format_duration(template.app_grace())),
        ("EBB_ANNOUNCE", "stdout".to_owned()),
        ("EBB_USAGE", "stdin".to_owned()),
        ("EBB_ADMIN_PORT", "0".to_owned()),
        ("EBB_LINK_PORT", "0".to_owned()),
        ("EBB_STAT_PORT", "0".to_owned()),
        ("EBB_METRICS_PORT", "0".to_owned()),
    ]
}

/// How the queue-proxy reaches an app that is an image. One that may still come into the network of the host
/// is asked as if an engine stood before it.
fn app_network(spec: &PodSpec) -> &'static str {
    match network_of(spec) {
        None => "",
        Some(ImageNetwork::Host) => ImageNetwork::Host.as_str(),
        Some(ImageNetwork::Auto | ImageNetwork::Bridge) => ImageNetwork::Bridge.as_str(),
    }
}

/// Fills in what is known only now: the app's port where no other was given, and the app's environment for
/// commands. A command of an image runs in its container, where the environment is the app's.
fn completed(probe: &ProbeSpec, spec: &PodSpec, app: PlacedContainer<'_>) -> ProbeSpec {
    let mut probe = probe.clone().of_app(app.port);
    if let ProbeQuestion::Exec { command } = &mut probe.question {
        let variables = variables_of(spec, app);
        if let Some(runtime) = spec.images.as_ref().filter(|_| app.container.image.is_some()) {
            let words = command.iter().map(|word| expand(word, &variables));
            let container = runtime.container_of(&spec.pod);
            let engine = [runtime.engine.program().to_owned(), "exec".to_owned(), container];
            *command = engine.into_iter().chain(words).collect();
            return probe;
        }
        let words = command.iter().enumerate().map(|(index, word)| {
            let word = expand(word, &variables);
            if index == 0 && word == "ebb" { this_executable().display().to_string() } else { word }
        });
        // A container's probe sees the container's environment; the queue-proxy's own is another.
        let assignments = variables.iter().map(|(name, value)| format!("{name}={value}"));
        *command = ["env".to_owned()].into_iter().chain(assignments).chain(words).collect();
    }
    probe
}

fn json_of(settings: &impl Serialize) -> String {
    serde_json::to_string(settings).expect("settings are plain data")
}

#[cfg(test)]
mod tests {
    use vocabulary::{HttpQuestion, ProbeTiming};

    use super::*;

    fn port(number: u16) -> [ReservedPort; 1] {
        [ReservedPort::unreserved(number)]
    }

    fn spec(probe: Option<ProbeSpec>) -> PodSpec {
        let mut spec = PodSpec {
            pod: "hello-00001-0001".to_owned(),
            namespace: "default".to_owned(),
            service: "hello".to_owned(),
            revision: "hello-00001".to_owned(),
            template: crate::pod::Template::default(),
            drain_limit: std::time::Duration::from_secs(90),
            ignored_user_agents: "HAProxy,Prometheus/".parse().expect("both are visible"),
            descriptors: None,
            control_group: None,
            images: None,
        };
        let greeting = EnvValue::Written("port $(PORT)".to_owned());
        spec.template.app.env = vec![("GREETING".to_owned(), greeting)];
        spec.template.probes.readiness = probe;
        spec
    }

    #[test]
    fn the_queue_proxy_is_told_how_long_an_end_may_take_and_what_not_to_measure() {
        let mut spec = spec(None);
        spec.template.termination_grace = Some(std::time::Duration::from_secs(25));
        let variables = queue_proxy_variables(&spec, PlacedContainer::of(&spec, &port(20_001), 0));
        let of = |wanted: &str| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str())
        };
        assert_eq!((of("EBB_DRAIN_LIMIT"), of("EBB_APP_GRACE")), (Some("1m30s"), Some("25s")));
        assert_eq!(of("EBB_IGNORE_USER_AGENTS"), Some("HAProxy,Prometheus/"));
    }

    #[test]
    fn only_what_is_written_in_the_manifest_speaks_of_other_variables() {
        let mut spec = spec(None);
        let literal = EnvValue::Literal { literal: "$(PORT) $$".to_owned() };
        let fact = |fact| EnvValue::Fact { fact };
        for (name, value) in [
            ("PASSWORD", literal),
            ("URL", EnvValue::Written("http://x:$(PASSWORD)@y".to_owned())),
            ("POD", fact(DownwardFact::Name)),
            ("NAMESPACE", fact(DownwardFact::Namespace)),
            ("ADDRESS", fact(DownwardFact::Address)),
        ] {
            spec.template.app.env.push((name.to_owned(), value));
        }
        let variables = variables_of(&spec, PlacedContainer::of(&spec, &port(20_001), 0));
        let of = |name: &str| variables.get(name).map(String::as_str);
        assert_eq!((of("PASSWORD"), of("URL")), (Some("$(PORT) $$"), Some("http://x:$(PORT) $$@y")));
        let facts = (of("POD"), of("NAMESPACE"), of("ADDRESS"));
        assert_eq!(facts, (Some("hello-00001-0001"), Some("default"), Some("127.0.0.1")));
    }

    #[test]
    fn of_several_containers_each_has_a_port_and_knows_the_others() {
        let mut spec = spec(None);
        let named = |name: &str| Container { name: Some(name.to_owned()), ..Container::default() };
        (spec.template.app, spec.template.sidecars) = (named("web"), vec![named("log-shipper")]);
        let ports = [20_001, 20_002].map(ReservedPort::unreserved);
        for (index, own) in [(0, "20001"), (1, "20002")] {
            let variables = variables_of(&spec, PlacedContainer::of(&spec, &ports, index));
            for (name, value) in [("PORT", own), ("PORT_WEB", "20001"), ("PORT_LOG_SHIPPER", "20002")] {
                assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name} of {index}");
            }
        }
    }

    #[test]
    fn a_probe_without_a_port_asks_the_apps() {
        let spec = spec(Some(ProbeSpec {
            question: ProbeQuestion::Http(HttpQuestion { path: Some("/".to_owned()), ..Default::default() }),
            timing: ProbeTiming::default(),
        }));
        let variables = queue_proxy_variables(&spec, PlacedContainer::of(&spec, &port(20_001), 0));
        let probe = variables.iter().find(|(name, _)| *name == "SERVING_READINESS_PROBE").expect("set");
        assert_eq!(probe.1, r#"{"httpGet":{"host":"127.0.0.1","port":20001,"path":"/","scheme":"HTTP"}}"#);
    }

    #[test]
    fn an_exec_probe_sees_the_apps_environment() {
        let (spec, port) = (spec(None), port(20_001));
        let command = ["cat", "$(PORT)"].map(str::to_owned).to_vec();
        let written = ProbeSpec { question: ProbeQuestion::Exec { command }, timing: ProbeTiming::default() };
        let probe = completed(&written, &spec, PlacedContainer::of(&spec, &port, 0));
        let expected = [
            "env",
            "GREETING=port 20001",
            "K_CONFIGURATION=hello",
            "K_REVISION=hello-00001",
            "K_SERVICE=hello",
            "PORT=20001",
            "cat",
            "20001",
        ];
        let command = expected.map(str::to_owned).to_vec();
        assert_eq!(probe.question, ProbeQuestion::Exec { command });
    }

    fn image_in(network: ImageNetwork) -> PodSpec {
        let mut spec = spec(Some(ProbeSpec {
            question: ProbeQuestion::Exec { command: ["check", "$(PORT)"].map(str::to_owned).to_vec() },
            timing: ProbeTiming::default(),
        }));
        spec.template.app.image = Some(ContainerImage { port: 9000, ..ContainerImage::named("app:1") });
        let (engine, instance) = (crate::images::ImageEngine::Podman, "4-2a".to_owned());
        spec.images = Some(crate::images::ImageRuntime { engine, network, instance });
        spec
    }

    #[test]
    fn an_image_listens_on_its_own_port_in_a_network_of_its_own() {
        for (network, own, told) in [
            (ImageNetwork::Auto, "9000", "bridge"),
            (ImageNetwork::Bridge, "9000", "bridge"),
            (ImageNetwork::Host, "20001", "host"),
        ] {
            let (spec, port) = (image_in(network), port(20_001));
            let app = PlacedContainer::of(&spec, &port, 0);
            assert_eq!(variables_of(&spec, app).get("PORT").map(String::as_str), Some(own), "{network:?}");
            let variables = queue_proxy_variables(&spec, app);
            let of = |wanted: &str| {
                variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str())
            };
            assert_eq!((of("USER_PORT"), of("EBB_APP_NETWORK")), (Some("20001"), Some(told)), "{network:?}");
        }
        assert_eq!(app_network(&spec(None)), "", "a process is in no network of an engine");
    }

    #[test]
    fn an_exec_probe_of_an_image_runs_in_its_container() {
        let (spec, port) = (image_in(ImageNetwork::Bridge), port(20_001));
        let written = spec.template.probes.readiness.clone().expect("one is written");
        let probe = completed(&written, &spec, PlacedContainer::of(&spec, &port, 0));
        let expected = ["podman", "exec", "ebb-4-2a-hello-00001-0001", "check", "9000"];
        let command = expected.map(str::to_owned).to_vec();
        assert_eq!(probe.question, ProbeQuestion::Exec { command });
    }

    #[test]
    fn names_are_expanded_as_kubernetes_does() {
        let variables: ContainerVariables = [("PORT".to_owned(), "8080".to_owned())].into();
        for (text, expected) in [
            ("--port=$(PORT)", "--port=8080"),
            ("$(PORT)$(PORT)", "80808080"),
            ("$$(PORT)", "$(PORT)"),
            ("$(NOBODY)", "$(NOBODY)"),
            ("$PORT $( $", "$PORT $( $"),
            ("", ""),
        ] {
            assert_eq!(expand(text, &variables), expected, "{text}");
        }
    }
}
