//! Which pods should one revision have?
//!
//! As many of its present template as are wanted. While pods of an older template still serve, that is a
//! rollout: one new pod starts first, so that a bad template crashes once and not everywhere; the rest follow
//! when that one is ready, and one old pod leaves for each new pod that is ready, so the revision never has
//! fewer pods that work than wanted. Old pods that have no process by then are not started any more: their
//! starts are the new template's. A new template that never gets ready leaves the old one serving, and
//! growing with the load.

mod facts;
mod pod_news;
mod record;
mod templates;

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::{PodFailure, PodKill, RELEASE_AFTER, RouteInForce};
use scaling::RevisionOrigin;
use vocabulary::{HopKey, PodCount, PodName, Timestamp, format_duration};

use crate::manifest::ManifestService;
use crate::pod::{PodSpec, Template};
use crate::supervisor::causes::{StartCause, StartCauses};
use crate::supervisor::identities::PodNames;
use crate::supervisor::pod::{PodStage, SupervisedPod, TemplateNumber};
use crate::supervisor::queue_proxy_settings::QueueProxySettings;
use crate::supervisor::restarts::Restarts;
use crate::supervisor::starts::Siblings;

/// An action of the supervisor on the process of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Start the process of a pod.
    Start {
        pod: PodName,
        /// The other pods of its revision that are wanted and start or run.
        siblings: Siblings,
        spec: Box<PodSpec>,
    },
    /// Tell it to drain and end.
    Terminate(PodName),
    /// End it at once, with everything that came from it.
    Kill(PodName),
}

/// The order to have so many pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountOrder {
    pub(crate) count: PodCount,
    /// Which to end first if some must end.
    pub(crate) end_first: Vec<PodName>,
    /// Why so many pods are wanted, in one sentence.
    pub(crate) why: String,
}

/// What a look at one revision may touch outside of it.
#[derive(Debug)]
pub(crate) struct RevisionSurroundings<'a> {
    pub(crate) now: Timestamp,
    /// The actions that result are added here.
    pub(crate) actions: &'a mut Vec<Action>,
    /// The source of names for new pods.
    pub(crate) names: &'a mut PodNames,
}

/// One Service and its pods.
#[derive(Debug)]
pub(crate) struct SupervisedRevision {
    /// The Service as its manifest has it now.
    pub(crate) service: ManifestService,
    /// Hosts besides its own, such as `localhost` for the only Service.
    pub(crate) more_hosts: Vec<String>,
    /// How many pods there should be.
    pub(crate) wanted: PodCount,
    /// The settings of queue-proxies of new pods. A pod keeps the settings with which it was started.
    pub(crate) of_new_pods: QueueProxySettings,
    /// Whether it is being taken down: its Service is gone from the files, or everything ends.
    pub(crate) is_going: bool,
    /// An autoscaler that comes later is to keep what it finds once there was something: an order, or a pod
    /// that was ready.
    origin: RevisionOrigin,
    /// The route that was ordered last.
    pub(crate) route: Option<RouteInForce>,
    hop_keys: Vec<HopKey>,
    /// The templates that pods run, and the present one.
    templates: BTreeMap<TemplateNumber, Template>,
    /// The number of the template in the manifest: new pods run it.
    present: TemplateNumber,
    /// The template in the manifest before its last edit; `None` if the template was never edited.
    former_template: Option<Template>,
    numbers_given: TemplateNumber,
    restarts: BTreeMap<TemplateNumber, Restarts>,
    pods: BTreeMap<PodName, SupervisedPod>,
    end_first: Vec<PodName>,
    last_failure: Option<PodFailure>,
    last_kill: Option<PodKill>,
    /// Whether pods of an edited template are still to take over from older ones.
    is_rolling: bool,
    rolled_out: Option<String>,
    causes: StartCauses,
}

impl SupervisedRevision {
    /// A new revision with `wanted` pods to begin with.
    pub(crate) fn new(service: ManifestService, wanted: PodCount, hop_key: HopKey) -> Self {
        let templates = [(1, service.template.clone())].into();
        Self {
            service,
            more_hosts: Vec::new(),
            wanted,
            of_new_pods: QueueProxySettings::default(),
            is_going: false,
            origin: RevisionOrigin::New,
            route: None,
            hop_keys: vec![hop_key],
            templates,
            present: 1,
            former_template: None,
            numbers_given: 1,
            restarts: BTreeMap::new(),
            pods: BTreeMap::new(),
            end_first: Vec::new(),
            last_failure: None,
            last_kill: None,
            is_rolling: false,
            rolled_out: None,
            causes: StartCauses::new(beginning(wanted)),
        }
    }

