//! The containers of a Service: command or image, and environment; port and probes of the container that
//! requests reach.

use std::path::{Path, PathBuf};

use vocabulary::{AppProtocol, ProbeQuestion, ProbeSpec};

use crate::manifest::env::VariableSources;
use crate::manifest::fields::{ManifestFields, RefusedField, Report};
use crate::manifest::image::{self, ImagePlace};
use crate::manifest::probe::{self, AppPort, ProbeKind};
use crate::manifest::resources::{self, Resources};
use crate::manifest::{env, existence, security};
use crate::pod::{Container, Probes, Template};

const REFUSED: &[RefusedField] = &[
    ("lifecycle", "the pod drains by itself"),
    ("restartPolicy", "a pod that fails is always replaced"),
    ("resizePolicy", "processes share the machine"),
    ("stdin", "the app reads from /dev/null"),
    ("stdinOnce", "the app reads from /dev/null"),
    ("terminationMessagePath", "the exit code and the output say why an app ended"),
    ("terminationMessagePolicy", "the exit code and the output say why an app ended"),
    ("tty", "the app has no terminal"),
    ("volumeDevices", "the app sees this machine's files"),
    ("volumeMounts", "the app sees this machine's files"),
];

/// The reasons that are others where an engine runs an image.
const OF_IMAGE: &[RefusedField] = &[
    ("resizePolicy", "the limits of a container are fixed when it is made"),
    ("volumeDevices", "the container has the files of its image"),
    ("volumeMounts", "the container has the files of its image; give it values by env and envFrom"),
];

/// Fields that are allowed only in the container that requests reach.
const OF_APP: &[RefusedField] = &[
    ("livenessProbe", "only the container with the port is probed; what ends by itself ends its pod anyway"),
    ("readinessProbe", "only the container with the port is probed"),
    ("startupProbe", "only the container with the port is probed"),
];

/// What a container is read with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContainerSources<'a> {
    /// The documents from which it takes variables.
    pub(crate) variables: VariableSources<'a>,
    /// Whether it may be an image.
    pub(crate) images: ImagePlace,
}

/// Reads the container that requests reach into `template`; returns what it says of resources.
pub(crate) fn read_app(
    mut container: ManifestFields<'_>,
    sources: ContainerSources<'_>,
    template: &mut Template,
    report: &mut Report,
) -> Resources {
    let resources;
    (template.app, resources) = program(&mut container, sources, report);
    let app = ports(&mut container, report);
    template.protocol = app.name.and_then(|name| name.parse().ok()).unwrap_or_default();
    template.probes = Probes {
        readiness: Some(
            probe::read(&mut container, ProbeKind::Readiness, app, report)
                .unwrap_or_else(probe::default_readiness),
        ),
        liveness: probe::read(&mut container, ProbeKind::Liveness, app, report),
        startup: probe::read(&mut container, ProbeKind::Startup, app, report),
    };
    if let Some(image) = &mut template.app.image {
        image.port = u16::try_from(app.number).unwrap_or(image.port);
        refuse_other_ports(&template.probes, &container, report);
    }
    let refused: &[RefusedField] = if template.has_image() { OF_IMAGE } else { &[] };
    container.finish(&[refused, REFUSED].concat(), report);
    resources
}

/// Refuses probes that ask another port than that of the container: it is the only one that is published.
fn refuse_other_ports(probes: &Probes, container: &ManifestFields<'_>, report: &mut Report) {
    let all = [&probes.readiness, &probes.liveness, &probes.startup];
    for other in all.into_iter().flatten().filter_map(port_asked) {
        let path = container.path();
        report.refuse(
            container.place,
            format!("a probe of {path} asks port {other}; of an image only its containerPort can be reached"),
        );
    }
}

/// The port that a probe asks, if it is another than the app's.
fn port_asked(probe: &ProbeSpec) -> Option<u16> {
    match &probe.question {
        ProbeQuestion::Http(http) => http.port,
        ProbeQuestion::Tcp { port } | ProbeQuestion::Grpc { port, .. } => *port,
        ProbeQuestion::Exec { .. } => None,
    }
}

