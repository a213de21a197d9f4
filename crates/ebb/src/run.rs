//! `ebb run`: one app without a manifest, in an `ebb up` of its own or (`--join`) in the one that runs.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use autoscaler::api_types::RevisionList;
use platform_local::ManifestSource;
use runtime::StopRequests;

use crate::cli::{Cli, CliCommand, RunOptions, UpOptions};
use crate::client::UpClient;
use crate::output;
use crate::up::{self, JoinedManifest, StartAutoscaler};

/// The name of an app whose command has no letter for one.
const NAME_DEFAULT: &str = "app";
/// The longest name of a Service.
const NAME_MAX: usize = 63;
/// How long an `ebb up` may take to read a manifest that was left for it, and how often it is asked.
const JOINED_WITHIN: Duration = Duration::from_secs(15);
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// Runs the app until asked to stop, or prints its manifest.
pub(crate) fn run(options: &RunOptions, start_autoscaler: StartAutoscaler) -> anyhow::Result<ExitCode> {
    let name = options.name.clone().unwrap_or_else(|| name_of(&options.command[0]));
    // Beside a manifest relative paths mean its folder, which is not this one when another `ebb up` reads it.
    let directory = if options.join { Some(std::env::current_dir()?) } else { None };
    let manifest = manifest(options, &name, directory.as_deref());
    if options.print {
        output::print_line(manifest.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.join {
        return join(options, &name, &manifest);
    }
    let up_options = up_options(options.port.unwrap_or(0))?;
    let source = ManifestSource::of_text(manifest, &up_options.manifests.reading.domain);
    up::run_source(up_options, source, start_autoscaler)
}

/// The options of an `ebb up` that disturbs no other one: both ports are free ones, unless one is named.
fn up_options(port: u16) -> anyhow::Result<UpOptions> {
    let listen = format!("127.0.0.1:{port}");
    let words = ["ebb", "up", "--filename", "-", "--listen", &listen, "--api", "127.0.0.1:0"];
    let CliCommand::Up(options) = Cli::read(words.into_iter().map(Into::into)).command else {
        bail!("`ebb up` is not understood as itself")
    };
    Ok(*options)
}

/// Leaves the manifest with the `ebb up` that runs, and takes it back at the end.
fn join(options: &RunOptions, name: &str, manifest: &str) -> anyhow::Result<ExitCode> {
    let address = options.api.url.trim_start_matches("http://").trim_end_matches('/');
    let address: SocketAddr = address.parse().with_context(|| {
        format!("--join takes an address of this machine as --api, such as http://127.0.0.1:9000, and not {address:?}")
    })?;
    let api = UpClient::new(&options.api);
    up::runtime()?.block_on(async {
        let mut stop_requests = StopRequests::listen()?;
        let left = JoinedManifest::leave(address, name, manifest)?;
        let url = until_known(&api, name, &left).await?;
        output::print_line(&format!("default/service/{name}: {url}; Ctrl-C removes it"))?;
        stop_requests.next().await;
        drop(left);
        Ok(ExitCode::SUCCESS)
    })
}

/// The URL of the Service, once the running `ebb up` has read its manifest.
async fn until_known(api: &UpClient, name: &str, left: &JoinedManifest) -> anyhow::Result<String> {
    let wanted = format!("default/service/{name}");
    let known = async {
        loop {
            let list: RevisionList = api.get("/v1/revisions").await?;
            if let Some(revision) = list.revisions.into_iter().find(|one| one.name.as_str() == wanted) {
                return Ok(revision.url.unwrap_or_default());
            }
            if let Some(problem) = list.problems.iter().find(|problem| left.has(problem)) {
                bail!("the running `ebb up` refuses it: {problem}");
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    };
    let known = tokio::time::timeout(JOINED_WITHIN, known).await;
    known.with_context(|| format!("the running `ebb up` has not read it within {JOINED_WITHIN:?}"))?
}

/// A name that a Service can have, after the program of a command.
fn name_of(program: &str) -> String {
    let stem = Path::new(program).file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let allowed = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = stem.unwrap_or_default().chars().map(allowed).take(NAME_MAX).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { NAME_DEFAULT.to_owned() } else { name.to_owned() }
}

/// The manifest of the app. Texts stand in it as JSON, which YAML understands.
fn manifest(options: &RunOptions, name: &str, directory: Option<&Path>) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!(
        "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata:\n  name: {}\nspec:\n  template:\n",
        quoted(name)
    );
    let annotations = annotations(options);
    if !annotations.is_empty() {
        text += "    metadata:\n      annotations:\n";
        for (key, value) in annotations {
            let _ = writeln!(text, "        {key}: {}", quoted(&value));
        }
    }
    text += "    spec:\n";
    if let Some(limit) = options.container_concurrency {
        let _ = writeln!(text, "      containerConcurrency: {limit}");
    }
    let words: Vec<String> = options.command.iter().map(|word| quoted(word)).collect();
    let _ = writeln!(text, "      containers:\n        - command: [{}]", words.join(", "));
    if let Some(directory) = directory {
        let _ = writeln!(text, "          workingDir: {}", quoted(&directory.to_string_lossy()));
    }
    if !options.env.is_empty() {
        text += "          env:\n";
        for (name, value) in &options.env {
            let (name, value) = (quoted(name), quoted(value));
            let _ = writeln!(text, "            - {{name: {name}, value: {value}}}");
        }
    }
    text
}

fn annotations(options: &RunOptions) -> Vec<(String, String)> {
    let scaling = [
        ("min-scale", options.min_scale.map(|count| count.to_string())),
        ("max-scale", options.max_scale.map(|count| count.to_string())),
        ("target", options.target.clone()),
    ];
    let scaling = scaling
        .into_iter()
        .filter_map(|(key, value)| Some((format!("autoscaling.knative.dev/{key}"), value?)));
    scaling.chain(options.annotation.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> RunOptions {
        let words = ["ebb", "run"].into_iter().chain(words.iter().copied()).map(Into::into);
        let CliCommand::Run(options) = Cli::read(words).command else { panic!("it is `run`") };
        *options
    }

    #[test]
    fn a_service_is_named_after_its_program() {
        for (program, name) in [
            ("python3", "python3"),
            ("./bin/My_Server.sh", "my-server"),
            ("/usr/bin/...", "app"),
            ("ebb", "ebb"),
        ] {
            assert_eq!(name_of(program), name, "{program}");
        }
        assert_eq!(name_of(&"a".repeat(80)).len(), NAME_MAX);
    }

    #[test]
    fn the_manifest_is_one_that_ebb_up_takes() {
        let options = options(&[
            "--min-scale",
            "1",
            "--target",
            "5",
            "--container-concurrency",
            "10",
            "--env",
            "GREETING=it's \"me\"",
            "--annotation",
            "ebb.dev/surge-evaluation=false",
            "--",
            "ebb",
            "sample-app",
            "--a: b",
        ]);
        let text = manifest(&options, "hello", Some(Path::new("/")));
        assert!(
            text.contains("autoscaling.knative.dev/min-scale: \"1\"")
                && text.contains("containerConcurrency: 10"),
            "{text}"
        );
        let loaded = platform_local::load(&ManifestSource::of_text(text.clone(), "example.com"));
        let loaded = loaded.unwrap_or_else(|findings| panic!("{:?}\n{text}", findings.problems));
        assert_eq!(loaded.services().map(ToString::to_string).collect::<Vec<_>>(), ["default/service/hello"]);
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }

    #[test]
    fn an_ebb_up_of_its_own_has_free_ports() {
        let up = up_options(8123).expect("options");
        assert_eq!((up.listen.port(), up.api.port()), (8123, 0));
    }
}
