//! What `cargo xtask dist` and `cargo xtask images` make: a static executable that serves and simulates as
//! other builds do, a Debian package that dpkg takes, and images that hold what a cluster runs and nothing
//! else.
//!
//! `cargo suite dist`. It builds for musl, in the profile `dev` unless `$DIST_PROFILE` says otherwise,
//! and needs `rustup target add x86_64-unknown-linux-musl`, Debian's `musl-tools`, `dpkg` and `file`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tests::bench::executables;
use tests::client::whole_answer;
use tests::ebb::executable;
use tests::eventually;

/// Ends when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text that a command prints when it is run.
fn said(program: &str, arguments: &[&str]) -> String {
    said_by(Command::new(program).args(arguments))
}

fn said_by(command: &mut Command) -> String {
    let output = command.current_dir(root()).output();
    let output = output
        .unwrap_or_else(|error| panic!("{command:?}: {error}; apt-get install -y musl-tools dpkg file"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Builds everything of a task into a folder, and says which files it made.
fn made_by(task: &str, folder: &Path) -> String {
    let profile = std::env::var("DIST_PROFILE").unwrap_or_else(|_| "dev".to_owned());
    let folder_name = folder.to_str().expect("UTF-8");
    let mut cargo = executables::cargo();
    cargo.args(["xtask", task, "--profile", &profile, "--output", folder_name]);
    said_by(&mut cargo)
}

/// Builds everything into a folder.
fn dist(folder: &Path) -> PathBuf {
    let made = made_by("dist", folder);
    println!("{made}");
    let files = made.lines().filter_map(|line| line.split(' ').next()).map(PathBuf::from);
    let package = files.into_iter().find(|file| file.extension().is_some_and(|kind| kind == "deb"));
    package.expect("it says what it made")
}

#[tokio::test]
async fn one_command_makes_a_static_executable_and_a_package_that_dpkg_installs() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let package = dist(folder.path());
    let package = package.to_str().expect("UTF-8");
    for executable in ["ebb", "ebb-queue-proxy"] {
        let file = folder.path().join(executable);
        let kind = said("file", &[file.to_str().expect("UTF-8")]);
        let is_static = kind.contains("statically linked") || kind.contains("static-pie linked");
        assert!(is_static && kind.contains("stripped"), "{kind}");
    }
    // What stands in it, by dpkg's own reader.
    let about = said("dpkg-deb", &["--info", package]);
    assert!(about.contains("Package: ebb") && about.contains("Architecture: "), "{about}");
    let listed = said("dpkg-deb", &["-c", package]);
    for (path, mode) in [
        ("usr/bin/ebb", "-rwxr-xr-x root/root"),
        ("usr/share/man/man1/ebb.1.gz", "-rw-r--r-- root/root"),
        ("usr/share/man/man1/ebb-up.1.gz", "-rw-r--r--"),
        ("usr/share/bash-completion/completions/ebb", "-rw-r--r--"),
        ("usr/share/zsh/vendor-completions/_ebb", "-rw-r--r--"),
        ("usr/share/fish/vendor_completions.d/ebb.fish", "-rw-r--r--"),
        ("usr/lib/systemd/system/ebb.service", "-rw-r--r--"),
        ("usr/lib/systemd/system/ebb.socket", "-rw-r--r--"),
        ("usr/share/doc/ebb/copyright", "-rw-r--r--"),
        ("etc/ebb/", "drwxr-xr-x"),
    ] {
        let is_there = listed.lines().any(|line| line.starts_with(mode) && line.ends_with(path));
        assert!(is_there, "{path} ({mode}) is not in\n{listed}");
    }
    // Installed below a root of its own, which needs no rights but those of its files.
    let place = folder.path().join("root");
    let database = place.join("var/lib/dpkg");
    for part in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(database.join(part)).expect("a folder");
    }
    for file in ["status", "available"] {
        std::fs::write(database.join(file), "").expect("a file");
    }
    let place_name = place.to_str().expect("UTF-8");
    // Without a shell in that root its scripts cannot run; they are read by one here.
    said("dpkg-deb", &["-x", package, place_name]);
    let root_option = format!("--root={place_name}");
    said(
        "dpkg",
        &[&root_option, "--force-not-root", "--force-script-chrootless", "--force-depends", "-i", package],
    );
    let state = said("dpkg", &[&root_option, "-s", "ebb"]);
    assert!(state.contains("Status: install ok installed"), "{state}");
    let unit =
        std::fs::read_to_string(place.join("usr/lib/systemd/system/ebb.service")).expect("it is there");
    for line in [
        "ExecStart=\"/usr/bin/ebb\" up --listen 127.0.0.1:8080 --api 127.0.0.1:9000 -f \"/etc/ebb\"",
        "ConditionPathExistsGlob=|/etc/ebb/*.yaml",
    ] {
        assert!(unit.lines().any(|written| written == line), "{line} is not in\n{unit}");
    }
    serves(&place.join("usr/bin/ebb")).await;
    simulates_as_another_build(&place.join("usr/bin/ebb"));
    said("dpkg", &[&root_option, "--force-not-root", "--force-script-chrootless", "-r", "ebb"]);
    assert!(!place.join("usr/bin/ebb").exists(), "it is removed");
}

/// The executable takes requests from zero, with an app that is in it.
async fn serves(ebb: &Path) {
    let sample = root().join("config/samples/autoscale-go.yaml");
    let mut running = Command::new(ebb)
        .args(["up", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "-f"])
        .arg(sample)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(Running)
        .expect("it starts");
    let mut lines = BufReader::new(running.0.stdout.take().expect("it was piped")).lines();
    let first = lines.next().expect("it says where it listens").expect("text");
    let address = first.strip_prefix("requests: http://").and_then(|address| address.parse().ok());
    let address = address.unwrap_or_else(|| panic!("{first}"));
    let host = "autoscale-go.default.example.com";
    eventually("an answer", Duration::from_secs(60), || async {
        let answer = whole_answer(address, host, "/?sleep=5").await.map_err(|error| error.to_string())?;
        if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
    })
    .await;
}

/// The executable is linked to musl, whose logarithms and powers are others than those of the C library that
/// tests are linked to: the same seeds make the same worlds in both.
fn simulates_as_another_build(ebb: &Path) {
    let world: &[&str] = &["simulate", "--world", "random", "--seed", "3"];
    let load: &[&str] = &[
        "simulate",
        "-f",
        "config/samples/autoscale-go.yaml",
        "--load",
        "autoscale-go=diurnal,peak=50rps,trough=5rps,period=10m",
        "--service-time",
        "120ms,p99=800ms",
        "--start-up",
        "2s..5s",
        "--minutes",
        "10",
    ];
    for arguments in [world, load] {
        let [musl, other] =
            [ebb.to_owned(), executable()].map(|program| said(program.to_str().expect("UTF-8"), arguments));
        assert!(!musl.is_empty(), "{arguments:?}");
        assert_eq!(musl, other, "{arguments:?}");
    }
}

#[test]
fn images_hold_static_executables_and_run_as_nobody() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    println!("{}", made_by("images", folder.path()));
    let sizes = std::fs::read_to_string(root().join("deploy/image-sizes.json")).expect("it is there");
    let sizes: serde_json::Value = serde_json::from_str(&sizes).expect("JSON");
    for (name, executables) in [
        ("ebb", &["ebb-autoscaler", "ebb-activator", "ebb-injector"] as &[_]),
        ("ebb-queue-proxy", &["ebb-queue-proxy"]),
    ] {
        let file = folder.path().join(format!("{name}-image.tar"));
        let bytes = std::fs::metadata(&file).expect("it was made").len();
        // In the profile `dev` they are several times as large.
        if std::env::var("DIST_PROFILE").is_ok_and(|profile| profile == "dist") {
            let most = sizes[name].as_u64().expect("each image has a size");
            assert!(bytes <= most, "{name} has {bytes} bytes of {most}");
        }
        let parts = folder.path().join(name).with_extension("parts");
        let layer = parts.join("layer");
        std::fs::create_dir_all(&layer).expect("a folder");
        let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        said("tar", &["-C", &text(&parts), "-xf", &text(&file)]);
        said("tar", &["-C", &text(&layer), "-xf", &text(&parts.join("layer.tar"))]);
        let read = |part| std::fs::read_to_string(parts.join(part)).expect("it is there");
        let config: serde_json::Value = serde_json::from_str(&read("config.json")).expect("JSON");
        assert_eq!(config["config"]["User"], "65532");
        let digest = said("sha256sum", &[&text(&parts.join("layer.tar"))]);
        let digest = format!("sha256:{}", digest.split(' ').next().unwrap_or_default());
        assert_eq!(config["rootfs"]["diff_ids"][0], digest.as_str());
        assert!(read("manifest.json").contains(&format!("\"{name}:")), "it is called by its name");
        let mut held: Vec<String> = std::fs::read_dir(layer.join("bin"))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        held.sort();
        let mut expected = executables.to_vec();
        expected.sort_unstable();
        assert_eq!(held, expected);
        for executable in executables {
            // Without its settings each names the first that is missing, and starts nothing.
            let output = Command::new(layer.join("bin").join(executable)).env_clear().output();
            let output = output.expect("it is static, so it starts here as well");
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && !complaint.is_empty(), "{executable}: {complaint}");
        }
    }
}