    /// Its Service, which was gone, is there again: it begins anew.
    pub(crate) fn come_back(&mut self, service: ManifestService, wanted: PodCount) {
        self.is_going = false;
        self.wanted = wanted;
        self.causes.note_count(beginning(wanted));
        self.origin = RevisionOrigin::New;
        self.edit(service);
    }

    /// Takes an order. A wake from zero is attempted at once, whatever failed before.
    pub(crate) fn scale_to(&mut self, order: CountOrder) {
        let CountOrder { count, end_first, why } = order;
        // A request waits. The cause of an earlier failure may be mended by now, and a wait of minutes would
        // be the answer to it.
        if self.wanted == PodCount::ZERO && count > PodCount::ZERO {
            self.restarts.remove(&self.present);
        }
        self.causes.note_count(why);
        self.wanted = count;
        self.origin = RevisionOrigin::Found;
        self.end_first = end_first;
    }

    /// The pod with this name, if the revision has it.
    pub(crate) fn pod_mut(&mut self, name: &PodName) -> Option<&mut SupervisedPod> {
        self.pods.get_mut(name)
    }

    /// Why one of its pods is started.
    pub(crate) fn start_cause(&self, name: &PodName) -> Option<&StartCause> {
        self.pods.get(name)?.cause.as_ref()
    }

    /// Whether it has the pod.
    pub(crate) fn has(&self, name: &PodName) -> bool {
        self.pods.contains_key(name)
    }

    /// Whether it has no pod that serves or starts.
    pub(crate) fn is_asleep(&self) -> bool {
        !self.is_going && !self.pods.values().any(|pod| pod.stage == PodStage::Serving)
    }

    /// Tells those to end that were told before, by another process: it may not have come to it.
    pub(crate) fn repeat_orders(&self, actions: &mut Vec<Action>) {
        let ending = self.pods.values().filter(|pod| matches!(pod.stage, PodStage::Ending { .. }));
        actions.extend(ending.map(|pod| Action::Terminate(pod.name.clone())));
    }

