//! A container that is an image, where podman or docker runs images and where neither does.

use super::*;
use crate::images::{
    ContainerImage, ContainerSecurity, ImageEngine, ImageNetwork, ImageSettings, ImageSupport, PullPolicy,
};

/// The minimal Service with an image, and more lines in its container.
fn of_image(lines: &str) -> String {
    let text = MINIMAL.replace("command: [\"ebb\", \"sample-app\"]", "image: ghcr.io/a/b:1");
    if lines.is_empty() { text } else { format!("{text}{}", indented(lines, 10)) }
}

/// What is said of a text where images run so: problems, else the Service and warnings.
fn loaded_where(support: ImageSupport, text: &str) -> Result<(ManifestService, Vec<String>), Vec<String>> {
    let files = Files::with(&[text]);
    let options = ImageSettings { support, network: ImageNetwork::Auto };
    match load(&files.source().with_images(options)) {
        Ok(loaded) => {
            let warnings = files.messages(&loaded.warnings);
            let placed = loaded.services.into_values().next().expect("one Service");
            Ok((placed.service, warnings))
        }
        Err(findings) => Err(files.messages(&findings.problems)),
    }
}

/// A Service that is accepted, with warnings.
fn accepted_where(support: ImageSupport, text: &str) -> (ManifestService, Vec<String>) {
    loaded_where(support, text).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// The image of a Service of which nothing is to be said.
fn image(text: &str) -> (ContainerImage, Vec<String>) {
    let (service, warnings) = accepted_where(ImageSupport::By(ImageEngine::Docker), text);
    assert_eq!(warnings, [""; 0], "{text}");
    let app = service.template.app;
    (app.image.expect("it is one"), app.command)
}

fn problems(lines: &str) -> Vec<String> {
    let found = loaded_where(ImageSupport::By(ImageEngine::Podman), &of_image(lines));
    found.map(|(service, _)| service).expect_err("it is refused")
}

#[test]
fn an_image_without_a_command_is_run_where_there_is_an_engine() {
    assert_eq!(image(&of_image("")), (ContainerImage::named("ghcr.io/a/b:1"), Vec::new()));
    let (image, arguments) = image(&of_image(
        "command: []\nargs: [serve]\nworkingDir: /srv\nimagePullPolicy: Never\n\
         ports: [{containerPort: 9000}]",
    ));
    assert_eq!(arguments, ["serve"]);
    assert_eq!((image.pull, image.port, image.directory.as_deref()), (PullPolicy::Never, 9000, Some("/srv")));
}

#[test]
fn a_command_beside_an_image_is_a_process_wherever_it_is() {
    for support in [ImageSupport::By(ImageEngine::Podman), ImageSupport::NotFound, ImageSupport::Off] {
        let text = of_image("command: [sh]");
        let (service, warnings) = accepted_where(support, &text);
        assert_eq!((service.template.app.image, warnings.len()), (None, 1), "{support:?}");
    }
}

#[test]
fn without_an_engine_the_message_names_both_and_the_command() {
    for (support, word) in [(ImageSupport::NotFound, "$PATH"), (ImageSupport::Off, "--images")] {
        let problems = loaded_where(support, &of_image("")).map(|_| ()).expect_err("there is no engine");
        let [problem] = &problems[..] else { panic!("{problems:#?}") };
        for said in ["podman", "docker", "command", word] {
            assert!(problem.contains(said), "{said}: {problem}");
        }
    }
}

#[test]
fn a_container_is_confined_as_its_security_context_says() {
    let (image, _) = image(&of_image(
        "securityContext: {runAsUser: 1000, runAsGroup: 0, readOnlyRootFilesystem: true, \
         allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}, \
         seccompProfile: {type: RuntimeDefault}}",
    ));
    let expected = ContainerSecurity {
        user: Some(1000),
        group: Some(0),
        has_read_only_root: true,
        may_gain_no_privileges: true,
        dropped_capabilities: vec!["ALL".to_owned()],
        added_capabilities: vec!["NET_BIND_SERVICE".to_owned()],
    };
    assert_eq!(image.security, expected);
    let support = ImageSupport::By(ImageEngine::Podman);
    let (_, warnings) = accepted_where(support, &of_image("securityContext: {runAsNonRoot: true}"));
    assert!(warnings[0].contains("runAsUser"), "{warnings:?}");
}

#[test]
fn refusals_of_an_image_name_the_place_and_the_remedy() {
    for (lines, said) in [
        ("imagePullPolicy: always", "imagePullPolicy is \"always\"; write Always, IfNotPresent or Never"),
        ("securityContext: {privileged: true}", "capabilities.add"),
        ("securityContext: {runAsGroup: 1}", "write both"),
        ("volumeMounts: []", "the files of its image"),
        ("readinessProbe: {httpGet: {port: 9001}}", "asks port 9001"),
    ] {
        let problems = problems(lines);
        assert!(problems[0].starts_with("0.yaml:") && problems[0].contains(said), "{lines}: {problems:#?}");
    }
    let injected = of_image("").replace("ghcr.io/a/b:1", "\"--privileged\"");
    let found = loaded_where(ImageSupport::By(ImageEngine::Podman), &injected);
    let problems = found.map(|_| ()).expect_err("it is an option");
    assert!(problems[0].contains("names no image"), "{problems:#?}");
}
