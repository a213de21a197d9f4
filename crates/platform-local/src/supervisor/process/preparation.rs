//! Can a pod be started? One whose app is an image waits until that is here.

use super::orders::{ProcessOrders, ProcessWish};
use crate::pod::PodSpec;
use crate::supervisor::failure::ProcessFailure;
use crate::supervisor::handover::{HandOverQuestion, HandOverVerdict, decided};
use crate::supervisor::image_pulls::{ImageAwaiter, ImagePulls};

/// Whether a pod can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Preparation {
    /// It can be started, as its specification says now.
    Done,
    /// Its image cannot be had.
    Failed(ProcessFailure),
    /// It is not wanted any more.
    Needless,
    /// Another `ebb up` goes on, and makes such a pod itself.
    Given,
}

/// Waits for the image of the pod, if it has one, and writes the name under which the engine has it into the
/// specification.
pub(super) async fn prepare(
    spec: &mut PodSpec,
    images: &ImagePulls,
    awaiter: ImageAwaiter<'_>,
    orders: &mut ProcessOrders,
) -> Preparation {
    if !spec.template.has_image() {
        return Preparation::Done;
    }
    let obtained = {
        let mut obtaining = std::pin::pin!(images.obtain(spec, awaiter));
        loop {
            // Cancel-safe: the image is waited for in one future that goes on, and orders stay in their
            // channels.
            tokio::select! {
                obtained = &mut obtaining => break obtained,
                Ok(()) = orders.wish.changed() => {
                    if *orders.wish.borrow_and_update() > ProcessWish::Run {
                        return Preparation::Needless;
                    }
                }
                Some(question) = orders.questions.recv() => {
                    // It has nothing to be handed over; no answer says so.
                    let HandOverQuestion { reply, mut verdict } = question;
                    drop(reply);
                    if decided(&mut verdict).await == HandOverVerdict::Given {
                        return Preparation::Given;
                    }
                }
            }
        }
    };
    match obtained {
        Ok(name) => {
            if let Some((image, name)) = spec.template.app.image.as_mut().zip(name) {
                image.reference = name;
            }
            Preparation::Done
        }
        Err(failure) => Preparation::Failed(failure),
    }
}