    /// Whether nothing of it is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_going && self.pods.is_empty()
    }

    /// Activators know that the pod leaves.
    pub(crate) fn release(&mut self, name: &PodName, around: &mut RevisionSurroundings<'_>) {
        if let Some(pod) = self.pods.get_mut(name)
            // The word may come twice, or after the pod has failed; only one that waits for it is told to
            // end.
            && matches!(pod.stage, PodStage::Leaving { .. })
        {
            pod.stage = PodStage::Ending { until: pod.killed_at(around.now) };
            around.actions.push(Action::Terminate(name.clone()));
        }
    }

    /// Does all that is to be done at this moment: starts and ends pods so that those are there that should
    /// be, and keeps deadlines.
    pub(crate) fn advance(&mut self, around: &mut RevisionSurroundings<'_>) {
        self.keep_deadlines(around);
        let target = if self.is_going { 0 } else { self.wanted.as_usize() };
        self.cancel_replaced_starts(around);
        let (present, old) = self.wanted_pods();
        let ready = present.iter().filter(|pod| pod.ready_since.is_some()).count();
        let (present_count, old_count) = (present.len(), old.len());
        let last_old = old.iter().map(|pod| pod.template).max();
        let old_target = target.saturating_sub(ready);
        if old_count > old_target {
            let pods_to_end = self.choose_pods_to_end(old_count - old_target, TemplateAge::Old);
            self.begin_ending(&pods_to_end, around);
        } else if let Some(template) = last_old
            && ready == 0
        {
            self.add(old_target - old_count, template, around);
        }
        let first = if old_count > 0 && ready == 0 { target.min(1) } else { target };
        if present_count > target {
            let pods_to_end = self.choose_pods_to_end(present_count - target, TemplateAge::Present);
            self.begin_ending(&pods_to_end, around);
        } else {
            self.add(first.saturating_sub(present_count), self.present, around);
        }
        self.causes.settle();
        // Said once, and only of an edit: pods that come and go by their number are no news.
        if self.is_rolling && ready > 0 && self.wanted_pods().1.is_empty() {
            self.is_rolling = false;
            self.rolled_out = Some(self.template_name(self.present));
        }
    }

    /// The name of a template whose pods have taken over from all older ones, once.
    pub(crate) fn take_rolled_out(&mut self) -> Option<String> {
        self.rolled_out.take()
    }

    /// When [`SupervisedRevision::advance`] is due at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let deadline = |pod: &SupervisedPod| match pod.stage {
            PodStage::Waiting { until } | PodStage::Leaving { until } | PodStage::Ending { until } => {
                Some(until)
            }
            PodStage::Serving | PodStage::Killed => None,
        };
        self.pods.values().filter_map(deadline).min()
    }

    /// Ends every pod at once.
    pub(crate) fn kill(&mut self, actions: &mut Vec<Action>) {
        self.is_going = true;
        // Those have no process whose end would take them away.
        self.pods.retain(|_, pod| !matches!(pod.stage, PodStage::Waiting { .. }));
        for pod in self.pods.values_mut() {
            pod.stage = PodStage::Killed;
            actions.push(Action::Kill(pod.name.clone()));
        }
    }

    /// Ends the wait for activators, as no autoscaler is left to tell them.
    pub(crate) fn release_all(&mut self, around: &mut RevisionSurroundings<'_>) {
        let leaving = self.pods.values().filter(|pod| matches!(pod.stage, PodStage::Leaving { .. }));
        let names: Vec<PodName> = leaving.map(|pod| pod.name.clone()).collect();
        for name in names {
            self.release(&name, around);
        }
    }

    fn template_name(&self, number: TemplateNumber) -> String {
        let given = self.templates.get(&number).and_then(|template| template.name.clone());
        given.unwrap_or_else(|| format!("{}-{number:05}", self.service.name.name()))
    }

    /// The wanted pods of the present template, and those of older ones.
    fn wanted_pods(&self) -> (Vec<&SupervisedPod>, Vec<&SupervisedPod>) {
        let wanted = self.pods.values().filter(|pod| pod.is_wanted());
        wanted.partition(|pod| pod.template == self.present)
    }

    /// The longest that one of its pods may drain, of those that are there and of the next.
    pub(crate) fn longest_drain(&self) -> Duration {
        let next = self.service.template.timeouts.drain_limit(self.of_new_pods.drain_limit);
        self.pods.values().map(|pod| pod.drain_limit).fold(next, Duration::max)
    }

    /// The longest that the end of one of its pods may take.
    pub(crate) fn longest_end(&self) -> Duration {
        self.pods.values().map(SupervisedPod::longest_end).max().unwrap_or_default()
    }

    /// The longest that a container of one of its pods has from TERM to KILL.
    pub(crate) fn longest_grace(&self) -> Duration {
        self.pods.values().map(SupervisedPod::app_grace).max().unwrap_or_default()
    }

    fn keep_deadlines(&mut self, around: &mut RevisionSurroundings<'_>) {
        let now = around.now;
        let due: Vec<PodName> = self
            .pods
            .values()
            .filter(|pod| match pod.stage {
                PodStage::Waiting { until } | PodStage::Leaving { until } | PodStage::Ending { until } => {
                    until <= now
                }
                PodStage::Serving | PodStage::Killed => false,
            })
            .map(|pod| pod.name.clone())
            .collect();
        for name in due {
            match self.pods[&name].stage {
                PodStage::Waiting { .. } if !self.is_going => self.start(&name, around),
                PodStage::Leaving { .. } => self.release(&name, around),
                PodStage::Ending { .. } => {
                    let pod = self.pods.get_mut(&name).expect("it is due");
                    pod.stage = PodStage::Killed;
                    let limit = format_duration(pod.longest_end());
                    self.note_kill(
                        &name,
                        format!("it had not ended {limit} after it began to, and was killed"),
                        now,
                    );
                    around.actions.push(Action::Kill(name));
                }
                PodStage::Waiting { .. } | PodStage::Serving | PodStage::Killed => {}
            }
        }
    }

    fn add(&mut self, count: usize, template: TemplateNumber, around: &mut RevisionSurroundings<'_>) {
        let (not_before, reason) = match self.restarts.get(&template) {
            Some(restarts) => (restarts.not_before(), restarts.reason().cloned()),
            None => (Timestamp::ZERO, None),
        };
        let takes_over = template == self.present && !self.wanted_pods().1.is_empty();
        for _ in 0..count {
            let template_name = self.template_name(template);
            let cause = self.causes.next(takes_over.then_some(&template_name));
            let name = around.names.next(&template_name);
            let mut pod = SupervisedPod::waiting(name.clone(), template, not_before);
            pod.cause = Some(cause);
            pod.trouble.clone_from(&reason);
            self.pods.insert(name.clone(), pod);
            if not_before <= around.now {
                self.start(&name, around);
            }
        }
    }

    /// Once the present template has a pod that is ready, older ones are not started any more.
    fn cancel_replaced_starts(&mut self, around: &mut RevisionSurroundings<'_>) {
        let (present, old) = self.wanted_pods();
        if present.iter().any(|pod| pod.ready_since.is_some()) {
            let waiting = old.into_iter().filter(|pod| !pod.has_process());
            let waiting: Vec<PodName> = waiting.map(|pod| pod.name.clone()).collect();
            self.begin_ending(&waiting, around);
        }
    }

    fn start(&mut self, name: &PodName, around: &mut RevisionSurroundings<'_>) {
        let template = self.pods[name].template;
        let serving = self.pods.values().filter(|pod| pod.stage == PodStage::Serving);
        let (same, other): (Vec<_>, Vec<_>) = serving.partition(|pod| pod.template == template);
        let siblings = Siblings { all: same.len() + other.len(), of_template: same.len() };
        let pod = self.pods.get_mut(name).expect("only called for pods that are there");
        let QueueProxySettings { drain_limit, ignored_user_agents } = self.of_new_pods.clone();
        pod.note_start(around.now, &self.templates[&template], drain_limit);
        let spec = PodSpec {
            pod: name.as_str().to_owned(),
            namespace: self.service.name.namespace().to_owned(),
            service: self.service.name.name().to_owned(),
            revision: self.template_name(template),
            template: self.templates[&template].clone(),
            drain_limit,
            ignored_user_agents,
            descriptors: None,
            control_group: None,
            images: None,
        };
        around.actions.push(Action::Start { pod: name.clone(), siblings, spec: Box::new(spec) });
    }

    /// Which pods to end: those without a process first, then those that are not ready, each in the order of
    /// the last scale order, then the youngest.
    fn choose_pods_to_end(&self, count: usize, age: TemplateAge) -> Vec<PodName> {
        let (present, old) = self.wanted_pods();
        let mut candidates = match age {
            TemplateAge::Present => present,
            TemplateAge::Old => old,
        };
        let ordered = |pod: &SupervisedPod| {
            self.end_first.iter().position(|name| *name == pod.name).unwrap_or(usize::MAX)
        };
        // Pods whose end costs nothing come first: those without a process, then those that are not ready,
        // then those that the autoscaler has named because they hold least; of equals the youngest.
        candidates.sort_by_key(|pod| {
            (pod.has_process(), pod.ready_since.is_some(), ordered(pod), std::cmp::Reverse(pod.name.clone()))
        });
        candidates.truncate(count);
        candidates.into_iter().map(|pod| pod.name.clone()).collect()
    }

    fn begin_ending(&mut self, pods_to_end: &[PodName], around: &mut RevisionSurroundings<'_>) {
        for name in pods_to_end {
            let pod = self.pods.get_mut(name).expect("chosen from its pods");
            let is_to_be_started = !matches!(pod.stage, PodStage::Waiting { .. });
            let is_known = pod.is_known();
            // Activators may be sending it a request right now. It ends once each has said that it picks it
            // no more, or when that has taken too long.
            pod.stage = PodStage::Leaving { until: around.now + RELEASE_AFTER };
            if !is_to_be_started {
                self.pods.remove(name);
            } else if !is_known {
                // Its address was never published, so no request can be on its way to it.
                self.release(name, around);
            }
        }
    }
}

/// Why a new revision has its first pods.
fn beginning(count: PodCount) -> String {
    format!("initial scale {count}")
}

#[derive(Clone, Copy, Debug)]
enum TemplateAge {
    Present,
    Old,
}
