//! Why does a program of ebb's own not start? Its pods say it: an image that no node can pull, a container
//! that ends with last words, a node that is missing; or its Deployment, where no pod can be made.
//!
//! Such a cause comes first in a report. What is amiss because of it is counted and not told, so that a
//! reader does not mend consequences.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kube::api::ListParams;

use super::findings::{CheckFinding, CheckFindings};
use crate::cluster::Cluster;

/// The program without which the others wait: it makes their Secrets.
pub(super) const AUTOSCALER: &str = "autoscaler";
/// Programs whose pods take each other's place, each with what is amiss without it.
pub(super) const PROGRAMS: [(&str, &str); 3] = [
    (AUTOSCALER, "no count changes"),
    ("activator", "requests at zero are refused"),
    ("injector", "pods that ask for a queue-proxy cannot be made"),
];
/// The label by which the pods of ebb's programs say which program they are.
const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// The label of everything of ebb's own.
const SELECTED: &str = "app.kubernetes.io/name=ebb";
/// Why kubelet waits with a container whose image it does not have.
const IMAGE_REASONS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];
/// Why kubelet waits with a container that is about to be made, which says nothing about a failure.
const ORDINARY_REASONS: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// Of the last words of a container a report shows at most so many characters.
const WORDS_MAX: usize = 600;

/// A program of which no pod is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StartFailure {
    program: &'static str,
    /// The cause and its cure; `None` where pods just wait, as others do for the autoscaler's Secrets.
    cause: Option<StartObstacle>,
}

/// Why the pods of a program do not start, in words of the platform, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StartObstacle {
    words: String,
    cure: String,
}

/// The programs that do not start.
#[derive(Debug, Default)]
pub(super) struct StartFailures {
    failures: Vec<StartFailure>,
    /// Programs that serve, with pods that do not start: those of a rollout that goes no further.
    stalled: Vec<(&'static str, StartObstacle)>,
}

impl StartFailures {
    /// Asks for the Deployments of ebb's programs and for their pods. What may not be read is no failure
    /// here; the findings about the Deployments say so.
    pub(super) async fn find(cluster: &Cluster) -> Self {
        let selected = ListParams::default().labels(SELECTED);
        let (deployments, pods) = (cluster.system_api::<Deployment>(), cluster.system_api::<Pod>());
        let found = tokio::join!(deployments.list(&selected), pods.list(&selected));
        match found {
            (Ok(deployments), Ok(pods)) => Self::of(&deployments.items, &pods.items, &cluster.system),
            (Err(_), _) | (_, Err(_)) => Self::default(),
        }
    }

    fn of(deployments: &[Deployment], pods: &[Pod], system: &str) -> Self {
        let mut found = Self::default();
        for (program, _) in PROGRAMS {
            let mut named = deployments.iter().filter(|one| one.metadata.name.as_deref() == Some(program));
            let Some(deployment) = named.next() else { continue };
            let mut own = pods.iter().filter(|pod| is_of(pod, program));
            let of_pods = own.find_map(|pod| of_pod(pod, program, system));
            let cause = of_pods.or_else(|| of_deployment(deployment, system));
            if ready_pods(deployment) == 0 {
                found.failures.push(StartFailure { program, cause });
            } else if let Some(cause) = cause {
                found.stalled.push((program, cause));
            }
        }
        found
    }

    /// Whether one of the programs has a cause of its own.
    pub(super) fn has_cause(&self) -> bool {
        self.failures.iter().any(|failure| failure.cause.is_some())
    }

    /// One finding for each cause, with the programs that it keeps from starting.
    pub(super) fn causes(&self) -> Vec<CheckFinding> {
        let mut told: Vec<(&StartObstacle, Vec<&str>)> = Vec::new();
        for StartFailure { program, cause } in &self.failures {
            let Some(cause) = cause else { continue };
            match told.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, programs)) => programs.push(*program),
                None => told.push((cause, vec![*program])),
            }
        }
        let finding = |(cause, programs): (&StartObstacle, Vec<&str>)| {
            let what = format!("{} can start", programs.join(", "));
            CheckFinding::wrong(what, format!("{}; {}", cause.words, cause.cure))
        };
        told.into_iter().map(finding).collect()
    }

    /// One remark for each program that serves with pods that do not start.
    pub(super) fn remarks(&self) -> Vec<CheckFinding> {
        let remark = |(program, cause): &(&'static str, StartObstacle)| {
            let what = format!("each pod of {program} starts");
            let words = format!("others serve, and of one {}; {}", cause.words, cause.cure);
            CheckFinding::remark(what, words)
        };
        self.stalled.iter().map(remark).collect()
    }

    /// Adds a finding about something that this program keeps in order. While the program does not start, and
    /// the report says why, a finding that is not well is only counted.
    pub(super) fn add(&self, program: &str, finding: CheckFinding, findings: &mut CheckFindings) {
        if self.keeps_from_starting(program) {
            findings.fold(finding);
        } else {
            findings.add(finding);
        }
    }

    /// Whether this program does not start for a cause that the report tells: its own, or the autoscaler's,
    /// which makes the Secrets that the others wait for.
    pub(super) fn keeps_from_starting(&self, program: &str) -> bool {
        let failure = |name: &str| self.failures.iter().find(|failure| failure.program == name);
        let has_cause = |name: &str| failure(name).is_some_and(|failure| failure.cause.is_some());
        has_cause(program) || (failure(program).is_some() && has_cause(AUTOSCALER))
    }
}

