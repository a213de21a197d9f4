//! How do both images come into a registry, for nodes of both architectures? Each archive is pushed with a
//! tag of its own, and a list of both gets the tag that manifests name. The list is podman's, the copies are
//! skopeo's.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use super::files;
use crate::images::IMAGES;

/// The architectures that a list of images has, by Go's names.
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

#[derive(Debug, Args)]
pub(crate) struct PushOptions {
    /// The folder with the archives of both architectures.
    #[arg(value_name = "DIRECTORY")]
    folder: PathBuf,
    /// The registry and the path in it, such as registry.example.org/ebb.
    #[arg(long, value_name = "REGISTRY")]
    registry: String,
    /// Print the commands, and run none of them.
    #[arg(long)]
    print: bool,
}

/// Runs the commands that push the images, one after the other.
pub(super) fn run(options: &PushOptions) -> anyhow::Result<()> {
    for words in commands(options, env!("CARGO_PKG_VERSION")) {
        let line = words.join(" ");
        println!("{line}");
        let Some((program, arguments)) = words.split_first() else { continue };
        if options.print {
            continue;
        }
        let status = Command::new(program).args(arguments).status();
        let status = status.with_context(|| format!("starting {program}; `apt-get install {program}`"))?;
        ensure!(status.success(), "`{line}` ended with {status}");
    }
    Ok(())
}

fn commands(options: &PushOptions, version: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut add = |words: &[&str]| commands.push(words.iter().map(|&word| word.to_owned()).collect());
    for image in &IMAGES {
        let list = format!("{}/{}:{version}", options.registry.trim_end_matches('/'), image.name);
        let pushed_list = format!("docker://{list}");
        add(&["podman", "manifest", "create", &list]);
        for architecture in ARCHITECTURES {
            let file = options.folder.join(files::image(image.name, version, architecture));
            let archive = format!("docker-archive:{}", file.display());
            let pushed = format!("docker://{list}-{architecture}");
            add(&["skopeo", "copy", &archive, &pushed]);
            add(&["podman", "manifest", "add", &list, &pushed]);
        }
        add(&["podman", "manifest", "push", "--all", &list, &pushed_list]);
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_both_architectures_and_is_pushed_last() {
        let options = PushOptions { folder: "dist".into(), registry: "r.example/a/".to_owned(), print: true };
        let lines: Vec<String> = commands(&options, "1.2.3").iter().map(|words| words.join(" ")).collect();
        let expected = [
            "podman manifest create r.example/a/ebb:1.2.3",
            "skopeo copy docker-archive:dist/ebb-image-1.2.3-linux-amd64.tar docker://r.example/a/ebb:1.2.3-amd64",
            "podman manifest add r.example/a/ebb:1.2.3 docker://r.example/a/ebb:1.2.3-amd64",
            "skopeo copy docker-archive:dist/ebb-image-1.2.3-linux-arm64.tar docker://r.example/a/ebb:1.2.3-arm64",
            "podman manifest add r.example/a/ebb:1.2.3 docker://r.example/a/ebb:1.2.3-arm64",
            "podman manifest push --all r.example/a/ebb:1.2.3 docker://r.example/a/ebb:1.2.3",
        ];
        assert_eq!(lines[..6], expected);
        assert_eq!(lines.len(), 12, "and as many for the queue-proxy");
        assert!(run(&options).is_ok(), "nothing is started");
    }
}
