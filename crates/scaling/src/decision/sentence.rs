//! The sentences of a decision: numbers until a sentence is read, then words.
//!
//! A revision is looked at every two seconds and nearly always nothing changes, so nearly no sentence is ever
//! read. Writing all of them would be most of what a decision costs; here saying something copies a few
//! numbers, and only `Display` looks for words.

mod forecast;
mod numbers;
mod zero;

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use settings::{FloorCause, Metric};
use vocabulary::{PeerList, PodCount, format_duration};

use crate::hpa::HpaSentence;
use numbers::{is_one, rough, rounded, two_decimals, unit};

pub(crate) use forecast::{ForecastText, NearDemand};
pub(crate) use zero::ZeroText;

/// One sentence for people, with the numbers that mattered. `to_string` and serde give the words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sentence(SentenceSource);

/// The part of the decision that a sentence is about. Each part has texts of its own, which keeps their lists
/// short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum SentenceSource {
    Need(NeedText),
    Bound(BoundText),
    Zero(ZeroText),
    State(StandingText),
    Hpa(HpaSentence),
    Hold(ConnectionHoldText),
    Forecast(ForecastText),
}

/// Sentences of the decider: how many pods are needed, and why not more or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum NeedText {
    StableWindow { value: f64, metric: Metric, window: Duration, target: f64 },
    PanicWindow { value: f64, metric: Metric, window: Duration, need: f64, ready: PodCount },
    PresentAndNoneReady { need: PodCount },
    Present { need: f64, ready: PodCount },
    ScaleUpRate { ready: PodCount, count: PodCount, rate: f64 },
    ScaleDownRate { ready: PodCount, count: PodCount, rate: f64 },
    ActivationScale { count: PodCount },
    FoundAtStart { count: PodCount, window: Duration },
    MostInPanic { count: PodCount, window: Duration },
    Unheard { count: PodCount, unheard: SilentPods, least: PodCount, most: PodCount },
    PathChanges { count: PodCount, least: PodCount, most: PodCount },
    RecentPeak { count: PodCount, delay: Duration },
    BetweenTicks { count: PodCount },
}

/// The numbers of ready pods and activators that are not heard.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SilentPods {
    pub(crate) pods: PodCount,
    pub(crate) activators: PodCount,
}

impl SilentPods {
    /// Whether every one is heard.
    pub(crate) fn is_none(self) -> bool {
        self.pods == PodCount::ZERO && self.activators == PodCount::ZERO
    }
}

/// Sentences of the bounds of the count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum BoundText {
    InitialScale { least: PodCount },
    MinScale { least: PodCount },
    Floor { least: PodCount, cause: FloorCause },
    MinReplicas { least: PodCount },
    MaxScale { most: PodCount },
    Unknown { present: PodCount },
    Panic { present: PodCount },
    BetweenTicks { present: PodCount },
}

/// The sentence of the guard of connections from before an adoption. Their age is part of why the count
/// stays, but not of a reason, which would otherwise differ at every look. Numbers are as small as they can
/// be: with three addresses this is the longest of all sentences, and each reason has room for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConnectionHoldText {
    pub(crate) present: PodCount,
    pub(crate) count: u32,
    /// The age of the oldest connection in whole seconds, at least one.
    pub(crate) age: Option<NonZeroU32>,
    pub(crate) peers: PeerList,
    pub(crate) unreadable_pods: u8,
}

/// Sentences about the present state of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum StandingText {
    NoData,
    NothingKnown,
    Panic { count: PodCount, age: Duration, window: Duration },
    Load { value: f64, target: f64 },
    EarlierPeak,
    MetricsChanged { sync_period: Duration },
}

impl From<NeedText> for Sentence {
    fn from(said: NeedText) -> Self {
        Self(SentenceSource::Need(said))
    }
}

impl From<BoundText> for Sentence {
    fn from(said: BoundText) -> Self {
        Self(SentenceSource::Bound(said))
    }
}