fn ready_pods(deployment: &Deployment) -> i32 {
    deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default()
}

fn is_of(pod: &Pod, program: &str) -> bool {
    let labels = pod.metadata.labels.as_ref();
    let is_leaving = pod.metadata.deletion_timestamp.is_some();
    !is_leaving && labels.and_then(|labels| labels.get(COMPONENT_LABEL)).is_some_and(|name| name == program)
}

fn of_pod(pod: &Pod, program: &str, system: &str) -> Option<StartObstacle> {
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    let mut causes = containers.filter_map(|container| of_container(container, pod, program, system));
    causes.next().or_else(|| without_node(pod))
}

fn of_container(
    container: &ContainerStatus,
    pod: &Pod,
    program: &str,
    system: &str,
) -> Option<StartObstacle> {
    // A container that is ready has got over its last end.
    let state = container.state.as_ref().filter(|_| !container.ready)?;
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let message = waiting.message.as_deref().unwrap_or_default();
        if IMAGE_REASONS.contains(&reason) {
            return Some(without_image(&image_of(container, pod), reason, message));
        }
        // A container that crashes waits too; its last end says more than that.
        let is_ordinary = reason.is_empty() || ORDINARY_REASONS.contains(&reason);
        let has_ended = container.last_state.as_ref().is_some_and(|last| last.terminated.is_some());
        if !is_ordinary && !has_ended {
            return Some(StartObstacle {
                words: format!("its container cannot be made: {}", with_message(reason, message)),
                cure: format!("`kubectl -n {system} describe deployment/{program}` and its pods say more"),
            });
        }
    }
    let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    state.terminated.as_ref().or(last).map(|end| crashed(end, program, system))
}

/// The image as the pod asks for it: the status of a container that never ran may leave it out.
fn image_of(container: &ContainerStatus, pod: &Pod) -> String {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut own = containers.filter(|one| one.name == container.name);
    own.find_map(|one| one.image.clone()).unwrap_or_else(|| container.image.clone())
}

fn without_image(image: &str, reason: &str, message: &str) -> StartObstacle {
    let words = format!("no node gets the image {image}: {}", with_message(reason, message));
    StartObstacle {
        words,
        cure: "push it there or load it into the nodes, or name another one: `kubectl ebb install --image REGISTRY/ebb:TAG` (docs/start/cluster.md)".to_owned(),
    }
}

fn crashed(end: &ContainerStateTerminated, program: &str, system: &str) -> StartObstacle {
    let reason = end.reason.as_deref().filter(|reason| *reason != "Error");
    let code = reason.map_or_else(
        || format!("exit code {}", end.exit_code),
        |reason| format!("{reason}, exit code {}", end.exit_code),
    );
    let said = end.message.as_deref().map(str::trim).filter(|said| !said.is_empty());
    let words = match said {
        Some(said) => format!("its container ends ({code}) and says: {}", last_part(said)),
        None => format!("its container ends ({code}) without a word"),
    };
    StartObstacle {
        words,
        cure: format!("`kubectl -n {system} logs deployment/{program} --previous` shows all of it"),
    }
}

fn without_node(pod: &Pod) -> Option<StartObstacle> {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let condition = conditions.find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
    let message = condition.message.as_deref().unwrap_or_default();
    let reason = condition.reason.as_deref().unwrap_or("PodScheduled is False");
    Some(StartObstacle {
        words: format!("no node takes its pods: {}", with_message(reason, message)),
        cure: "make room, or let the pods go elsewhere: an overlay sets requests, tolerations and selectors"
            .to_owned(),
    })
}

/// The words of the API server where no pod can be made: a quota, a pod security level, a missing account.
fn of_deployment(deployment: &Deployment, system: &str) -> Option<StartObstacle> {
    let mut conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let condition = conditions.find(|one| one.type_ == "ReplicaFailure" && one.status == "True")?;
    let message = condition.message.as_deref().unwrap_or_default();
    let reason = condition.reason.as_deref().unwrap_or("ReplicaFailure");
    Some(StartObstacle {
        words: format!("its pods cannot be made: {}", with_message(reason, message)),
        cure: format!(
            "`kubectl -n {system} get events` says when; `kubectl ebb install` applies the manifests again"
        ),
    })
}

fn with_message(reason: &str, message: &str) -> String {
    if message.is_empty() { reason.to_owned() } else { format!("{reason}: {}", last_part(message)) }
}

/// Words on one line, the end of them where they are long: a program says at its end why it ended.
fn last_part(words: &str) -> String {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = line.chars().count();
    if length <= WORDS_MAX {
        return line;
    }
    ['…'].into_iter().chain(line.chars().skip(length - WORDS_MAX)).collect()
}

#[cfg(test)]
mod tests;
