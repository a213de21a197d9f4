//! The answer, and why. Logs, `ebb explain`, metrics, the dashboard and the tests all read this one value.

mod sentence;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vocabulary::{ExcessBurstCapacity, PodCount, Routing, Timestamp};

pub use sentence::Sentence;
pub(crate) use sentence::{
    BoundText, ConnectionHoldText, ForecastText, NearDemand, NeedText, SilentPods, StandingText, ZeroText,
};

/// One evaluation of one revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// When, on the process's time axis.
    #[serde(skip)]
    pub at: Timestamp,
    /// The cause of this evaluation: a tick, a sync, a surge or a changed fact.
    pub trigger: Trigger,
    /// The numbers it started from; `None` when there was no data and therefore no decision.
    pub inputs: Option<Inputs>,
    /// One entry per stage that changed the number, in order: each `before` is the former's `after`.
    pub reasons: Vec<Reason>,
    /// The mode after this evaluation.
    pub mode: Mode,
    /// The count that the decider wants, before bounds and scale-to-zero rules (Knative: the decider's
    /// desired scale); `None` if it never decided.
    pub desired: Option<PodCount>,
    /// The count that the platform is asked for; `None` leaves its count alone.
    pub wanted: Option<PodCount>,
    /// The count after bounds and the rules around zero, also where its time has not come yet (Knative's
    /// want); `None` where nothing is known, and while a revision starts (Knative's -1).
    #[serde(skip)]
    pub intended: Option<PodCount>,
    /// Room beyond the target burst capacity.
    pub excess_burst_capacity: ExcessBurstCapacity,
    /// Whether activators are in the request path after this evaluation.
    pub routing: Routing,
    /// How many activators should serve the revision.
    pub activators: PodCount,
    /// Why the count is not zero, in one sentence; `None` when it is.
    pub why_not_zero: Option<Sentence>,
}

impl Decision {
    /// Nothing is known and nothing is wanted, for no reason.
    pub fn empty(trigger: Trigger, at: Timestamp) -> Self {
        Self {
            at,
            trigger,
            inputs: None,
            reasons: Vec::new(),
            mode: Mode::Stable,
            desired: None,
            wanted: None,
            intended: None,
            excess_burst_capacity: ExcessBurstCapacity::ZERO,
            routing: Routing::Direct,
            activators: PodCount::ZERO,
            why_not_zero: None,
        }
    }
}

/// The numbers from which an evaluation started.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// Pods that pass their probes.
    pub ready_pods: PodCount,
    /// Ready pods that were not heard for 3 s or more.
    pub unheard_pods: PodCount,
    /// The average over the stable window: requests in flight, or requests per second.
    pub stable_value: f64,
    /// The average over the panic window.
    pub panic_value: f64,
    /// The load per pod aimed at.
    pub target_per_pod: f64,
    /// The most load a pod can take.
    pub total_per_pod: f64,
    /// Requests present at this instant, where an evaluation between ticks looked at them.
    pub present_count: Option<f64>,
}

/// The cause of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The regular tick, every two seconds.
    Tick,
    /// Class hpa: the sync period is over, and the values of all metrics are known.
    Sync,
    /// Demand that is there now (Knative: a poke; ours: off-tick evaluation).
    Surge,
    /// Facts changed: pods, settings, acknowledgements, or a deadline of the scale-to-zero rules.
    Change,
}

/// Whether the short window rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The stable window decides, and the count may fall.
    Stable,
    /// The panic window decides and the count never falls.
    Panic {
        /// When it was entered or last extended.
        since: Timestamp,
    },
}

impl Serialize for Mode {
    /// For people and programs the name alone (`{"name": "panic"}`); for an exact keyframe the time alone, of
    /// which the name follows.
    fn serialize<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        let (name, since) = match *self {
            Self::Stable => ("stable", None),
            Self::Panic { since } => ("panic", Some(since)),
        };
        if !to.is_human_readable() {
            return since.serialize(to);
        }
        let mut shown = to.serialize_struct("Mode", 1)?;
        shown.serialize_field("name", name)?;
        shown.end()
    }
}

impl<'de> Deserialize<'de> for Mode {
    /// Reads a mode as an exact keyframe has it.
    fn deserialize<Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        let since = Option::deserialize(from)?;
        Ok(since.map_or(Self::Stable, |since| Self::Panic { since }))
    }
}

/// One step that changed the number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The step that changed the number.
    pub stage: Stage,
    /// The number before; `None` before the first step and for "leave it alone".
    pub before: Option<PodCount>,
    /// The number after; `None` means "leave it alone".
    pub after: Option<PodCount>,
    /// One sentence for people, with the numbers that mattered.
    pub text: Sentence,
}

/// The steps of an evaluation, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Load divided by the target, over the stable window.
    StableWindow,
    /// The limit on growth per evaluation.
    ScaleUpRate,
    /// The limit on shrinking per evaluation.
    ScaleDownRate,
    /// The least count while there is any need.
    ActivationScale,
    /// The panic window, or the largest count since panic began.
    Panic,
    /// A recent peak holds the count.
    ScaleDownDelay,
    /// Demand that is queued right now.
    Surge,
    /// Silence of a pod is neither load nor its absence.
    MissingData,
    /// Nothing is known yet, or no longer.
    NoData,
    /// The count until the revision was ready once.
    InitialScale,
    /// The lower bound: `min-scale`, or `minReplicas` of a document.
    MinScale,
    /// The platform lets the count not fall below a number, whatever the settings say.
    PlatformFloor,
    /// The upper bound: `max-scale`, or `maxReplicas` of a document.
    MaxScale,
    /// Why the last pod stays, or goes: window, grace period, retention, acknowledgement.
    ScaleToZero,
    /// The activation took too long.
    ActivationTimeout,
    /// Class hpa: what one metric measures and asks for.
    Metric,
    /// Class hpa: a metric has no value.
    MetricFailure,
    /// Class hpa: what was recommended within the stabilization windows.
    StabilizationWindow,
    /// Class hpa: how fast the count may change.
    ScalingPolicy,
    /// Class hpa: the target rests at zero because another client scaled it to zero.
    Paused,
    /// Demand is expected that needs more pods, or was and is no longer.
    Prediction,
    /// Demand is expected, and what prediction may cost is spent.
    PredictionBudget,
    /// One pod is kept warm for the next request.
    KeepWarm,
    /// A line of the schedule sets a bound.
    Schedule,
    /// Connections from before an adoption, past ebb, keep the count from falling.
    AdoptedConnections,
}
