//! This pod's end of its link to the autoscaler: its reports and the owner's settings.
//!
//! The autoscaler calls. A new call replaces the old one, and a lost link changes nothing: the pod serves on
//! with what it was told last.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use dataplane::Upstreams;
use link::{AcceptedLink, Acceptor, LinkAccess, LinkError, PodOrder, RefusedLinks};
use runtime::Clock;
use tokio::net::TcpListener;
use tracing::{debug, info};
use vocabulary::{BootId, LinkVersion, PodHello, PodName, PodState, PodWord, RequestTimeouts, ResourceUsage};

use crate::adopted::AdoptedClients;
use crate::config::ReadinessJudge;
use crate::health::Health;
use crate::load::LoadBook;
use crate::settings::OwnerSettings;

/// How often a present count is reported that is above the surge threshold, or has just fallen below it.
const PRESENT_EVERY: Duration = Duration::from_millis(100);

/// What the link reports from, and what its orders change.
pub(crate) struct LinkServer {
    pub(crate) access: LinkAccess,
    pub(crate) refused: RefusedLinks,
    pub(crate) pod: PodName,
    pub(crate) boot: BootId,
    pub(crate) container_concurrency: u32,
    pub(crate) timeouts: RequestTimeouts,
    pub(crate) clock: Clock,
    pub(crate) load: Rc<LoadBook>,
    /// What the app used lately, until it is reported.
    pub(crate) usage: Rc<Cell<Option<ResourceUsage>>>,
    pub(crate) health: Rc<Health>,
    pub(crate) judge: ReadinessJudge,
    pub(crate) settings: Rc<OwnerSettings>,
    pub(crate) adopted: Rc<AdoptedClients>,
    /// The pool of connections to the app, for its count of late bytes.
    pub(crate) upstreams: Upstreams,
}

impl LinkServer {
    /// Accepts links, and serves one at a time, until the process ends.
    pub(crate) async fn serve(&self, listener: TcpListener) {
        let mut acceptor: Acceptor<PodOrder, PodWord> =
            Acceptor::new(listener, self.access.clone(), self.refused.clone());
        let mut call = None;
        loop {
            let serving = async {
                match call.as_mut() {
                    Some(accepted) => self.serve_link(accepted).await,
                    None => pending().await,
                }
            };
            // One conversation at a time: an autoscaler that lost its link without a goodbye calls again, and
            // its old connection may look alive for a while.
            call = self.serve_until_replaced(serving, &mut acceptor).await;
        }
    }

    /// Serves the present link until it ends, which returns `None`, or until another link is accepted.
    async fn serve_until_replaced(
        &self,
        serving: impl Future<Output = Result<(), LinkError>>,
        acceptor: &mut Acceptor<PodOrder, PodWord>,
    ) -> Option<AcceptedLink<PodOrder, PodWord>> {
        tokio::pin!(serving);
        loop {
            // Cancel-safe: the acceptor keeps connections that are not links yet, and the work on the present
            // link is pinned outside and goes on.
            tokio::select! {
                accepted = acceptor.accept() => {
                    // An owner that hangs and dials on would take the link from its successor again and
                    // again.
                    if self.is_from_a_former_owner(&accepted.first) {
                        debug!("a former owner opened a link and is refused; the present owner's link stays");
                        continue;
                    }
                    debug!("the autoscaler opened a link");
                    self.execute(&accepted.first);
                    return Some(accepted);
                }
                ended = &mut serving => {
                    match ended {
                        Ok(()) => debug!("the autoscaler closed its link"),
                        Err(error) => info!(error = &error as &dyn std::error::Error, "the link was lost"),
                    }
                    return None;
                }
            }
        }
    }

    async fn serve_link(&self, call: &mut AcceptedLink<PodOrder, PodWord>) -> Result<(), LinkError> {
        let AcceptedLink { reader, writer, .. } = call;
        let mut reported_version = self.health.version();
        let mut next_second = self.load.current_second();
        let mut next_present = self.clock.now();
        // Nothing was, on this link: an owner that took over is told which settings are in force.
        let mut acknowledged = None;
        // Nor was anything of connections, which are told as they are now.
        let mut reported_adopted = 0;
        writer.send(&PodWord::Hello(self.hello())).await?;
        loop {
            let surge_count = async {
                // The pace is part of the wait, so a change that comes too early is reported a moment later
                // and not lost.
                self.clock.sleep_until(next_present).await;
                self.load.surge_count().await
            };
            // Cancel-safe: half a frame stays in the reader, and the others wait for states. Messages are
            // written in the arms' bodies, which are not cancelled.
            tokio::select! {
                order = reader.next() => match order? {
                    Some(order) => self.execute(&order),
                    None => return Ok(()),
                },
                version = self.settings.other_than(acknowledged) => {
                    acknowledged = Some(version);
                    writer.send(&PodWord::SettingsAcknowledged(version)).await?;
                }
                news = self.adopted.news(reported_adopted) => {
                    reported_adopted = news.version;
                    writer.send(&PodWord::Adopted(news.connections)).await?;
                }
                () = self.health.newer_than(reported_version) => {
                    reported_version = self.health.version();
                    let (state, detail) = (self.state(), self.health.detail());
                    writer.send(&PodWord::State { state, detail }).await?;
                }
                () = self.load.completed(next_second) => {
                    for sample in self.load.seconds_from(next_second) {
                        next_second = sample.second + 1;
                        let (usage, late_bytes) = (self.usage.take(), self.upstreams.late_bytes());
                        writer.send(&PodWord::Load { sample, usage, late_bytes }).await?;
                    }
                }
                count = surge_count => {
                    next_present = self.clock.now() + PRESENT_EVERY;
                    writer.send(&PodWord::Present(count)).await?;
                }
            }
        }
    }

    /// Whether the first order of a link has an older epoch than the settings in force.
    fn is_from_a_former_owner(&self, first: &PodOrder) -> bool {
        match first {
            PodOrder::Settings(settings) => {
                self.settings.epoch().is_some_and(|epoch| settings.version.epoch < epoch)
            }
            PodOrder::Heartbeat => false,
        }
    }

    fn execute(&self, order: &PodOrder) {
        match order {
            PodOrder::Settings(settings) => {
                if self.settings.set(settings) {
                    self.load.set_surge_threshold(settings.surge_threshold);
                }
            }
            PodOrder::Heartbeat => {}
        }
    }

    /// The state to report. Where the platform judges readiness, a ready app is reported as unheard.
    fn state(&self) -> PodState {
        match (self.judge, self.health.state()) {
            (ReadinessJudge::Platform, PodState::Ready) => PodState::Unheard,
            (ReadinessJudge::QueueProxy | ReadinessJudge::Platform, state) => state,
        }
    }

    fn hello(&self) -> PodHello {
        PodHello {
            speaks: LinkVersion::CURRENT,
            pod: self.pod.clone(),
            boot: self.boot,
            state: self.state(),
            detail: self.health.detail(),
            container_concurrency: self.container_concurrency,
            timeouts: self.timeouts,
            current_second: self.load.current_second(),
            history: self.load.seconds_from(0),
        }
    }
}