fn xtask(arguments: &[&str]) -> String {
    said_by(executables::cargo().arg("xtask").args(arguments))
}

/// The steps of `.github/workflows/release.yml` behind the builds, on the files of this machine.
#[test]
fn files_of_a_release_have_checksums_and_a_statement_of_their_origin() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (built, given) = (folder.path().join("built"), folder.path().join("given"));
    for task in ["dist", "images"] {
        made_by(task, &built);
    }
    let (built, dist) = (built.to_str().expect("UTF-8"), given.to_str().expect("UTF-8"));
    xtask(&["release", "tag", concat!("v", env!("CARGO_PKG_VERSION"))]);
    xtask(&["release", "files", "--from", built, "--to", dist]);
    xtask(&["release", "sums", dist]);
    xtask(&["release", "provenance", dist]);
    // By the program with which people check them.
    let checked = said("bash", &["-c", &format!("cd {dist} && sha256sum --strict -c SHA256SUMS")]);
    assert_eq!(checked.matches(": OK\n").count(), 5, "{checked}");
    let statement = std::fs::read_to_string(given.join("provenance.json")).expect("it was written");
    let statement: serde_json::Value = serde_json::from_str(&statement).expect("JSON");
    assert_eq!(statement["subject"].as_array().map(Vec::len), Some(5), "{statement}");
    let source = &statement["predicate"]["buildDefinition"]["resolvedDependencies"][0];
    let commit = said("git", &["rev-parse", "HEAD"]);
    assert_eq!(source["digest"]["gitCommit"], commit.trim());
    // What is pushed are archives of these names, for both architectures.
    let commands = xtask(&["release", "push", dist, "--registry", "r.example/ebb", "--print"]);
    let architecture = said("dpkg", &["--print-architecture"]);
    let archives = commands.split_whitespace().filter_map(|word| word.strip_prefix("docker-archive:"));
    let (own, others): (Vec<&str>, Vec<&str>) =
        archives.partition(|archive| archive.contains(architecture.trim()));
    assert!(own.len() == 2 && others.len() == 2, "{commands}");
    assert!(own.iter().all(|archive| Path::new(archive).is_file()), "{own:?}");
}
