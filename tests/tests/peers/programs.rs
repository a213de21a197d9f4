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

/// The app behind the proxies where theirs is not one.
pub(crate) fn app() -> PathBuf {
    executables::bench_app().expect("cargo builds it with the tests")
}
