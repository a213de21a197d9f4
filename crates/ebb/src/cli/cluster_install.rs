//! What `kubectl ebb install` takes: above all where the two images of ebb are.

use anyhow::bail;
use clap::Args;

use super::cluster::ClusterOptions;

/// The names of the two images in the archives that `cargo xtask images` makes.
const OWN: &str = "ebb";
const QUEUE_PROXY: &str = "ebb-queue-proxy";
/// The tag of both images in these archives.
const TAG: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Args)]
pub(crate) struct ClusterInstallOptions {
    /// The image of ebb's programs as the nodes pull it: REGISTRY/ebb, also with a tag or a digest. Without
    /// either it gets the tag that the archives carry, which is this version. Pods get
    /// REGISTRY/ebb-queue-proxy with the same tag. Without this option it is the image of this version where
    /// the installed one is, or `ebb`, as nodes have it into which the archives were loaded.
    #[arg(long, value_name = "IMAGE", value_parser = image_name)]
    image: Option<String>,
    /// The image of the queue-proxy, where it is in another registry or has another name, tag or digest.
    #[arg(long, value_name = "IMAGE", value_parser = image_name)]
    queue_proxy_image: Option<String>,
    /// Ask the API server what would be written, print that, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the manifest and ask no API server: `kubectl ebb install --print | kubectl delete -f -` removes
    /// what was installed.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) print: bool,
    /// Take over fields of these objects that another client has written, such as those of an earlier
    /// `kubectl apply`.
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

/// Both images of ebb, as nodes pull them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EbbImages {
    /// The image of autoscalers, activators and injectors.
    pub(crate) own: String,
    /// The image of the queue-proxy, which injectors give pods.
    pub(crate) queue_proxy: String,
}

impl ClusterInstallOptions {
    /// Both images. The one of the queue-proxy is in the registry of the other one, unless it is named.
    /// `installed` is the image of ebb's programs in the cluster, where there is one.
    pub(crate) fn images(&self, installed: Option<&str>) -> anyhow::Result<EbbImages> {
        let own = match (&self.image, installed) {
            (Some(named), _) => with_tag(named),
            (None, Some(installed)) => of_this_version(installed)?,
            (None, None) => with_tag(OWN),
        };
        let queue_proxy = match &self.queue_proxy_image {
            Some(named) => with_tag(named),
            None => match beside(&own) {
                Some(queue_proxy) => queue_proxy,
                None => bail!(
                    "--image is {own}, which does not say where the queue-proxy is; write REGISTRY/{OWN}:TAG, or name the other one with --queue-proxy-image"
                ),
            },
        };
        Ok(EbbImages { own, queue_proxy })
    }
}

fn image_name(text: &str) -> Result<String, String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "./_-:@".contains(letter);
    if !text.is_empty() && text.chars().all(is_letter) && !text.starts_with('/') && !text.ends_with('/') {
        Ok(text.to_owned())
    } else {
        Err(format!("it must name an image, such as registry.example/{OWN}:{TAG}"))
    }
}

/// The parts of an image's name: its registry with the slash behind it, and the rest.
fn parts(image: &str) -> (&str, &str) {
    image.split_at(image.rfind('/').map_or(0, |slash| slash + 1))
}

fn with_tag(image: &str) -> String {
    let (_, name) = parts(image);
    if name.contains([':', '@']) { image.to_owned() } else { format!("{image}:{TAG}") }
}

/// The image of this version, in the registry of the one that is installed.
fn of_this_version(installed: &str) -> anyhow::Result<String> {
    let (registry, name) = parts(installed);
    if name.split([':', '@']).next() != Some(OWN) {
        bail!("the image that is installed is {installed}; name the one of version {TAG} with --image");
    }
    Ok(format!("{registry}{OWN}:{TAG}"))
}

/// The image of the queue-proxy beside ebb's own; `None` where that has another name, or a digest, which is
/// of one image alone.
fn beside(own: &str) -> Option<String> {
    let (registry, name) = parts(own);
    let tag = name.strip_prefix(OWN)?;
    (tag.starts_with(':') && !tag.contains('@')).then(|| format!("{registry}{QUEUE_PROXY}{tag}"))
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    fn images(words: &[&str]) -> anyhow::Result<EbbImages> {
        let command = ClusterInstallOptions::augment_args(Command::new("install"));
        let matches = command.try_get_matches_from([&["install"][..], words].concat())?;
        ClusterInstallOptions::from_arg_matches(&matches)?.images(None)
    }

    #[test]
    fn one_option_names_both_images_with_the_tag_of_the_archives() {
        let tagged = |name: &str| format!("{name}:{TAG}");
        for (words, own, queue_proxy) in [
            (&[][..], tagged("ebb"), tagged("ebb-queue-proxy")),
            (
                &["--image", "r.example:5000/ebb"],
                tagged("r.example:5000/ebb"),
                tagged("r.example:5000/ebb-queue-proxy"),
            ),
            (
                &["--image", "r.example/a/ebb:7"],
                "r.example/a/ebb:7".to_owned(),
                "r.example/a/ebb-queue-proxy:7".to_owned(),
            ),
            (
                &["--image", "r.example/mine@sha256:00", "--queue-proxy-image", "r.example/side:2"],
                "r.example/mine@sha256:00".to_owned(),
                "r.example/side:2".to_owned(),
            ),
        ] {
            assert_eq!(images(words).expect("both are known"), EbbImages { own, queue_proxy }, "{words:?}");
        }
    }

    #[test]
    fn an_installation_keeps_its_registry() {
        let command = ClusterInstallOptions::augment_args(Command::new("install"));
        let matches = command.try_get_matches_from(["install"]).expect("no option is needed");
        let options = ClusterInstallOptions::from_arg_matches(&matches).expect("they are read");
        let of = |installed: &str| options.images(Some(installed)).map(|images| images.own);
        for installed in ["r.example:5000/a/ebb:0.0.1", "r.example:5000/a/ebb@sha256:00"] {
            assert_eq!(of(installed).expect("it is known"), format!("r.example:5000/a/ebb:{TAG}"));
        }
        assert_eq!(of("ebb:test").expect("it is known"), format!("ebb:{TAG}"));
        let error = of("r.example/mine:1").expect_err("of this version it may be another one");
        assert!(error.to_string().contains("with --image"), "{error}");
    }

    #[test]
    fn an_image_that_does_not_tell_where_the_queue_proxy_is_is_refused() {
        for image in ["r.example/mine:1", "r.example/ebb@sha256:00", "r.example/ebb:1@sha256:00", "ebbs"] {
            let error = images(&["--image", image]).expect_err("only one is known");
            assert!(error.to_string().contains("--queue-proxy-image"), "{error}");
        }
        for image in ["", "r.example/", "an image"] {
            images(&["--image", image]).expect_err("no image has this name");
        }
    }
}
