use super::super::container_image::ContainerSecurity;
use super::*;

fn runtime(engine: ImageEngine, network: ImageNetwork) -> ImageRuntime {
    ImageRuntime { engine, network, instance: "4-0000002a".to_owned() }
}

/// A container of this image with names of one letter and nothing special.
fn plain_run<'a>(
    runtime: &'a ImageRuntime,
    image: &'a ContainerImage,
    variables: &'a BTreeMap<String, String>,
    words: &'a [String],
) -> ContainerRun<'a> {
    ContainerRun {
        runtime,
        name: "n",
        pod: "p",
        image,
        port: 1,
        limits: ContainerLimits::default(),
        process_limits: ProcessLimits::default(),
        variables,
        words,
    }
}

/// The command line of a container with nothing special, after a change.
fn line(engine: ImageEngine, network: ImageNetwork, change: impl Fn(&mut ContainerRun<'_>)) -> String {
    let (runtime, image) = (runtime(engine, network), ContainerImage::named("ghcr.io/a/b:1"));
    let variables = BTreeMap::new();
    let mut run = ContainerRun {
        name: "ebb-4-0000002a-hello-00001-0001",
        pod: "default/hello-00001-0001",
        port: 20_001,
        ..plain_run(&runtime, &image, &variables, &[])
    };
    change(&mut run);
    run.arguments().join(" ")
}

const BEGIN: &str = "run --name ebb-4-0000002a-hello-00001-0001 --label ebb.dev/instance=4-0000002a --label \
                     ebb.dev/pod=default/hello-00001-0001";

#[test]
fn a_plain_container_is_published_on_loopback() {
    for engine in [ImageEngine::Podman, ImageEngine::Docker] {
        for network in [ImageNetwork::Auto, ImageNetwork::Bridge] {
            assert_eq!(
                line(engine, network, |_| {}),
                format!(
                    "{BEGIN} --pull missing --log-driver none --publish 127.0.0.1:20001:8080 ghcr.io/a/b:1"
                )
            );
        }
        assert_eq!(
            line(engine, ImageNetwork::Host, |_| {}),
            format!("{BEGIN} --pull missing --log-driver none --network host ghcr.io/a/b:1")
        );
    }
}

/// What a changed image adds to the command line, up to the image and its arguments.
fn of_image(change: impl Fn(&mut ContainerImage)) -> String {
    let mut image = ContainerImage::named("app:1");
    change(&mut image);
    let words = ["serve", "--port", "8080"].map(str::to_owned);
    let runtime = runtime(ImageEngine::Podman, ImageNetwork::Host);
    let variables = BTreeMap::new();
    let line = plain_run(&runtime, &image, &variables, &words).arguments().join(" ");
    let (_, rest) = line.split_once("ebb.dev/pod=p ").expect("the labels come first");
    rest.replace(" --log-driver none --network host", "")
}

#[test]
fn each_field_of_the_image_has_its_option() {
    let security = |change: fn(&mut ContainerSecurity)| of_image(|image| change(&mut image.security));
    for (found, expected) in [
        (of_image(|_| {}), "--pull missing app:1 serve --port 8080"),
        (of_image(|image| image.pull = PullPolicy::Always), "--pull missing app:1 serve --port 8080"),
        (of_image(|image| image.pull = PullPolicy::Never), "--pull never app:1 serve --port 8080"),
        (
            of_image(|image| image.directory = Some("/srv".to_owned())),
            "--pull missing --workdir /srv app:1 serve --port 8080",
        ),
        (
            security(|security| security.user = Some(1000)),
            "--pull missing --user 1000 app:1 serve --port 8080",
        ),
        (
            security(|security| (security.user, security.group) = (Some(1000), Some(0))),
            "--pull missing --user 1000:0 app:1 serve --port 8080",
        ),
        (
            security(|security| security.has_read_only_root = true),
            "--pull missing --read-only app:1 serve --port 8080",
        ),
        (
            security(|security| security.may_gain_no_privileges = true),
            "--pull missing --security-opt no-new-privileges app:1 serve --port 8080",
        ),
        (
            security(|security| {
                security.dropped_capabilities = vec!["ALL".to_owned()];
                security.added_capabilities = vec!["NET_BIND_SERVICE".to_owned()];
            }),
            "--pull missing --cap-drop ALL --cap-add NET_BIND_SERVICE app:1 serve --port 8080",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn limits_are_the_engines_to_keep() {
    let limits = ContainerLimits {
        memory_bytes: Some(128 << 20),
        cpu_milli: Some(1500),
        cpu_request_milli: Some(250),
    };
    let process_limits = ProcessLimits { descriptors: Some((1024, 4096)), processes: Some((500, u64::MAX)) };
    let limited = |engine| {
        line(engine, ImageNetwork::Host, |run| (run.limits, run.process_limits) = (limits, process_limits))
    };
    let expected = "--memory 134217728 --memory-swap 134217728 --cpu-period 100000 --cpu-quota 150000 \
                    --cpu-shares 256 --ulimit nofile=1024:4096";
    let podman = limited(ImageEngine::Podman);
    assert!(podman.contains(&format!(" {expected} --ulimit nproc=500:-1 ")), "{podman}");
    let docker = limited(ImageEngine::Docker);
    assert!(docker.contains(expected) && !docker.contains("nproc"), "{docker}");
}

#[test]
fn values_of_variables_are_no_arguments_unless_the_engine_reads_them_itself() {
    let variables: BTreeMap<String, String> = [
        ("PASSWORD", "secret"),
        ("PATH", "/bin"),
        ("https_proxy", "http://proxy"),
        ("DOCKER_HOST", "tcp://x"),
        ("my.name", "dots"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    let (runtime, image) = (runtime(ImageEngine::Podman, ImageNetwork::Host), ContainerImage::named("app:1"));
    let run = plain_run(&runtime, &image, &variables, &[]);
    let line = run.arguments().join(" ");
    let expected = "--env DOCKER_HOST=tcp://x --env PASSWORD --env PATH=/bin --env https_proxy=http://proxy \
                    --env my.name=dots app:1";
    assert!(line.ends_with(expected), "{line}");
    let given: Vec<(&str, &str)> =
        run.environment().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(given, [("PASSWORD", "secret")]);
}
