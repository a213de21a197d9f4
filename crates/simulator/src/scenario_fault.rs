//! What goes wrong while a load is simulated, and when?
//!
//! A fault is written as a shape of a load is: `pods-killed,at=10m,service=hello,pods=2`. Every variant of a
//! simulation meets the same ones.

use std::time::Duration;

use vocabulary::RevisionName;

use crate::option_text::{OptionKey, OptionProblem, OptionText, count, span_above_zero};

/// The words with which a fault begins.
const FAULTS: [&str; 8] = [
    "pods-killed",
    "slow-starts",
    "autoscaler-killed",
    "takeover",
    "pod-links-lost",
    "pod-links-slow",
    "activator-link-lost",
    "activator-link-slow",
];

const AT: OptionKey<Duration> = OptionKey { name: "at", example: "10m", reader: span_above_zero };
const DELAY: OptionKey<Duration> = OptionKey { name: "delay", example: "2s", reader: span_above_zero };
const LENGTH: OptionKey<Duration> = OptionKey { name: "length", example: "5m", reader: span_above_zero };
const PAUSE: OptionKey<Duration> = OptionKey { name: "pause", example: "15s", reader: span_above_zero };
const PODS: OptionKey<u32> = OptionKey { name: "pods", example: "2", reader: count };
const SERVICE: OptionKey<String> =
    OptionKey { name: "service", example: "hello", reader: |text| Ok(text.to_owned()) };
const TIMES: OptionKey<u32> = OptionKey { name: "times", example: "4", reader: count };

/// One fault of a simulated load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioFault {
    /// The time since the load began.
    pub at: Duration,
    /// The Service whose pods it is about, by its name or its whole name; `None`: those of each Service, or
    /// no pods.
    pub service: Option<String>,
    /// The effect that it has then.
    pub effect: FaultEffect,
}

/// What a fault does to the pods of a Service, to the autoscaler or to its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// So many pods that have started are killed with all that they hold, the oldest ones. The platform
    /// starts others at once.
    PodsKilled {
        /// How many of each Service; all that there are, if there are fewer.
        pods: u32,
    },
    /// Pods that are ordered while it lasts take so many times as long to start.
    SlowStarts {
        /// The factor of each start.
        times: u32,
        /// The time for which starts are slow.
        length: Duration,
    },
    /// The process of the autoscaler is killed, and another one begins, with nothing but what the platform,
    /// the pods and the activator tell.
    AutoscalerEnds {
        /// The time in which there is none; zero where another autoscaler takes over at once.
        pause: Duration,
    },
    /// Links of the autoscaler are lost, with the words under way, and cannot be had for a while.
    LinksLost {
        /// The links that are lost.
        links: FaultyLinks,
        /// The time for which no link stands.
        length: Duration,
    },
    /// Each word on links of the autoscaler takes longer for a while.
    LinksSlow {
        /// The links that are slow.
        links: FaultyLinks,
        /// How much longer a word takes, in each direction.
        delay: Duration,
        /// The time for which links are slow.
        length: Duration,
    },
}

/// The links of the autoscaler that a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultyLinks {
    /// Those to the pods of a Service, or of each Service.
    Pods,
    /// The link to the activator.
    Activator,
}

impl ScenarioFault {
    /// Reads a fault. An error names the word or the value, what is allowed and the nearest known word.
    pub fn parse(text: &str) -> Result<Self, OptionProblem> {
        let option = OptionText::read(text)?;
        let effect = match option.head() {
            Some("pods-killed") => {
                option.check_keys(&[AT.name, SERVICE.name, PODS.name])?;
                FaultEffect::PodsKilled { pods: option.optional(&PODS)?.unwrap_or(1) }
            }
            Some("slow-starts") => {
                option.check_keys(&[AT.name, SERVICE.name, LENGTH.name, TIMES.name])?;
                let (times, length) = (option.required(&TIMES)?, option.required(&LENGTH)?);
                FaultEffect::SlowStarts { times, length }
            }
            Some("autoscaler-killed") => {
                option.check_keys(&[AT.name, PAUSE.name])?;
                FaultEffect::AutoscalerEnds { pause: option.required(&PAUSE)? }
            }
            Some("takeover") => {
                option.check_keys(&[AT.name])?;
                FaultEffect::AutoscalerEnds { pause: Duration::ZERO }
            }
            Some("pod-links-lost") => links_lost(&option, FaultyLinks::Pods)?,
            Some("pod-links-slow") => links_slow(&option, FaultyLinks::Pods)?,
            Some("activator-link-lost") => links_lost(&option, FaultyLinks::Activator)?,
            Some("activator-link-slow") => links_slow(&option, FaultyLinks::Activator)?,
            other => return Err(OptionProblem::unknown_word(other.unwrap_or_default(), &FAULTS)),
        };
        Ok(Self { at: option.required(&AT)?, service: option.optional(&SERVICE)?, effect })
    }

