//! Which engine runs the images of pods, in which network, and is anything of a killed pod left over?
//!
//! A pod's container is its `ebb pod`'s. Where that was killed, the `ebb up` that watches over it removes the
//! container; where both were killed, the next `ebb up` with an image does.

use std::collections::BTreeSet;
use std::sync::Arc;

use runtime::vital;
use vocabulary::PodName;

use super::identities::new_instance_number;
use super::image_engine::remove_ownerless;
use super::image_pulls::ImagePulls;
use crate::images::{ImageEngine, ImageNetwork, ImageRuntime, ImageSettings, new_instance};
use crate::manifest::LoadedManifest;
use crate::pod::Template;

/// How images are run by this `ebb up`.
#[derive(Debug)]
pub(super) struct ImageKeeper {
    /// `None` where no engine runs them.
    runtime: Option<ImageRuntime>,
    pulls: Arc<ImagePulls>,
    /// Pods that could not be started in a network of their own, and began in that of the host.
    in_host_network: BTreeSet<PodName>,
}

impl ImageKeeper {
    /// Also removes what is left over of an `ebb up` that was killed, if one of the Services is an image.
    pub(super) fn start(options: ImageSettings, loaded: &LoadedManifest) -> Self {
        let engine = options.support.engine();
        let has_image = loaded.services.values().any(|placed| placed.service.template.has_image());
        if let Some(engine) = engine.filter(|_| has_image) {
            tracing::info!(%engine, network = options.network.as_str(), "images are run");
            // It ends by itself, and no part waits for it: names of containers come from this process.
            tokio::spawn(vital("the removal of left-over containers", remove_ownerless(engine)));
        }
        let instance = new_instance(new_instance_number());
        let runtime = engine.map(|engine| ImageRuntime { engine, network: options.network, instance });
        Self { runtime, pulls: Arc::default(), in_host_network: BTreeSet::new() }
    }

    /// How the image of a pod of this template is run; `None` if it has none, or if images do not run.
    pub(super) fn runtime_of(&self, template: &Template) -> Option<ImageRuntime> {
        self.runtime.clone().filter(|_| template.has_image())
    }

    /// The engine, if there is one.
    pub(super) fn engine(&self) -> Option<ImageEngine> {
        self.runtime.as_ref().map(|runtime| runtime.engine)
    }

    /// The images that were pulled, for the watches over pods.
    pub(super) fn pulls(&self) -> Arc<ImagePulls> {
        Arc::clone(&self.pulls)
    }

    /// A pod could not be started in a network of its own.
    pub(super) fn note_host_network(&mut self, pod: &PodName) {
        self.in_host_network.insert(pod.clone());
    }

    /// A pod is ready. If it is so in the network of the host alone, all others begin there.
    pub(super) fn note_ready(&mut self, pod: &PodName) {
        let Some(runtime) = self.runtime.as_mut().filter(|_| self.in_host_network.contains(pod)) else {
            return;
        };
        if runtime.network == ImageNetwork::Auto {
            runtime.network = ImageNetwork::Host;
            tracing::warn!(
                engine = %runtime.engine,
                "containers are in the network of the host from now on, because the engine could not start one \
                 in a network of its own: their programs must listen on $PORT (--images-network)"
            );
        }
    }

    /// A pod is gone, and no longer decides about others.
    pub(super) fn forget(&mut self, pod: &PodName) {
        self.in_host_network.remove(pod);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::{ContainerImage, ImageSupport};

    fn keeper(network: ImageNetwork) -> ImageKeeper {
        let support = ImageSupport::By(ImageEngine::Podman);
        ImageKeeper::start(ImageSettings { support, network }, &LoadedManifest::default())
    }

    fn template() -> Template {
        let mut template = Template::default();
        template.app.image = Some(ContainerImage::named("app:1"));
        template
    }

    #[test]
    fn only_images_need_an_engine() {
        assert_eq!(keeper(ImageNetwork::Auto).runtime_of(&Template::default()), None);
        let none = ImageKeeper::start(ImageSettings::default(), &LoadedManifest::default());
        assert_eq!((none.runtime_of(&template()), none.engine()), (None, None));
    }

    #[test]
    fn a_pod_that_is_ready_in_the_network_of_the_host_decides_for_the_others() {
        let network = |keeper: &ImageKeeper| keeper.runtime_of(&template()).map(|runtime| runtime.network);
        let [first, second] = ["web-1", "web-2"].map(PodName::new);
        let mut keeper = keeper(ImageNetwork::Auto);
        keeper.note_host_network(&first);
        keeper.note_ready(&second);
        assert_eq!(network(&keeper), Some(ImageNetwork::Auto));
        keeper.forget(&first);
        keeper.note_ready(&first);
        assert_eq!(network(&keeper), Some(ImageNetwork::Auto), "it failed there, too");
        keeper.note_host_network(&second);
        keeper.note_ready(&second);
        assert_eq!(network(&keeper), Some(ImageNetwork::Host));
    }
}
