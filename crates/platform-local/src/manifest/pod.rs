//! What the pods of a Service run, and within which limits: `spec.template.spec`.

use std::time::Duration;

use vocabulary::RequestTimeouts;

use crate::manifest::container::ContainerSources;
use crate::manifest::fields::{ManifestFields, RefusedField, Report};
use crate::manifest::image::ImagePlace;
use crate::manifest::resources::Resources;
use crate::manifest::yaml::{YamlNode, YamlValue};
use crate::manifest::{container, security};
use crate::pod::{Container, Template};

/// The most containers beside the one with the port: more than manifests have, and few enough for their
/// descriptors to travel in one message.
pub(crate) const MOST_SIDECARS: usize = 16;

/// Knative's defaults (ConfigMaps `config-defaults` and `config-deployment`).
const DEFAULT_TIMEOUT_SECONDS: u32 = 300;
const MOST_CONTAINER_CONCURRENCY: u32 = 1000;
/// A day. Knative's own limit is 600 s unless an administrator raises it; a person's own machine has no
/// administrator to ask.
const MOST_TIMEOUT_SECONDS: u32 = 86_400;

const POD_REFUSED: &[RefusedField] = &[
    ("activeDeadlineSeconds", "pods live as long as they are needed"),
    ("affinity", "there is one machine"),
    ("automountServiceAccountToken", "there are no service accounts"),
    ("dnsConfig", "the app uses this machine's name resolution"),
    ("dnsPolicy", "the app uses this machine's name resolution"),
    ("hostAliases", "the app uses this machine's name resolution"),
    ("hostIPC", "the app is a process of this machine"),
    ("hostNetwork", "the app is a process of this machine"),
    ("hostPID", "the app is a process of this machine"),
    ("imagePullSecrets", "`podman login` or `docker login` knows the registry's password"),
    ("initContainers", "prepare in the command itself"),
    ("nodeSelector", "there is one machine"),
    ("priorityClassName", "there is one machine"),
    ("restartPolicy", "a pod that fails is always replaced"),
    ("runtimeClassName", "no container is run"),
    ("schedulerName", "there is one machine"),
    ("tolerations", "there is one machine"),
    ("topologySpreadConstraints", "there is one machine"),
    ("volumes", "the app sees this machine's files"),
];

/// The reasons that are others where an engine runs an image.
const OF_IMAGE: &[RefusedField] = &[
    ("hostNetwork", "`--images-network host` does that for all containers"),
    ("volumes", "the container has the files of its image; give it values by env and envFrom"),
];

/// Reads it into `template`; returns what its containers say of resources.
pub(crate) fn read(
    mut spec: ManifestFields<'_>,
    sources: ContainerSources<'_>,
    template: &mut Template,
    report: &mut Report,
) -> Resources {
    template.container_concurrency =
        spec.integer("containerConcurrency", 0..=MOST_CONTAINER_CONCURRENCY, report).unwrap_or(0);
    template.timeouts = timeouts(&mut spec, report);
    template.termination_grace = spec
        .integer("terminationGracePeriodSeconds", 0..=MOST_TIMEOUT_SECONDS, report)
        .map(|seconds| Duration::from_secs(seconds.into()));
    spec.warn_of("serviceAccountName", "there are no service accounts", report);
    // Knative writes `false` into every Service.
    if spec.take("enableServiceLinks").is_some_and(|node| node.value != YamlValue::Bool(false)) {
        spec.warn_of("enableServiceLinks", "there are no service links", report);
    }
    security::read(&mut spec, report);
    let resources = containers(&mut spec, sources, template, report);
    let refused: &[RefusedField] = if template.has_image() { OF_IMAGE } else { &[] };
    spec.finish(&[refused, POD_REFUSED].concat(), report);
    resources
}

