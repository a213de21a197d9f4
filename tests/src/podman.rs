//! Podman with settings of its own, and images that are made from nothing: a program and what it is linked
//! with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the program is in an image that is made here. It is the image's entrypoint.
pub const PROGRAM: &str = "/program";

/// The variable by which podman is told where its settings are.
pub const SETTINGS_VARIABLE: &str = "CONTAINERS_CONF";

/// Podman, with settings with which it works in more places than with the machine's.
#[derive(Debug)]
pub struct Podman {
    folder: PathBuf,
}

impl Podman {
    /// Podman with a folder of its own, which is made anew.
    pub fn in_folder(folder: PathBuf) -> Self {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the folder can be written");
        // Where both are installed runc is the one that works in more places.
        let settings = if is_installed("runc") { "[engine]\nruntime = \"runc\"\n" } else { "" };
        let podman = Self { folder };
        std::fs::write(podman.settings(), settings).expect("the folder can be written");
        podman
    }

    /// The file with its settings.
    pub fn settings(&self) -> PathBuf {
        self.folder.join("containers.conf")
    }

    /// A command of podman, with its settings.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("podman");
        command.args(words).env(SETTINGS_VARIABLE, self.settings());
        command
    }

    /// The text that podman prints, or why it failed. Panics where there is no podman.
    pub fn run(&self, words: &[&str]) -> Result<String, String> {
        let output = self.command(words).output();
        let output = output.unwrap_or_else(|error| panic!("podman: {error}; apt-get install -y podman runc"));
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("podman {words:?}: {}", String::from_utf8_lossy(&output.stderr)))
        }
    }

    /// Makes an image of a program and its libraries, which are where its linker looks for them.
    pub fn make_image(&self, image: &str, program: &Path) {
        let (root, archive) = (self.folder.join("root"), self.folder.join("image.tar"));
        copy(program, &root.join(PROGRAM.trim_start_matches('/')));
        for library in libraries(program) {
            copy(Path::new(&library), &root.join(library.trim_start_matches('/')));
        }
        let packed = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg(".").status();
        assert!(packed.expect("tar can be started").success(), "tar");
        let entrypoint = format!("ENTRYPOINT [\"{PROGRAM}\"]");
        let made = self.run(&["import", "--change", &entrypoint, &archive.to_string_lossy(), image]);
        made.unwrap_or_else(|error| panic!("{error}"));
    }
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().expect("below the root")).expect("the folder can be written");
    std::fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}

/// The files that a program is linked with; none if it is static.
fn libraries(program: &Path) -> BTreeSet<String> {
    let output = Command::new("ldd").arg(program).output().expect("ldd can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}