    /// Whether the fault is about a Service.
    pub(crate) fn is_about(&self, service: &RevisionName) -> bool {
        let is_called = |name: &String| name == service.as_str() || name == service.name();
        self.service.as_ref().is_none_or(is_called)
    }
}

fn links_lost(option: &OptionText<'_>, links: FaultyLinks) -> Result<FaultEffect, OptionProblem> {
    let keys = [AT.name, LENGTH.name, SERVICE.name];
    option.check_keys(if links == FaultyLinks::Pods { &keys } else { &keys[..2] })?;
    Ok(FaultEffect::LinksLost { links, length: option.required(&LENGTH)? })
}

fn links_slow(option: &OptionText<'_>, links: FaultyLinks) -> Result<FaultEffect, OptionProblem> {
    let keys = [AT.name, LENGTH.name, DELAY.name, SERVICE.name];
    option.check_keys(if links == FaultyLinks::Pods { &keys } else { &keys[..3] })?;
    let (delay, length) = (option.required(&DELAY)?, option.required(&LENGTH)?);
    Ok(FaultEffect::LinksSlow { links, delay, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_read_with_its_service_and_without() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let killed = ScenarioFault::parse("pods-killed,at=10m,service=hello,pods=2").expect("a fault");
        let (service, effect) = (Some("hello".to_owned()), FaultEffect::PodsKilled { pods: 2 });
        assert_eq!(killed, ScenarioFault { at: minutes(10), service, effect });
        let slow = ScenarioFault::parse("slow-starts,at=1m,length=5m,times=4").expect("a fault");
        let effect = FaultEffect::SlowStarts { times: 4, length: minutes(5) };
        assert_eq!(slow, ScenarioFault { at: minutes(1), service: None, effect });
        let hello = RevisionName::parse("default/service/hello").expect("three parts");
        let other = RevisionName::parse("default/service/other").expect("three parts");
        assert!(killed.is_about(&hello) && !killed.is_about(&other) && slow.is_about(&other));
    }

    #[test]
    fn each_fault_of_the_autoscaler_and_of_its_links_is_read() {
        let seconds = Duration::from_secs;
        let effect = |text: &str| ScenarioFault::parse(text).expect(text).effect;
        let killed = effect("autoscaler-killed,at=10m,pause=15s");
        assert_eq!(killed, FaultEffect::AutoscalerEnds { pause: seconds(15) });
        assert_eq!(effect("takeover,at=10m"), FaultEffect::AutoscalerEnds { pause: Duration::ZERO });
        for (word, links) in [("pod-links", FaultyLinks::Pods), ("activator-link", FaultyLinks::Activator)] {
            let lost = effect(&format!("{word}-lost,at=10m,length=30s"));
            assert_eq!(lost, FaultEffect::LinksLost { links, length: seconds(30) });
            let slow = effect(&format!("{word}-slow,at=10m,length=30s,delay=2s"));
            assert_eq!(slow, FaultEffect::LinksSlow { links, delay: seconds(2), length: seconds(30) });
        }
        let of_one = ScenarioFault::parse("pod-links-lost,at=10m,length=30s,service=hello").expect("a fault");
        assert_eq!(of_one.service.as_deref(), Some("hello"));
    }

    #[test]
    fn an_unreadable_fault_is_refused_with_the_words_that_are_allowed() {
        for (text, expected) in [
            ("pod-killed,at=10m", "\"pod-killed\" is none of pods-killed, slow-starts, autoscaler-killed"),
            ("pod-killed,at=10m", "activator-link-slow; did you mean pods-killed?"),
            ("at=10m", "\"\" is none of pods-killed, slow-starts"),
            ("autoscaler-killed,at=10m", "pause is missing; write pause=15s"),
            ("takeover,at=10m,pause=5s", "\"pause\" is no key here; write at"),
            ("pod-links-slow,at=10m,length=30s", "delay is missing; write delay=2s"),
            (
                "activator-link-lost,at=1m,length=1m,service=hello",
                "\"service\" is no key here; write at, length",
            ),
            ("pod-links-lost,at=1m,length=0s", "length is \"0s\", which is no time at all"),
            ("pods-killed", "at is missing; write at=10m"),
            ("pods-killed,at=10m,pods=0", "pods is \"0\", which must be a whole number from 1"),
            ("slow-starts,at=1m,times=4", "length is missing; write length=5m"),
            ("pods-killed,at=1m,times=4", "\"times\" is no key here; write at, service, pods"),
        ] {
            let problem = ScenarioFault::parse(text).expect_err(text).to_string();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }
}
