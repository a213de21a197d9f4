//! The activator's end of its link: what the autoscaler says is acted upon, and what the activator holds is told.
//!
//! The writer never queues messages. It asks what is true when it may write (which seconds were closed, which versions are acted upon, how much is held), so a
//! slow peer gets fewer and newer words. A link that ends changes nothing about what is served.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;

use link::{Accepted, Acceptor, ActivatorOrder, LinkError, Reader, Writer};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tracing::{info, warn};
use vocabulary::{ActivatorHello, ActivatorWord, Assignment, LinkToken, LinkVersion, RevisionName, Version};

use crate::assignments::{Assignments, Outcome};
use crate::backends::Backends;
use crate::context::Context;
use crate::metering::Metering;

/// What a link needs to know and to reach.
pub(crate) struct LinkEnd {
    pub(crate) context: Arc<Context>,
    pub(crate) assignments: Arc<Assignments>,
    pub(crate) metering: Rc<Metering>,
    pub(crate) backends: Backends,
    pub(crate) acknowledgements: Rc<Acknowledgements>,
}

/// Versions that are acted upon and not yet acknowledged, the newest of each revision.
#[derive(Default)]
pub(crate) struct Acknowledgements {
    pending: RefCell<BTreeMap<RevisionName, Version>>,
    added: Notify,
}

impl Acknowledgements {
    fn add(&self, revision: &RevisionName, version: Version) {
        let mut pending = self.pending.borrow_mut();
        let newest = pending.entry(revision.clone()).or_default();
        *newest = version.max(*newest);
        drop(pending);
        self.added.notify_one();
    }

    fn take(&self) -> BTreeMap<RevisionName, Version> {
        std::mem::take(&mut self.pending.borrow_mut())
    }
}

impl LinkEnd {
    /// Serves one link after the other, for ever. A new one replaces the old.
    pub(crate) async fn run(self: Rc<Self>, listener: TcpListener, token: Option<LinkToken>) -> Infallible {
        let refused = self.context.metrics.refused_links.clone();
        let mut acceptor = Acceptor::new(listener, token, refused);
        let mut accepted = acceptor.accept().await;
        loop {
            let serving = Rc::clone(&self).serve(accepted);
            tokio::pin!(serving);
            let mut is_up = true;
            accepted = loop {
                tokio::select! {
                    next = acceptor.accept() => break next,
                    () = &mut serving, if is_up => is_up = false,
                }
            };
        }
    }

    async fn serve(self: Rc<Self>, accepted: Accepted<ActivatorOrder, ActivatorWord>) {
        let Accepted { first, reader, writer } = accepted;
        info!("the autoscaler's link is up");
        let _connected = Connected::new(&self.context);
        let ended = tokio::select! {
            ended = self.read(first, reader) => ended,
            ended = self.write(writer) => ended,
        };
        match ended {
            Ok(()) => info!("the autoscaler closed its link; serving on with what is known"),
            Err(error) => warn!(
                error = &error as &dyn std::error::Error,
                "the autoscaler's link ended; serving on with what is known"
            ),
        }
    }

    async fn read(
        self: &Rc<Self>,
        first: ActivatorOrder,
        mut reader: Reader<ActivatorOrder>,
    ) -> Result<(), LinkError> {
        self.obey(first);
        while let Some(order) = reader.next().await? {
            self.obey(order);
        }
        Ok(())
    }

    fn obey(self: &Rc<Self>, order: ActivatorOrder) {
        match order {
            ActivatorOrder::SyncBegin { .. } => self.assignments.sync_begin(),
            ActivatorOrder::Assign(assignment) => self.assign(&assignment),
            ActivatorOrder::Remove { revision, version } | ActivatorOrder::Forget { revision, version } => {
                self.assignments.remove(&revision, version);
                self.acknowledgements.add(&revision, version);
            }
            ActivatorOrder::SyncEnd => self.assignments.sync_end(),
            ActivatorOrder::Released { .. } | ActivatorOrder::Heartbeat => {}
        }
    }

    fn assign(self: &Rc<Self>, assignment: &Assignment) {
        match self.assignments.assign(assignment) {
            Outcome::Applied { revision, lost } if lost.is_empty() => {
                if let Some(version) = revision.acted_upon() {
                    self.acknowledgements.add(&revision.name, version);
                }
            }
            Outcome::Applied { revision, lost } => {
                let this = Rc::clone(self);
                // Ends when every worker has answered; at most one such task per assignment that takes a pod away.
                tokio::task::spawn_local(async move {
                    this.backends.close_idle(lost).await;
                    if let Some(version) = revision.closed() {
                        this.acknowledgements.add(&revision.name, version);
                    }
                });
            }
            Outcome::Repeated(revision) => {
                if let Some(version) = revision.acted_upon() {
                    self.acknowledgements.add(&revision.name, version);
                }
            }
            Outcome::Stale => {}
        }
    }

    async fn write(&self, mut writer: Writer<ActivatorWord>) -> Result<(), LinkError> {
        let mut closings = self.metering.closings();
        let mut next_second = self.metering.open_second();
        writer.send(&ActivatorWord::Hello(self.hello(next_second))).await?;
        loop {
            tokio::select! {
                revision = self.context.presence.next(&self.context.clock) => {
                    let (count, oldest_wait) = revision.tell();
                    let revision = revision.name.clone();
                    writer.send(&ActivatorWord::Present { revision, count, oldest_wait }).await?;
                }
                () = self.acknowledgements.added.notified() => {
                    for (revision, version) in self.acknowledgements.take() {
                        writer.send(&ActivatorWord::Acknowledged { revision, version }).await?;
                    }
                }
                // The sender lives as long as `self`.
                _ = closings.changed() => {
                    for (second, loads) in self.metering.since(next_second) {
                        next_second = second + 1;
                        writer.send(&ActivatorWord::Loads { second, loads }).await?;
                    }
                }
            }
        }
    }

    fn hello(&self, current_second: u64) -> ActivatorHello {
        let active = self.context.active.lock();
        let present = active.iter().map(|(name, revision)| (name.clone(), Arc::clone(revision)));
        let present: Vec<_> = present.collect();
        drop(active);
        ActivatorHello {
            speaks: LinkVersion::CURRENT,
            activator: self.context.name.clone(),
            boot: self.context.boot,
            current_second,
            history: self.metering.history(),
            present: present.into_iter().map(|(name, revision)| (name, revision.present())).collect(),
            routings: self.assignments.routings(),
        }
    }
}

/// Counts the link as up while it lives.
struct Connected(Arc<Context>);

impl Connected {
    fn new(context: &Arc<Context>) -> Self {
        context.metrics.link_connected.inc();
        Self(Arc::clone(context))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.metrics.link_connected.dec();
    }
}
