//! What is shared by everything that runs in one queue-proxy, its small servers, and its drain.

use std::cell::Cell;
use std::future::Future;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use dataplane::{
    Drain, MemoryBudget, PageService, ServerLimits, Service, Tracer, Upstreams, serve, serve_pages,
};
use runtime::{Clock, PageListener, PagePlaces, TrustedHosts, vital};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};
use vocabulary::{Departure, PodName, ResourceUsage, drain_limit_within};

use crate::adopted::AdoptedClients;
use crate::app_life::AppLife;
use crate::config::Config;
use crate::health::Health;
use crate::link::LinkServer;
use crate::load::LoadBook;
use crate::metrics::QueueProxyMetrics;
use crate::own_peers::OwnPeers;
use crate::pages::{PodAdminPages, PodMetricsPages, StatPages};
use crate::settings::OwnerSettings;

/// How long a client may take to read one of the last pages. They are small and fit any socket, so only a
/// client that is gone, or means ill, takes longer.
const LAST_PAGES_MAX: Duration = Duration::from_secs(1);

/// The parts of one queue-proxy that its servers and tasks share.
pub(super) struct ProxyParts {
    pub(super) load: Rc<LoadBook>,
    pub(super) usage: Rc<Cell<Option<ResourceUsage>>>,
    pub(super) life: Rc<AppLife>,
    pub(super) health: Rc<Health>,
    pub(super) settings: Rc<OwnerSettings>,
    pub(super) adopted: Rc<AdoptedClients>,
    /// The pool of connections to the app.
    pub(super) upstreams: Upstreams,
    pub(super) metrics: Rc<QueueProxyMetrics>,
    pub(super) drain: Drain,
    pub(super) pages: PodPages,
    pub(super) tracer: Tracer,
    pub(super) memory: &'static MemoryBudget,
    pub(super) leaving: CancellationToken,
    pub(super) left: CancellationToken,
}

/// The drain and the places that all small pages share.
pub(super) struct PodPages {
    /// The drain of the connections to the small pages.
    pub(super) drain: Drain,
    pub(super) places: PagePlaces,
}

impl ProxyParts {
    /// Runs the drain from its beginning to its end: report it, serve the requests that still come, and close
    /// when no client and no activator needs this pod any more.
    pub(super) async fn run_drain(&self, config: &Config, clock: Clock) {
        // Cancelling loses nothing: leaving is a state.
        tokio::select! {
            () = self.leaving.cancelled() => {}
            // The owner may know before this process that the platform ends the pod.
            () = self.settings.leaving() => self.leaving.cancel(),
        }
        self.health.set_draining();
        self.drain.begin();
        debug!(in_flight = self.load.held(), "draining");
        let quiet = async {
            self.settings.unknown_to_clients(config.drain_linger, clock).await;
            // An activator closes its connections itself, so that none of its requests meets a closed one.
            loop {
                self.load.emptied().await;
                self.drain.until(|drain| drain.hop_connections() == 0 || self.load.held() > 0).await;
                if self.load.held() == 0 {
                    break;
                }
            }
            self.drain.stop_accepting();
            self.drain.close_idle();
            self.drain.finished().await;
            // The app is told to stop after that, and adopted connections lead to the app past this process.
            self.adopted.until_unused().await;
        };
        // Cancelling the drain is what its limit is for; otherwise the limit is of no use any more.
        tokio::select! {
            () = quiet => debug!("drained"),
            () = self.out_of_time(config, clock) => {
                warn!(in_flight = self.load.held(), "the drain took too long; ending with requests in flight");
            }
        }
        self.left.cancel();
        self.finish_pages().await;
    }

    /// Waits until a drain that begins now has taken as long as it may. The owner may say, also later, that
    /// the platform leaves less time than that.
    async fn out_of_time(&self, config: &Config, clock: Clock) {
        let mut ends_at = clock.now() + config.drain_limit;
        let mut known = Departure::NotPlanned;
        loop {
            // Cancelling loses nothing: the owner's word is a state, and the end is a time.
            tokio::select! {
                () = clock.sleep_until(ends_at) => return,
                departure = self.settings.departure_other_than(known) => {
                    known = departure;
                    match departure {
                        Departure::Leaving { within } => {
                            ends_at = ends_at.min(clock.now() + drain_limit_within(within, config.app_grace));
                        }
                        Departure::NotPlanned | Departure::Released => {}
                    }
                }
            }
        }
    }

    /// Answers the clients that wait for the end of the drain: the small pages finish the requests that they
    /// have, and take no more. A client that does not read its answer must not keep the process.
    async fn finish_pages(&self) {
        let pages = &self.pages.drain;
        pages.begin();
        pages.stop_accepting();
        pages.close_idle();
        if tokio::time::timeout(LAST_PAGES_MAX, pages.finished()).await.is_err() {
            warn!(
                connections = pages.connections(),
                "some clients did not read the last pages in time; ending without them"
            );
        }
    }

    pub(super) fn serve_beside(&self, listener: TcpListener, pages: Rc<impl PageService>) -> LocalTask {
        let (drain, memory) = (self.pages.drain.clone(), self.memory);
        let door = PageListener::new(listener, &self.pages.places);
        LocalTask::new(async move {
            match door {
                Ok(door) => serve_pages(door, pages, drain, memory).await,
                Err(error) => error!(%error, "a listener could not be served"),
            }
        })
    }

    pub(super) fn admin_pages(
        &self,
        clock: Clock,
        trusted: TrustedHosts,
        own_peers: Rc<OwnPeers>,
    ) -> Rc<PodAdminPages> {
        Rc::new(PodAdminPages {
            trusted,
            own_peers,
            health: Rc::clone(&self.health),
            clock,
            leaving: self.leaving.clone(),
            left: self.left.clone(),
        })
    }

    pub(super) fn stat_pages(&self, config: &Config) -> Rc<StatPages> {
        Rc::new(StatPages {
            // As Knative's reports it: without its namespace.
            pod: PodName::new(&config.logged_as.pod_name),
            load: Rc::clone(&self.load),
            trusted: config.trusted.clone(),
        })
    }

    pub(super) fn metrics_pages(&self, config: &Config) -> Rc<PodMetricsPages> {
        Rc::new(PodMetricsPages {
            metrics: Rc::clone(&self.metrics),
            load: Rc::clone(&self.load),
            health: Rc::clone(&self.health),
            drain: self.drain.clone(),
            memory: self.memory,
            trusted: config.trusted.clone(),
        })
    }
}

/// A task of this process; it ends when this is dropped.
pub(super) struct LocalTask(tokio::task::JoinHandle<()>);

impl LocalTask {
    pub(super) fn new(work: impl Future<Output = ()> + 'static) -> Self {
        Self(tokio::task::spawn_local(vital("a part of the queue-proxy", work)))
    }

    /// Accepts links until the process ends.
    pub(super) fn of_link(server: LinkServer, listener: TcpListener) -> Self {
        let listener = tokio::net::TcpListener::from_std(listener);
        let listener = listener.expect("a bound listener can be registered");
        Self::new(async move { server.serve(listener).await })
    }

    pub(super) fn of_server<S: Service>(
        listener: TcpListener,
        service: Rc<S>,
        drain: &Drain,
        memory: &'static MemoryBudget,
    ) -> Self {
        let drain = drain.clone();
        Self::new(async move {
            let limits = ServerLimits { memory, ..ServerLimits::default() };
            if let Err(error) = serve(listener, service, drain, limits).await {
                error!(%error, "a listener could not be served");
            }
        })
    }
}

impl Drop for LocalTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
