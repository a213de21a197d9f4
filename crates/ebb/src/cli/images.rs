//! Options that say whether and how container images are run.

use clap::Args;
use platform_local::{ImageEngine, ImageNetwork, ImageSettings, ImageSupport};

/// Whether and how container images are run.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ImageArguments {
    /// The program that runs a container with an image and without a command: podman, docker, or none
    /// ("off"). Without this, the one that is in $PATH, podman first.
    #[arg(long, value_name = "ENGINE", value_parser = image_support)]
    pub(crate) images: Option<ImageSupport>,
    /// The network of such containers. "bridge": each has its own, where it listens on its containerPort.
    /// "host": all are in that of this machine and listen on $PORT. "auto": bridge, and host where the engine
    /// cannot.
    #[arg(long, value_name = "NETWORK", default_value = "auto", value_parser = image_network)]
    pub(crate) images_network: ImageNetwork,
}

impl ImageArguments {
    /// The settings with the engine that this machine has, where none is named.
    pub(super) fn settings(self) -> ImageSettings {
        let support = self.images.unwrap_or_else(ImageSupport::found);
        ImageSettings { support, network: self.images_network }
    }
}

/// The program that runs container images, which must be there.
fn image_support(text: &str) -> Result<ImageSupport, String> {
    let engine = match text {
        "podman" => ImageEngine::Podman,
        "docker" => ImageEngine::Docker,
        "off" => return Ok(ImageSupport::Off),
        _ => return Err("write podman, docker or off".to_owned()),
    };
    if engine.is_installed() {
        Ok(ImageSupport::By(engine))
    } else {
        Err(format!("there is no {engine} in $PATH; install it, or leave this out for the one that is found"))
    }
}

/// The network that containers are in, by its word.
fn image_network(text: &str) -> Result<ImageNetwork, String> {
    let all = [ImageNetwork::Auto, ImageNetwork::Bridge, ImageNetwork::Host];
    let found = all.into_iter().find(|network| network.as_str() == text);
    found.ok_or_else(|| "write bridge, host or auto".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_their_network_have_three_words_each() {
        assert_eq!(image_support("off"), Ok(ImageSupport::Off));
        assert!(image_support("crio").is_err_and(|advice| advice.contains("podman, docker or off")));
        assert_eq!(image_network("host"), Ok(ImageNetwork::Host));
        assert!(image_network("none").is_err_and(|advice| advice.contains("bridge, host or auto")));
    }
}
