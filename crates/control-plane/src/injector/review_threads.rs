//! On which threads are reviews answered?
//!
//! A review takes more memory as values than as a text. Two threads parse and answer reviews, one review at a
//! time each: one thread those of ordinary size, and one the large ones, so that a large review keeps no
//! ordinary one waiting. Each thread uses the memory of its former review again; the workers of the runtime
//! would each take as much for themselves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Builder;

use injector::{InjectorSettings, ReviewQuestion, ReviewVerdict, answer};
use runtime::vital_thread;
use tokio::sync::{mpsc, oneshot};

use super::config_maps::OTHER_CONFIG_MAPS;
use super::reading::{ReviewBytes, ReviewSize};

/// The answer to a review, as it is sent to the API server.
pub(super) struct WrittenAnswer {
    pub(super) text: Vec<u8>,
    pub(super) verdict: ReviewVerdict,
}

/// Why a review has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingAnswer {
    /// The text is no `AdmissionReview`.
    Unreadable,
    /// The thread has ended, or a bug made it panic over this review.
    Failed,
}

/// The ways to the thread of ordinary reviews and to the thread of large ones.
pub(super) struct ReviewThreads {
    ordinary: mpsc::Sender<ReviewWork>,
    large: mpsc::Sender<ReviewWork>,
}

struct ReviewWork {
    review: ReviewBytes,
    question: ReviewQuestion,
    settings: InjectorSettings,
    answer: oneshot::Sender<Result<WrittenAnswer, MissingAnswer>>,
}

impl ReviewThreads {
    /// Both threads end when this value is dropped.
    pub(super) fn start() -> std::io::Result<Self> {
        Ok(Self { ordinary: start("reviews")?, large: start("large-reviews")? })
    }

    pub(super) async fn answer(
        &self,
        review: ReviewBytes,
        question: ReviewQuestion,
        settings: InjectorSettings,
    ) -> Result<WrittenAnswer, MissingAnswer> {
        let thread = match review.size {
            ReviewSize::Ordinary => &self.ordinary,
            ReviewSize::Large => &self.large,
        };
        let (answer, answered) = oneshot::channel();
        let work = ReviewWork { review, question, settings, answer };
        thread.send(work).await.map_err(|_| MissingAnswer::Failed)?;
        answered.await.unwrap_or(Err(MissingAnswer::Failed))
    }
}

fn start(name: &'static str) -> std::io::Result<mpsc::Sender<ReviewWork>> {
    let (reviews, mut work) = mpsc::channel::<ReviewWork>(1);
    Builder::new().name(name.to_owned()).spawn(move || {
        vital_thread(name, || {
            while let Some(next) = work.blocking_recv() {
                next.carry_out();
            }
        });
    })?;
    Ok(reviews)
}

impl ReviewWork {
    fn carry_out(self) {
        let Self { review, question, settings, answer } = self;
        // The caller may have given up while the review waited.
        if !answer.is_closed() {
            // A panic costs the answer to this review alone.
            let written = catch_unwind(AssertUnwindSafe(|| write(&review, question, &settings)));
            let _ = answer.send(written.unwrap_or(Err(MissingAnswer::Failed)));
        }
    }
}

fn write(
    review: &ReviewBytes,
    question: ReviewQuestion,
    settings: &InjectorSettings,
) -> Result<WrittenAnswer, MissingAnswer> {
    let answered = answer(&review.bytes, question, settings, OTHER_CONFIG_MAPS);
    let answered = answered.ok_or(MissingAnswer::Unreadable)?;
    let text = serde_json::to_vec(&answered.review).map_err(|_| MissingAnswer::Failed)?;
    Ok(WrittenAnswer { text, verdict: answered.verdict })
}
