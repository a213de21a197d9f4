//! Is the image of a pod here? It is looked for, and pulled where its policy says so, before the first start
//! of its template. Later starts have no need to: the engine itself pulls an image that was removed
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OnceCell, mpsc};
use vocabulary::{PodName, RevisionName};

use super::failure::ProcessFailure;
use super::fleet::PodNews;
use super::image_engine::{has_image, pull};
use crate::images::{ContainerImage, ImageEngine, PullPolicy};
use crate::pod::PodSpec;

/// Which images are here or being pulled, by revision.
#[derive(Debug, Default)]
pub(crate) struct ImagePulls {
    known: Mutex<BTreeMap<RevisionName, TemplateImage>>,
}

/// The image of the template of which a pod was started last.
#[derive(Clone, Debug)]
struct TemplateImage {
    template: String,
    reference: String,
    /// The name under which the engine has it, once it does. Pods that start together wait for one pull.
    present: Arc<OnceCell<String>>,
}

/// The pod that waits for its image, and whom to tell how far that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageAwaiter<'a> {
    pub(crate) pod: &'a PodName,
    pub(crate) news: &'a mpsc::Sender<(PodName, PodNews)>,
}

impl ImageAwaiter<'_> {
    /// A channel that is full has enough to say: the next line will do.
    fn tell(self, text: String) {
        let _ = self.news.try_send((self.pod.clone(), PodNews::Waiting(text)));
    }
}

impl ImagePulls {
    /// Has the image pulled if that is to be done, and says under which name the engine has it; `None` if the
    /// pod has no image, or no engine. Dropped, it ends a pull for which no other pod waits.
    pub(crate) async fn obtain(
        &self,
        spec: &PodSpec,
        awaiter: ImageAwaiter<'_>,
    ) -> Result<Option<String>, ProcessFailure> {
        let (Some(image), Some(runtime)) = (&spec.template.app.image, &spec.images) else { return Ok(None) };
        let present = self.cell_of(spec, image);
        if !present.initialized() {
            awaiter.tell(format!("its image {} is looked for by {}", image.reference, runtime.engine));
        }
        let name = present.get_or_try_init(|| obtain(runtime.engine, image, awaiter)).await?;
        Ok(Some(name.clone()))
    }

    fn cell_of(&self, spec: &PodSpec, image: &ContainerImage) -> Arc<OnceCell<String>> {
        let mut known = self.known.lock();
        let found = known.entry(spec.owner()).or_insert_with(|| TemplateImage::of(spec, image));
        if found.template != spec.revision || found.reference != image.reference {
            *found = TemplateImage::of(spec, image);
        }
        Arc::clone(&found.present)
    }
}

impl TemplateImage {
    fn of(spec: &PodSpec, image: &ContainerImage) -> Self {
        let (template, reference) = (spec.revision.clone(), image.reference.clone());
        Self { template, reference, present: Arc::default() }
    }
}

async fn obtain(
    engine: ImageEngine,
    image: &ContainerImage,
    awaiter: ImageAwaiter<'_>,
) -> Result<String, ProcessFailure> {
    let reference = &image.reference;
    if image.pull != PullPolicy::Always && has_image(engine, reference).await {
        return Ok(reference.clone());
    }
    if image.pull == PullPolicy::Never {
        return Err(never(engine, reference));
    }
    // Docker completes a name by itself; podman asks a person which registry is meant.
    let completed = image.completed_reference().filter(|_| engine == ImageEngine::Podman);
    let name = completed.unwrap_or_else(|| reference.clone());
    tracing::info!(image = name, %engine, "an image is pulled");
    let progress =
        |line: String| awaiter.tell(format!("its image {name} is being pulled by {engine}: {line}"));
    let pulled = pull(engine, &name, progress).await;
    match pulled {
        Ok(()) => {
            tracing::info!(image = name, %engine, "an image was pulled");
            Ok(name)
        }
        Err(last_lines) => {
            let reason = format!("the image {name} cannot be pulled by {engine}");
            Err(ProcessFailure { reason, last_lines })
        }
    }
}

fn never(engine: ImageEngine, reference: &str) -> ProcessFailure {
    ProcessFailure::without_words(&format!(
        "the image {reference} is not on this machine, and its imagePullPolicy is Never; run \
         `{engine} pull {reference}`, or write IfNotPresent"
    ))
}
