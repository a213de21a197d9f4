//! The one task that decides.

use std::sync::Arc;

use platform::{Platform, PlatformEvent};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::AutoscalerConfig;
use crate::api::Query;
use crate::api_types::{API_VERSION, ProblemList, RevisionList};

pub(crate) struct EventLoop {
    facts: mpsc::Receiver<PlatformEvent>,
    stop: CancellationToken,
    problems: Vec<String>,
}

impl EventLoop {
    pub(crate) fn new(
        _config: AutoscalerConfig,
        platform: Arc<dyn Platform>,
        stop: CancellationToken,
    ) -> Self {
        Self { facts: platform.subscribe(), stop, problems: Vec::new() }
    }

    pub(crate) async fn run(mut self, mut queries: mpsc::Receiver<Query>) {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                Some(event) = self.facts.recv() => {
                    if let PlatformEvent::ProblemsChanged(problems) = event {
                        self.problems = problems;
                    }
                }
                Some(query) = queries.recv() => self.answer(query),
            }
        }
    }

    fn answer(&self, query: Query) {
        let problems = self.problems.clone();
        match query {
            Query::List(reply) => {
                let _ = reply.send(RevisionList { version: API_VERSION, revisions: Vec::new(), problems });
            }
            Query::Detail(_, reply) => {
                let _ = reply.send(None);
            }
            Query::Problems(reply) => {
                let _ = reply.send(ProblemList { version: API_VERSION, problems });
            }
            Query::Health(reply) => {
                let _ = reply.send(());
            }
        }
    }
}
