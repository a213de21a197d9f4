//! Others' programs, built where cargo builds ours.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use tests::bench::executables;

/// One build at a time: they share what they download.
static BUILDING: Mutex<()> = Mutex::new(());

/// Builds `package` of the Go module in `tests/interop/MODULE`.
pub(crate) fn built(module: &str, package: &str) -> PathBuf {
    let _alone = BUILDING.lock().expect("building does not panic twice");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop").join(module);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(module);
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(package)
        .current_dir(&folder)
        .status()
        .expect("`go` is there; install it with: apt-get install -y golang-go");
    assert!(status.success(), "{} does not build", folder.display());
    program
}

/// The path of a file below `tests/interop`.
pub(crate) fn interop(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("interop").join(file)
}

/// A Python with the packages that `tests/interop/python` pins.
pub(crate) fn python() -> PathBuf {
    let _alone = BUILDING.lock().expect("building does not panic twice");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = folder.join("bin/python");
    if !python.is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder), "apt-get install -y python3-venv");
    }
    let requirements = interop("python/requirements.txt");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(&python).args(pip).arg(requirements), "a network is needed for that the first time");
    python
}

/// Java, which compiles a program of one file as it runs it.
pub(crate) fn java() -> PathBuf {
    let java = PathBuf::from("java");
    run(Command::new(&java).arg("-version"), "apt-get install -y default-jdk-headless");
    java
}

/// The program of tonic's client, built on first use.
pub(crate) fn tonic() -> PathBuf {
    let _alone = BUILDING.lock().expect("building does not panic twice");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tonic");
    let mut command = executables::cargo();
    command.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(interop("tonic/Cargo.toml"));
    run(command.arg("--target-dir").arg(&folder), "a network is needed for that the first time");
    folder.join("debug/ebb-interop-tonic")
}

fn run(command: &mut Command, otherwise: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {otherwise}"));
    assert!(output.status.success(), "{command:?}: {}; {otherwise}", String::from_utf8_lossy(&output.stderr));
}

/// The app behind the proxies where theirs is not one.
pub(crate) fn app() -> PathBuf {
    executables::bench_app().expect("cargo builds it with the tests")
}