/// Reads a container that requests do not reach.
pub(crate) fn read_sidecar(
    mut container: ManifestFields<'_>,
    sources: ContainerSources<'_>,
    report: &mut Report,
) -> (Container, Resources) {
    let read = program(&mut container, sources, report);
    container.ignore(&["ports"]);
    container.finish(&[REFUSED, OF_APP].concat(), report);
    read
}

/// Reads what containers with and without a port have in common.
fn program(
    container: &mut ManifestFields<'_>,
    sources: ContainerSources<'_>,
    report: &mut Report,
) -> (Container, Resources) {
    let name = container.text("name", report);
    let resources = resources::read(container, name, report);
    let mut program = Container { limits: resources.limits, ..Container::default() };
    if image::is_image(container) {
        image::read(container, sources.images, &mut program, report);
        program.env = env::read(container, sources.variables, report);
        return (program, resources);
    }
    program.command = command(container, report);
    program.env = env::read(container, sources.variables, report);
    program.directory = directory(container, report);
    if let Some(written) = container.take("command") {
        existence::look_for_command(&program, written.place, report);
    }
    security::read(container, report);
    container.warn_of("imagePullPolicy", "no image is run", report);
    (program, resources)
}

fn command(container: &mut ManifestFields<'_>, report: &mut Report) -> Vec<String> {
    let refused_before = report.refusals();
    let mut command = container.texts("command", report).unwrap_or_default();
    let arguments = container.texts("args", report).unwrap_or_default();
    let image = container.take("image").map(|node| node.place);
    container.text("image", report);
    let missing = command.is_empty() && report.refusals() == refused_before;
    if let Some(place) = image {
        report.warn(place, format!("{} has no effect beside a command", container.path_of("image")));
    } else if missing {
        report.refuse(
            container.place,
            format!("{} is missing or empty: the command that starts the app", container.path_of("command")),
        );
    }
    command.extend(arguments);
    command
}

/// Everything relative is beside the manifest, so that a manifest works from wherever `ebb` is started: the
/// directory that is written, or, if none is, whatever the command and its arguments name.
fn directory(container: &mut ManifestFields<'_>, report: &mut Report) -> Option<PathBuf> {
    let written = container.text("workingDir", report).filter(|text| !text.is_empty());
    let beside = report.file().parent().unwrap_or(Path::new(""));
    let directory = std::path::absolute(beside.join(written.unwrap_or("."))).ok()?;
    let place = container.take("workingDir").map_or(container.place, |node| node.place);
    if written.is_some() && !directory.is_dir() {
        let path = container.path_of("workingDir");
        report.note_absence(
            place,
            format!("{path} is {}, which is no directory of this machine", directory.display()),
        );
    }
    Some(directory)
}

fn ports<'n>(container: &mut ManifestFields<'n>, report: &mut Report) -> AppPort<'n> {
    let default = AppPort { number: 8080, name: None };
    let ports = container.list("ports", report).unwrap_or_default();
    if let [_, (path, second), ..] = ports.as_slice() {
        report.refuse(second.place, format!("{path} is one port too many: a Service has at most one"));
    }
    let Some((path, item)) = ports.into_iter().next() else { return default };
    let Some(mut fields) = ManifestFields::of(item, path, report) else { return default };
    let number = fields.integer("containerPort", 0..=65535, report).filter(|number| *number > 0);
    let name = port_name(&mut fields, report);
    let place = fields.take("protocol").map(|node| node.place);
    if let Some(protocol) = fields.text("protocol", report).filter(|protocol| *protocol != "TCP") {
        report.refuse(place, format!("{} is {protocol:?}; only TCP is served", fields.path_of("protocol")));
    }
    fields.finish(
        &[("hostPort", "the app listens on $PORT"), ("hostIP", "the app listens on 127.0.0.1")],
        report,
    );
    AppPort { number: number.unwrap_or(default.number), name }
}

fn port_name<'n>(fields: &mut ManifestFields<'n>, report: &mut Report) -> Option<&'n str> {
    let place = fields.take("name").map(|node| node.place);
    let name = fields.text("name", report).filter(|name| !name.is_empty())?;
    if let Err(error) = name.parse::<AppProtocol>() {
        report.refuse(place, format!("{} {error}", fields.path_of("name")));
    }
    Some(name)
}