fn containers(
    spec: &mut ManifestFields<'_>,
    sources: ContainerSources<'_>,
    template: &mut Template,
    report: &mut Report,
) -> Resources {
    let containers = spec.list("containers", report);
    match containers.as_deref() {
        Some([(path, one)]) => {
            let container = ManifestFields::of(one, path.clone(), report);
            container
                .map(|container| container::read_app(container, sources, template, report))
                .unwrap_or_default()
        }
        Some([]) => {
            report.refuse(spec.place, format!("{} is empty", spec.path_of("containers")));
            Resources::default()
        }
        Some(several) => {
            let sources = ContainerSources { images: ImagePlace::Beside, ..sources };
            read_several(several, sources, template, report)
        }
        None => {
            if spec.take("containers").is_none() {
                report.refuse(spec.place, format!("{} is missing", spec.path_of("containers")));
            }
            Resources::default()
        }
    }
}

/// The one with the port is the app, as on Knative.
fn read_several(
    several: &[(String, &YamlNode)],
    sources: ContainerSources<'_>,
    template: &mut Template,
    report: &mut Report,
) -> Resources {
    let mut resources = Resources::default();
    let (mut names, mut with_port) = (Vec::new(), 0);
    for (path, node) in several {
        let Some(mut container) = ManifestFields::of(node, path.clone(), report) else { continue };
        let name = unique_name(&mut container, &names, report);
        names.extend(name.clone());
        if container.take("ports").is_some_and(|ports| ports.value != YamlValue::List(Vec::new())) {
            with_port += 1;
            resources.add(container::read_app(container, sources, template, report));
            template.app.name = name;
        } else {
            let (sidecar, of_sidecar) = container::read_sidecar(container, sources, report);
            template.sidecars.push(Container { name, ..sidecar });
            resources.add(of_sidecar);
        }
    }
    let place = several.first().map(|(_, first)| first.place);
    if with_port != 1 {
        let found = if with_port == 0 { "none has" } else { "more have" };
        let message =
            format!("of several containers exactly one has ports, for requests to go there; here {found}");
        report.refuse(place, message);
    }
    if template.sidecars.len() > MOST_SIDECARS {
        let (found, most) = (several.len(), MOST_SIDECARS + 1);
        report.refuse(place, format!("there are {found} containers; a pod has at most {most}"));
    }
    resources
}

/// Where there are several containers, each is called something: its lines in the log begin with that.
fn unique_name(container: &mut ManifestFields<'_>, others: &[String], report: &mut Report) -> Option<String> {
    let (place, path) = (container.take("name").map(|node| node.place), container.path_of("name"));
    let name = container.label("name", report);
    if place.is_none() {
        let message = format!("{path} is missing: where there are several containers, each has a name");
        report.refuse(container.place, message);
    }
    if let Some(name) = name.filter(|name| others.iter().any(|other| other == name)) {
        report.refuse(place, format!("{path} is {name}, as another is called; rename one"));
    }
    name.map(str::to_owned)
}

fn timeouts(spec: &mut ManifestFields<'_>, report: &mut Report) -> RequestTimeouts {
    let request =
        spec.integer("timeoutSeconds", 0..=MOST_TIMEOUT_SECONDS, report).unwrap_or(DEFAULT_TIMEOUT_SECONDS);
    let mut within = |name: &'static str| {
        let seconds = spec.integer(name, 0..=MOST_TIMEOUT_SECONDS, report)?;
        if request > 0 && seconds > request {
            let (path, place) = (spec.path_of(name), spec.take(name).map(|node| node.place));
            report.refuse(
                place,
                format!(
                    "{path} is {seconds}, more than timeoutSeconds ({request}); it could never be reached"
                ),
            );
        }
        limit(seconds)
    };
    let response_start = within("responseStartTimeoutSeconds");
    let idle = within("idleTimeoutSeconds");
    RequestTimeouts { request: limit(request), response_start, idle, ..RequestTimeouts::default() }
}

/// A timeout of so many seconds, of which zero means none.
fn limit(seconds: u32) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}
