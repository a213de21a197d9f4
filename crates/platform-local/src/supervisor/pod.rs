//! One pod as the supervisor sees it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use orchestration::PodFacts;
use scaling::PodPhase;
use vocabulary::{LinkAddress, PodExits, PodName, QueueProxyAnnouncement, Timestamp};

use crate::pod::{PodMessage, SidecarProcess, Template};
use crate::supervisor::causes::StartCause;
use crate::supervisor::failure::PodTrouble;
use crate::supervisor::handover::records::{HandOverPod, StageRecord};
use crate::supervisor::restarts::{HEALTHY, Life};

/// Under which people and programs find the process of a pod.
const POD_PID: &str = "pod_pid";

/// The number of a template within its Service, from 1.
pub(crate) type TemplateNumber = u32;

/// One pod with its stage and all that is known of it.
#[derive(Clone, Debug)]
pub(crate) struct SupervisedPod {
    pub(crate) name: PodName,
    /// The number of the template that it runs.
    pub(crate) template: TemplateNumber,
    /// How far its life has come.
    pub(crate) stage: PodStage,
    /// Since when it says that it is ready, if it does.
    pub(crate) ready_since: Option<Timestamp>,
    /// Why it is in trouble.
    pub(crate) trouble: Option<PodTrouble>,
    /// How long its queue-proxy may drain.
    pub(crate) drain_limit: Duration,
    /// What its app has from TERM to KILL.
    app_grace: Duration,
    /// Why the pod is started, for the log.
    pub(crate) cause: Option<StartCause>,
    started: Timestamp,
    /// Why it has no process yet.
    waits: Option<StartWait>,
    /// When it was last seen to work: at its first answer, or after a time of health that is over.
    proved_at: Option<Timestamp>,
    announced: Option<QueueProxyAnnouncement>,
    details: BTreeMap<String, String>,
}

/// What a start waits for, although its pod is wanted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartWait {
    /// The cores: starts of other pods use them.
    Core,
    /// Memory, the end of another pod, or an image, as a sentence for people.
    Room(String),
}

/// How far a pod's life has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodStage {
    /// No process yet: its template failed, and it waits until then.
    Waiting {
        /// The moment at which the pod may start.
        until: Timestamp,
    },
    /// It has a process and is wanted.
    Serving,
    /// It is not wanted any more; activators are being told.
    Leaving {
        /// When it is ended even if they were not.
        until: Timestamp,
    },
    /// It was told to end, or ends by itself.
    Ending {
        /// When it is killed if it has not ended.
        until: Timestamp,
    },
    /// KILL was sent; its end is waited for.
    Killed,
}

impl SupervisedPod {
    /// A pod that waits for its start.
    pub(crate) fn waiting(name: PodName, template: TemplateNumber, until: Timestamp) -> Self {
        Self {
            name,
            template,
            stage: PodStage::Waiting { until },
            ready_since: None,
            trouble: None,
            drain_limit: Duration::ZERO,
            app_grace: Duration::ZERO,
            cause: None,
            started: until,
            waits: None,
            proved_at: None,
            announced: None,
            details: BTreeMap::new(),
        }
    }

    /// What another process needs to know of it; `None` if it is not handed over, because it was killed or
    /// has no process.
    pub(crate) fn record(&self, now: Timestamp) -> Option<HandOverPod> {
        let stage = match self.stage {
            PodStage::Serving => StageRecord::Serving,
            PodStage::Leaving { until } => StageRecord::Leaving { within: until.saturating_since(now) },
            PodStage::Ending { until } => StageRecord::Ending { within: until.saturating_since(now) },
            // A pod that only waits is started anew by the `ebb up` that takes over, and one that was killed
            // has nothing to be handed.
            PodStage::Waiting { .. } | PodStage::Killed => return None,
        };
        Some(HandOverPod {
            name: self.name.clone(),
            template: self.template,
            stage,
            started_before: now.saturating_since(self.started),
            ready_for: self.ready_since.map(|since| now.saturating_since(since)),
            trouble: self.trouble.as_ref().map(|trouble| trouble.whole.clone()),
            trouble_without_output: self.trouble.as_ref().map(|trouble| trouble.without_output.clone()),
            drain_limit: self.drain_limit,
            app_grace: Some(self.app_grace),
            announced: self.announced,
            proved_before: self.proved_at.map(|at| now.saturating_since(at)),
            details: self.details.clone(),
        })
    }

    /// The pod that another process had.
    pub(crate) fn taken_over(record: HandOverPod, now: Timestamp) -> Self {
        Self {
            name: record.name,
            template: record.template,
            // Spans become points on our own axis. The time that the handing over took is not counted against
            // any pod.
            stage: match record.stage {
                StageRecord::Serving => PodStage::Serving,
                StageRecord::Leaving { within } => PodStage::Leaving { until: now + within },
                StageRecord::Ending { within } => PodStage::Ending { until: now + within },
            },
            ready_since: record.ready_for.map(|span| now - span),
            trouble: PodTrouble::taken_over(record.trouble, record.trouble_without_output),
            drain_limit: record.drain_limit,
            app_grace: record.app_grace.unwrap_or_else(|| Template::default().app_grace()),
            cause: None,
            started: now - record.started_before,
            waits: None,
            proved_at: record.proved_before.map(|span| now - span),
            announced: record.announced,
            details: record.details,
        }
    }

    /// Whether it is among the pods that there should be.
    pub(crate) fn is_wanted(&self) -> bool {
        match self.stage {
            PodStage::Waiting { .. } | PodStage::Serving => true,
            PodStage::Leaving { .. } | PodStage::Ending { .. } | PodStage::Killed => false,
        }
    }

