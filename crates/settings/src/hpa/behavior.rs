//! The field `behavior` of a document: how fast and how hesitantly the count may move.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How fast and how hesitantly the count may move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Behavior {
    /// The rules of changes towards more pods.
    pub scale_up: ScalingRules,
    /// The rules of changes towards fewer pods.
    pub scale_down: ScalingRules,
}

/// The rules of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingRules {
    /// For how long past recommendations count; 0 … 1 h. `None` for the cluster's, which only exists for
    /// scaling down.
    pub stabilization_window: Option<Duration>,
    /// Which of the policies rules.
    pub select_policy: SelectPolicy,
    /// By how much the count may change within a period; at least one policy.
    pub policies: Vec<ScalingPolicy>,
    /// How far the ratio may be off before anything happens; at least 0. `None` for the cluster's.
    pub tolerance: Option<f64>,
    /// Whether the document wrote these rules, or they are the defaults.
    pub origin: RulesOrigin,
}

/// Whether the document itself wrote the rules of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RulesOrigin {
    /// The document wrote the rules; fields that it left out have the defaults.
    Document,
    /// The document wrote the rules of the other direction only.
    Default,
}

/// The field `selectPolicy`: which of several policies limits a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelectPolicy {
    /// The policy that allows the largest change.
    #[default]
    Max,
    /// The policy that allows the smallest change.
    Min,
    /// No change in this direction.
    Disabled,
}

/// How much may change within a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingPolicy {
    /// Pods, or a share of the present count.
    pub amount: PolicyAmount,
    /// Within which time; 1 s … 30 min.
    pub period: Duration,
}

/// The unit and amount of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyAmount {
    /// A number of pods; at least 1.
    Pods(u32),
    /// Percent of the count at the start of the period; at least 1.
    Percent(u32),
}

/// As people read it: `1 pod`, `4 pods`, `100%`.
impl fmt::Display for PolicyAmount {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods(1) => to.write_str("1 pod"),
            Self::Pods(count) => write!(to, "{count} pods"),
            Self::Percent(percent) => write!(to, "{percent}%"),
        }
    }
}

impl ScalingRules {
    /// The rules towards more pods where the document has none: 4 pods or a doubling, whichever is more, in
    /// 15 s, without waiting.
    pub fn default_up() -> Self {
        Self {
            stabilization_window: Some(Duration::ZERO),
            policies: vec![per_15_seconds(PolicyAmount::Pods(4)), per_15_seconds(PolicyAmount::Percent(100))],
            ..Self::default_down()
        }
    }

    /// The rules towards fewer pods where the document has none: all at once, after the cluster's
    /// stabilization window.
    pub fn default_down() -> Self {
        Self {
            stabilization_window: None,
            select_policy: SelectPolicy::Max,
            policies: vec![per_15_seconds(PolicyAmount::Percent(100))],
            tolerance: None,
            origin: RulesOrigin::Default,
        }
    }

    /// The longest time that one of the policies looks back.
    pub fn longest_period(&self) -> Duration {
        self.policies.iter().map(|policy| policy.period).max().unwrap_or_default()
    }
}

/// The period of Kubernetes' default policies, which is its sync period.
const fn per_15_seconds(amount: PolicyAmount) -> ScalingPolicy {
    ScalingPolicy { amount, period: Duration::from_secs(15) }
}
