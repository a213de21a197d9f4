//! A container that is an image and has no command: what its engine is told.

use vocabulary::shown;

use crate::images::{ContainerImage, ImageSupport, PullPolicy};
use crate::manifest::fields::{ManifestFields, Report};
use crate::manifest::security;
use crate::manifest::yaml::{YamlNode, YamlValue};
use crate::pod::Container;

/// Whether the containers of a pod may be images.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ImagePlace {
    /// The only container may, where images run.
    Alone(ImageSupport),
    /// Containers of a pod share a network, and here each would have one of its own.
    Beside,
}

/// Whether the container is an image without a command.
pub(crate) fn is_image(container: &mut ManifestFields<'_>) -> bool {
    let is_nothing = |node: &YamlNode| node.value == YamlValue::List(Vec::new());
    container.take("image").is_some() && container.take("command").is_none_or(is_nothing)
}

/// Reads the fields that mean something else for an image than for a process into `program`.
pub(crate) fn read(
    container: &mut ManifestFields<'_>,
    place: ImagePlace,
    program: &mut Container,
    report: &mut Report,
) {
    program.command = container.texts("args", report).unwrap_or_default();
    let pull = pull_policy(container, report);
    let directory = container.text("workingDir", report).filter(|text| !text.is_empty());
    let security = security::read_of_image(container, report);
    let Some(written) = container.take("image") else { return };
    let Some(reference) = container.text("image", report) else { return };
    let path = container.path_of("image");
    if let Some(why) = why_not(place) {
        report.refuse(written.place, format!("{path} alone cannot be run: {why}"));
    } else if !is_reference(reference) {
        report.refuse(
            written.place,
            format!("{path} is {}, which names no image; write one such as ghcr.io/a/b:1", shown(reference)),
        );
    }
    let image = ContainerImage::named(reference);
    program.image = Some(ContainerImage {
        pull: pull.unwrap_or(image.pull),
        directory: directory.map(str::to_owned),
        security,
        ..image
    });
}

/// Why images do not run here, with what to do about it.
fn why_not(place: ImagePlace) -> Option<&'static str> {
    match place {
        ImagePlace::Alone(ImageSupport::By(_)) => None,
        ImagePlace::Alone(ImageSupport::NotFound) => {
            Some("neither podman nor docker is in $PATH; install one, or add the command that starts the app")
        }
        ImagePlace::Alone(ImageSupport::Off) => Some(
            "--images is off; leave that out to run it by podman or docker, or add the command that starts \
             the app",
        ),
        ImagePlace::Beside => Some(
            "on one machine podman or docker runs the image of a pod that has one container; add the command \
             that starts it to each of several",
        ),
    }
}

/// Whether an engine can take it for the name of an image, and for nothing else.
fn is_reference(text: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@+".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_legal)
}

fn pull_policy(container: &mut ManifestFields<'_>, report: &mut Report) -> Option<PullPolicy> {
    let place = container.take("imagePullPolicy")?.place;
    let written = container.text("imagePullPolicy", report)?;
    let policy = PullPolicy::ALL.into_iter().find(|policy| policy.as_str() == written);
    if policy.is_none() {
        let path = container.path_of("imagePullPolicy");
        let found = shown(written);
        report.refuse(place, format!("{path} is {found}; write Always, IfNotPresent or Never"));
    }
    policy
}