    /// Whether activators may know it, so that they must be told before it ends.
    pub(crate) fn is_known(&self) -> bool {
        self.announced.is_some()
    }

    /// Whether it has had a process. One that waits for its turn on the machine has none, whatever its stage.
    pub(crate) fn has_process(&self) -> bool {
        self.details.contains_key(POD_PID) || self.is_known()
    }

    /// Its process cannot be started yet; false if that is no news.
    pub(crate) fn note_waiting(&mut self, wait: &StartWait) -> bool {
        if self.waits.as_ref() == Some(wait) {
            return false;
        }
        self.waits = Some(wait.clone());
        true
    }

    /// Its process was started. Requests without a timeout may take `without_timeout` once it is to end.
    pub(crate) fn note_start(&mut self, now: Timestamp, template: &Template, without_timeout: Duration) {
        self.started = now;
        self.drain_limit = template.timeouts.drain_limit(without_timeout);
        self.app_grace = template.app_grace();
        self.stage = PodStage::Serving;
    }

    /// When it is killed if it is told to end now.
    pub(crate) fn killed_at(&self, now: Timestamp) -> Timestamp {
        now + self.longest_end()
    }

    /// How long its containers have from TERM to KILL.
    pub(crate) fn app_grace(&self) -> Duration {
        self.app_grace
    }

    /// How long its end may take: its queue-proxy drains, then its app ends.
    pub(crate) fn longest_end(&self) -> Duration {
        self.drain_limit + self.app_grace
    }

    /// What its process said of itself.
    pub(crate) fn note(&mut self, message: &PodMessage) {
        let mut detail = |name: &str, value: String| self.details.insert(name.to_owned(), value);
        match message {
            PodMessage::Started { app_pid, queue_proxy_pid, app_port, sidecars } => {
                for SidecarProcess { name, pid, port } in sidecars {
                    detail(&format!("container_{name}_pid"), pid.to_string());
                    detail(&format!("container_{name}_port"), port.to_string());
                }
                detail("app_pid", app_pid.to_string());
                detail("queue_proxy_pid", queue_proxy_pid.to_string());
                detail("app_port", app_port.to_string());
            }
            PodMessage::Announced(ports) => {
                detail("requests_port", ports.requests.to_string());
                detail("admin_port", ports.admin.to_string());
                detail("link_port", ports.link.to_string());
                detail("stat_port", ports.stat.to_string());
                detail("metrics_port", ports.metrics.to_string());
                self.announced = Some(*ports);
            }
            // Requests reach a pod that is ready all the same: its probe may ask another port, say.
            PodMessage::ListensElsewhere { trouble } => {
                if self.ready_since.is_none() {
                    self.trouble = trouble.as_deref().map(PodTrouble::from);
                }
            }
            // They become news of their own ([`PodNews`](super::fleet::PodNews)), a failure with the last
            // words; the first answer matters to the whole template.
            PodMessage::QueueProxyLogged { .. }
            | PodMessage::Failed { .. }
            | PodMessage::Killed { .. }
            | PodMessage::BeganInHostNetwork
            | PodMessage::ContainerRemoved
            | PodMessage::Answered => {}
        }
    }

    /// The process id of its `ebb pod`.
    pub(crate) fn note_pid(&mut self, pid: u32) {
        self.waits = None;
        self.details.insert(POD_PID.to_owned(), pid.to_string());
    }

    /// Its app answered its first request.
    pub(crate) fn note_answer(&mut self, now: Timestamp) {
        self.proved_at = Some(now);
    }

    /// It does not say any more that it is ready.
    pub(crate) fn note_unready(&mut self, now: Timestamp) {
        self.proved_at = self.proved_at(now);
        self.ready_since = None;
    }

    /// When it was last seen to work, if it ever was: it answered a request, or was healthy for long enough.
    pub(crate) fn proved_at(&self, now: Timestamp) -> Option<Timestamp> {
        let healthy = self.ready_since.map(|since| since + HEALTHY).filter(|at| *at <= now);
        self.proved_at.max(healthy)
    }

    /// What its failure means for its successors.
    pub(crate) fn life(&self) -> Life {
        Life { started: self.started, ready_since: self.ready_since }
    }

    /// The pod as the platform's users see it. `hold` says why no request should wait for one of its
    /// template.
    pub(crate) fn facts(&self, present_template: TemplateNumber, hold: Option<&str>) -> PodFacts {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let phase = match self.stage {
            PodStage::Waiting { .. } => PodPhase::Pending,
            PodStage::Serving if self.announced.is_none() => PodPhase::Pending,
            PodStage::Serving => PodPhase::Running,
            PodStage::Leaving { .. } | PodStage::Ending { .. } | PodStage::Killed => PodPhase::Terminating,
        };
        let waits_for_room = || match &self.waits {
            Some(StartWait::Room(reason)) => Some(reason.clone()),
            Some(StartWait::Core) | None => None,
        };
        PodFacts {
            name: self.name.clone(),
            phase,
            leaving: !self.is_wanted(),
            ends_in: None,
            platform_ready: None,
            requests: self.announced.map(|ports| local(ports.requests)),
            exits: PodExits::default(),
            link: self
                .announced
                .map(|ports| LinkAddress { token: ports.link_token, ..local(ports.link).into() }),
            adoption: None,
            outdated: self.template != present_template,
            awaits_core: self.is_wanted() && self.waits == Some(StartWait::Core),
            trouble: self.trouble.as_ref().map(|trouble| trouble.whole.clone()).or_else(waits_for_room),
            trouble_without_output: self.trouble.as_ref().map(|trouble| trouble.without_output.clone()),
            hold: hold.filter(|_| self.is_wanted() && self.ready_since.is_none()).map(str::to_owned),
            details: self.details.clone(),
        }
    }
}