impl From<ZeroText> for Sentence {
    fn from(said: ZeroText) -> Self {
        Self(SentenceSource::Zero(said))
    }
}

impl From<StandingText> for Sentence {
    fn from(said: StandingText) -> Self {
        Self(SentenceSource::State(said))
    }
}

impl From<ConnectionHoldText> for Sentence {
    fn from(said: ConnectionHoldText) -> Self {
        Self(SentenceSource::Hold(said))
    }
}

impl From<ForecastText> for Sentence {
    fn from(said: ForecastText) -> Self {
        Self(SentenceSource::Forecast(said))
    }
}

impl From<HpaSentence> for Sentence {
    fn from(said: HpaSentence) -> Self {
        Self(SentenceSource::Hpa(said))
    }
}

impl Serialize for Sentence {
    fn serialize<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        if to.is_human_readable() { to.collect_str(self) } else { self.0.serialize(to) }
    }
}

impl<'de> Deserialize<'de> for Sentence {
    /// Reads the numbers of a sentence as an exact keyframe has them.
    fn deserialize<Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        SentenceSource::deserialize(from).map(Self)
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SentenceSource::Need(said) => said.fmt(to),
            SentenceSource::Bound(said) => said.fmt(to),
            SentenceSource::Zero(said) => said.fmt(to),
            SentenceSource::State(said) => said.fmt(to),
            SentenceSource::Hpa(said) => said.fmt(to),
            SentenceSource::Hold(said) => said.fmt(to),
            SentenceSource::Forecast(said) => said.fmt(to),
        }
    }
}

impl fmt::Display for NeedText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::StableWindow { value, metric, window, target } => {
                let (value, window, target) =
                    (two_decimals(value), format_duration(window), two_decimals(target));
                write!(to, "{value} {} over {window}, {target} per pod", unit(metric, value))
            }
            Self::PanicWindow { value, metric, window, need, ready } => {
                let (value, window) = (two_decimals(value), format_duration(window));
                let verb = if is_one(value) { "needs" } else { "need" };
                write!(to, "{value} {} over {window} {verb} {need}; ready are {ready}", unit(metric, value))
            }
            Self::PresentAndNoneReady { need } => {
                write!(to, "present requests need {need}; no pod is ready")
            }
            Self::Present { need, ready } => {
                write!(to, "present requests need {need}; ready are {ready}")
            }
            Self::ScaleUpRate { ready, count, rate } => {
                write!(to, "from {ready} ready at most to {count} at once (max-scale-up-rate {rate})")
            }
            Self::ScaleDownRate { ready, count, rate } => {
                write!(to, "from {ready} ready not below {count} at once (max-scale-down-rate {rate})")
            }
            Self::ActivationScale { count } => {
                write!(to, "at least {count} while there is any need (activation-scale)")
            }
            Self::FoundAtStart { count, window } => {
                let window = format_duration(window);
                write!(to, "the {count} pods found at the start stay for {window}")
            }
            Self::MostInPanic { count, window } => {
                let window = format_duration(window);
                write!(to, "{count} were needed since panic began, which ends {window} after the last alarm")
            }
            Self::Unheard { count, unheard, least, most } => {
                write!(to, "the count stays at {count}: {unheard} not heard, so {least} to {most} are needed")
            }
            Self::PathChanges { count, least, most } => {
                write!(
                    to,
                    "the count stays at {count}: requests change between pods and activators, so {least} to {most} are \
                     needed"
                )
            }
            Self::RecentPeak { count, delay } => {
                let delay = format_duration(delay);
                write!(to, "{count} were needed within the last {delay} (scale-down-delay)")
            }
            Self::BetweenTicks { count } => {
                write!(to, "the count stays at {count}: between two ticks it only rises")
            }
        }
    }
}

