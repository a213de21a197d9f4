//! How is an image made where nothing makes images? It is a `tar` of a layer, of what runs in it, and of a
//! list of both: a docker archive, which docker, podman, containerd and skopeo take.
//!
//! An image of ours holds static executables and nothing else: no shell, no libraries, no certificates of
//! others. They run as a user whom no machine knows, and write no file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::archive::{Archive, architecture};
use crate::executables::Build;

/// The user of the image's processes: no user of a node has this number, so they own nothing outside the
/// image.
const USER: &str = "65532";

/// The most bytes of each archive, by the name of its image: nodes pull them while requests wait. The suite
/// `dist` reads the same file.
const SIZES: &str = include_str!("../../../deploy/image-sizes.json");

/// One container image, as the archive holds it.
pub(crate) struct Image<'n> {
    /// The name by which manifests ask for the image.
    pub(crate) name: &'n str,
    /// The command that runs when the manifest names none.
    pub(crate) entry_point: &'n [&'n str],
    /// The executables, which are put in `/bin`.
    pub(crate) executables: &'n [&'n str],
    /// Further names of the first of them, which goes by what it is called.
    pub(crate) links: &'n [&'n str],
}

/// What a cluster pulls: what decides and holds requests, and what stands beside each pod.
pub(crate) const IMAGES: [Image<'static>; 2] = [
    Image {
        name: "ebb",
        entry_point: &[],
        executables: &["ebb-autoscaler"],
        links: &["ebb-activator", "ebb-injector"],
    },
    Image {
        name: "ebb-queue-proxy",
        entry_point: &["ebb-queue-proxy"],
        executables: &["ebb-queue-proxy"],
        links: &[],
    },
];

impl Image<'_> {
    /// The most bytes of the image's archive.
    fn bytes_max(&self) -> anyhow::Result<usize> {
        let sizes: BTreeMap<String, usize> =
            serde_json::from_str(SIZES).context("reading deploy/image-sizes.json")?;
        let bytes = sizes.get(self.name).copied();
        bytes.with_context(|| format!("deploy/image-sizes.json has no size of the image {}", self.name))
    }
}

/// Writes `NAME-image.tar` beside the executables that were built.
pub(crate) fn write(image: &Image<'_>, build: &Build<'_>) -> anyhow::Result<PathBuf> {
    let folder = build.output;
    let layer = layer_of(image, folder)?;
    let hash = digest(&SHA256, &layer);
    let config = json!({
        "created": "1970-01-01T00:00:00Z",
        "architecture": architecture(build.triple),
        "os": "linux",
        "config": {"User": USER, "Env": ["PATH=/bin"], "Entrypoint": image.entry_point},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hexadecimal(hash.as_ref()))]},
    });
    let tag = format!("{}:{}", image.name, env!("CARGO_PKG_VERSION"));
    let manifest = json!([{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]);
    let mut archive = Archive::new();
    archive.file("manifest.json", 0o644, manifest.to_string().as_bytes())?;
    archive.file("config.json", 0o644, config.to_string().as_bytes())?;
    archive.file("layer.tar", 0o644, &layer)?;
    let file = folder.join(format!("{}-image.tar", image.name));
    let bytes = archive.finish()?;
    check_size(image, bytes.len(), build.profile)?;
    std::fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// What is compiled for trying it out is as large as it likes.
fn check_size(image: &Image<'_>, bytes: usize, profile: &str) -> anyhow::Result<()> {
    let most = image.bytes_max()?;
    ensure!(
        profile == "dev" || bytes <= most,
        "the image {} has grown to {bytes} bytes, and nodes pull it while requests wait: it may have {most} (deploy/image-sizes.json); `cargo bloat` shows what takes the room",
        image.name
    );
    Ok(())
}

fn layer_of(image: &Image<'_>, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let mut layer = Archive::new();
    for name in image.executables {
        let file = folder.join(name);
        let bytes = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        layer.file(&format!("bin/{name}"), 0o755, &bytes)?;
    }
    let first = image.executables.first().context("an image without an executable is of no use")?;
    for name in image.links {
        layer.hard_link(&format!("bin/{name}"), &format!("bin/{first}"))?;
    }
    layer.finish()
}

/// Bytes as digits in lower case, two for each.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // A string takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_has_grown_too_large_is_not_written_unless_it_is_for_trying_out() {
        for image in &IMAGES {
            let most = image.bytes_max().expect("each image has a size");
            for (bytes, profile, fits) in
                [(most, "dist", true), (most + 1, "dist", false), (most + 1, "dev", true)]
            {
                let checked = check_size(image, bytes, profile);
                assert_eq!(checked.is_ok(), fits, "{} {bytes} {profile}", image.name);
            }
        }
    }

    #[test]
    fn only_images_have_a_size() {
        let sizes: BTreeMap<String, usize> = serde_json::from_str(SIZES).expect("sizes by names");
        let names: Vec<&str> = IMAGES.iter().map(|image| image.name).collect();
        assert_eq!(sizes.keys().collect::<Vec<_>>(), names);
    }
}
