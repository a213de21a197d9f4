//! What should people know of an object: a word for programs, a sentence for people.

use orchestration::ReasonCode;

/// Something about one object. It stands in `GET /v1/problems` and in an Event of the object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// The Event's reason: one of the constants below.
    pub reason: &'static str,
    /// The state of the object, and the advice, in one sentence.
    pub text: String,
}

impl Notice {
    /// A reason of those below, and a sentence.
    pub fn new(reason: &'static str, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }
}

/// Whether people have to do something about a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// People are told, and have nothing to do.
    Normal,
    /// Something is wrong that people can mend.
    Warning,
}

/// Whether people have to do something about a notice with this reason. A Service on its way to ebb, and
/// connections from before an adoption that keep a count from falling, are steps of every adoption.
pub(crate) fn tone_of(reason: &str) -> Tone {
    if [SELECTOR_PRESENT, ReasonCode::AdoptedConnections.word()].contains(&reason) {
        Tone::Normal
    } else {
        Tone::Warning
    }
}

/// A Service is served by us from now on.
pub(crate) const ADOPTED: &str = "Adopted";
/// A Service names a workload and still has a selector.
pub(crate) const SELECTOR_PRESENT: &str = "SelectorPresent";
/// A Service was ours, is not any more, and has no selector, so Kubernetes cannot serve it.
pub(crate) const NO_SELECTOR: &str = "NoSelector";
/// A Service was ours, and Kubernetes serves it again.
pub(crate) const GIVEN_BACK: &str = "GivenBack";
/// Another program writes endpoints of a Service of ours.
pub(crate) const FOREIGN_ENDPOINTS: &str = "ForeignEndpoints";
/// A slice of a Service looks as if ebb had written it, and ebb did not.
pub(crate) const FORGED_SLICE: &str = "ForgedSlice";
/// A Service is of a kind that cannot be served.
pub(crate) const NOT_SERVABLE: &str = "NotServable";
/// A Service selects pods of another workload than the one that it names.
pub(crate) const SEVERAL_WORKLOADS: &str = "SeveralWorkloads";
/// An annotation says something that has no meaning.
pub(crate) const BAD_ANNOTATION: &str = "BadAnnotation";
/// The workload that a Service names is not there.
pub(crate) const NO_WORKLOAD: &str = "NoWorkload";
/// Clients reach its pods past us, so its count is not lowered.
pub(crate) const NOT_ROUTABLE: &str = "NotRoutable";
/// A port of a Service leads to one that no container declares, so it is served past us.
pub(crate) const PORT_NOT_DECLARED: &str = "PortNotDeclared";
/// A Service is served past us because all ports of activators are given.
pub(crate) const NO_PORT_LEFT: &str = "NoPortLeft";
/// There are pods without a queue-proxy.
pub(crate) const NOT_INJECTED: &str = "NotInjected";
/// Containers end by a hook of their own, while requests may be under way.
pub(crate) const KEPT_HOOK: &str = "KeptHook";
/// An app goes on after it was told to end, its requests having ended before, for longer than it may.
pub(crate) const IGNORES_TERM: &str = "IgnoresTerm";
/// The workload that a Service names cannot be scaled.
pub const NOT_SCALABLE: &str = "NotScalable";
/// A person wants its count left alone.
pub(crate) const PAUSED: &str = "Paused";
/// A `HorizontalPodAutoscaler` scales it too.
pub(crate) const OTHER_AUTOSCALER: &str = "OtherAutoscaler";
/// A Service wants each client to stay with a pod.
pub(crate) const SESSION_AFFINITY: &str = "SessionAffinity";
/// What was measured would not outlive its owner.
pub(crate) const HISTORIES_NOT_KEPT: &str = "HistoriesNotKept";
/// A program of ours ended because a part of it failed: a bug.
pub(crate) const PART_FAILED: &str = "PartFailed";
/// ebb's activators stand beside an autoscaler of Knative's, from which they hear nothing.
pub(crate) const UNSUPPORTED_MIXTURE: &str = "UnsupportedMixture";
/// The pods of a workload fail time and again, so requests are refused.
pub(crate) const CRASH_LOOP: &str = "CrashLoop";
/// A container of a pod cannot be started, so requests are refused.
pub(crate) const NOT_STARTABLE: &str = "ContainerNotStartable";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_every_adoption_are_no_warnings() {
        for reason in [SELECTOR_PRESENT, ReasonCode::AdoptedConnections.word()] {
            assert_eq!(tone_of(reason), Tone::Normal, "{reason}");
        }
        for reason in [NO_SELECTOR, FOREIGN_ENDPOINTS, NO_WORKLOAD, BAD_ANNOTATION] {
            assert_eq!(tone_of(reason), Tone::Warning, "{reason}");
        }
    }
}