/// "2 ready pods and 1 activator are".
impl fmt::Display for SilentPods {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pods, activators) = (self.pods.value(), self.activators.value());
        let verb = if pods + activators == 1 { "is" } else { "are" };
        let some = |count: u32, noun: &str| {
            (count > 0).then(|| format!("{count} {noun}{}", if count == 1 { "" } else { "s" }))
        };
        let names: Vec<String> =
            [some(pods, "ready pod"), some(activators, "activator")].into_iter().flatten().collect();
        write!(to, "{} {verb}", names.join(" and "))
    }
}

impl fmt::Display for BoundText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::InitialScale { least } => {
                if least == PodCount::ONE {
                    return to.write_str("starts with 1 pod (initial-scale) until it was ready once");
                }
                write!(to, "starts with {least} pods (initial-scale) until they were ready once")
            }
            Self::MinScale { least } => write!(to, "never below {least} (min-scale)"),
            Self::Floor { least, cause } => write!(to, "never below {least}: {}", floor_words(cause)),
            Self::MinReplicas { least } => {
                write!(to, "never below {least} (minReplicas, min-scale), whatever the metrics say")
            }
            Self::MaxScale { most } => write!(to, "never above {most} (max-scale)"),
            Self::Unknown { present } => {
                write!(to, "nothing is known of the load yet, so the present count of {present} stays")
            }
            Self::Panic { present } => write!(to, "panic mode ends no pods: the count stays at {present}"),
            Self::BetweenTicks { present } => {
                write!(to, "between two ticks the count only rises: it stays at {present}")
            }
        }
    }
}

/// Why the platform lets a count not fall, as the end of a sentence.
fn floor_words(cause: FloorCause) -> &'static str {
    match cause {
        FloorCause::GivenBack => {
            "a Service was given back, and for a minute clients may still come through ebb"
        }
        FloorCause::Abandoned => "its Service has no selector, so no other program than ebb can serve it",
        FloorCause::Bypass => "a Service leads clients to its pods past ebb",
        FloorCause::InvalidAnnotations => "the annotations of the workload are invalid",
    }
}

impl fmt::Display for ConnectionHoldText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { present, count, age, peers, unreadable_pods } = self;
        write!(to, "the count stays at {present}: ")?;
        if *count > 0 {
            let noun = if *count == 1 { "connection" } else { "connections" };
            write!(to, "{count} {noun} from before the adoption past ebb")?;
            if let Some(age) = age {
                let age = Duration::from_secs(age.get().into());
                write!(to, ", the oldest for {}", format_duration(age))?;
            }
            if !peers.is_empty() {
                write!(to, ", from {peers}")?;
            }
        }
        if *unreadable_pods > 0 {
            let separator = if *count > 0 { "; " } else { "" };
            let (noun, have) = if *unreadable_pods == 1 { ("pod", "app has") } else { ("pods", "apps have") };
            write!(
                to,
                "{separator}{unreadable_pods} {noun} whose kernel does not show whether the {have} such connections"
            )?;
        }
        to.write_str(" (adopted-connections-hold; ebb.dev/forget-connections ends the wait)")
    }
}

impl fmt::Display for StandingText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoData => to.write_str("no data: no reporter was heard, so everything stays as it is"),
            Self::NothingKnown => to.write_str("no load is known yet, so the count stays as it is"),
            Self::Panic { count, age, window } => {
                let (age, window) = (rough(age), format_duration(window));
                let pods = if count == PodCount::ONE { "pod" } else { "pods" };
                write!(to, "panic mode holds {count} {pods}; begun or extended {age} ago, it lasts {window}")
            }
            Self::Load { value, target } => {
                let (value, target) = (rounded(value), two_decimals(target));
                write!(to, "the stable window still averages {value} with a target of {target} per pod")
            }
            Self::EarlierPeak => to.write_str("an earlier peak holds the count"),
            Self::MetricsChanged { sync_period } => {
                let period = format_duration(sync_period);
                write!(
                    to,
                    "its metrics were changed: the count stays until their first sync, within {period}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
