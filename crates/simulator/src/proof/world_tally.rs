//! What has come of many worlds so far, as a value and as a line of text: a run of days goes on from it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use super::plan::WorldPlan;
use super::reached_state::ReachedStates;
use super::trial::{WorldFailure, WorldOutcome, try_world};

/// The sums over worlds of consecutive seeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorldTally {
    /// The seed of the next world.
    pub next_seed: u64,
    /// How many worlds have run.
    pub worlds: u64,
    /// The time that has passed in them and their twins.
    pub simulated: Duration,
    /// The time of all their pods together, which is counted in whole seconds.
    pub pod_time: Duration,
    /// The requests that came in them.
    pub requests: u64,
    /// The faults that they had.
    pub faults: u64,
    /// A hash over all of them, the same for the same seeds.
    pub hash: u64,
    /// The states that they have reached.
    pub reached: ReachedStates,
}

/// Why a text is no tally of worlds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the tally of worlds has no number {field}")]
pub struct WorldTallyProblem {
    /// The number that is missing, or is none.
    pub field: &'static str,
}

impl WorldTally {
    /// No world yet, and the first one will have this seed.
    pub fn from_seed(seed: u64) -> Self {
        Self { next_seed: seed, ..Self::default() }
    }

    /// Lets the next world run. A failure is that of its seed, which is not counted.
    pub fn try_next(&mut self) -> Option<WorldFailure> {
        let plan = WorldPlan::of_seed(self.next_seed);
        let outcome = try_world(&plan, None);
        if outcome.failure.is_some() {
            return outcome.failure;
        }
        self.add(plan.faults(), &outcome);
        None
    }

    /// The next world had so many faults and kept every promise.
    fn add(&mut self, faults: usize, outcome: &WorldOutcome) {
        self.next_seed += 1;
        self.worlds += 1;
        self.simulated += outcome.simulated;
        self.pod_time += outcome.pod_time;
        self.requests += outcome.requests;
        self.faults += u64::try_from(faults).unwrap_or(u64::MAX);
        self.hash = self.hash.rotate_left(7) ^ outcome.hash;
        self.reached.add(&outcome.reached);
    }

    /// The time that has passed in all worlds, in hours.
    pub fn hours(&self) -> f64 {
        self.simulated.as_secs_f64() / 3_600.0
    }
}

/// The line that is read again.
impl fmt::Display for WorldTally {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "next_seed={} worlds={} simulated_ns={} pod_seconds={} requests={} faults={} hash={} reached={}",
            self.next_seed,
            self.worlds,
            self.simulated.as_nanos(),
            // A million hours of six pods are more nanoseconds than the reader's `u64` holds.
            self.pod_time.as_secs(),
            self.requests,
            self.faults,
            self.hash,
            self.reached.as_text()
        )
    }
}

impl FromStr for WorldTally {
    type Err = WorldTallyProblem;

    /// Fields that are not of a tally are passed over.
    fn from_str(text: &str) -> Result<Self, WorldTallyProblem> {
        let fields: BTreeMap<&str, &str> =
            text.split_whitespace().filter_map(|field| field.split_once('=')).collect();
        let number = |field: &'static str| {
            let number = fields.get(field).and_then(|text| text.parse::<u64>().ok());
            number.ok_or(WorldTallyProblem { field })
        };
        let reached = fields.get("reached").and_then(|text| ReachedStates::of_text(text));
        Ok(Self {
            next_seed: number("next_seed")?,
            worlds: number("worlds")?,
            simulated: Duration::from_nanos(number("simulated_ns")?),
            pod_time: Duration::from_secs(number("pod_seconds")?),
            requests: number("requests")?,
            faults: number("faults")?,
            hash: number("hash")?,
            reached: reached.ok_or(WorldTallyProblem { field: "reached" })?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::reached_state::ReachedState;

    /// What came of the world of a seed, as it were.
    fn outcome(seed: u64) -> WorldOutcome {
        let mut reached = ReachedStates::default();
        reached.note(ReachedState::ALL[usize::try_from(seed).expect("few")]);
        WorldOutcome {
            simulated: Duration::from_nanos(3_600_000_000_001 * seed),
            requests: 1_000 + seed,
            pod_time: Duration::from_secs(9 * seed),
            hash: u64::MAX / seed,
            reached,
            failure: None,
        }
    }

    #[test]
    fn a_run_that_goes_on_from_its_text_ends_as_one_without_a_break() {
        let mut whole = WorldTally::from_seed(1);
        let mut broken = WorldTally::from_seed(1);
        for seed in 1..=9 {
            whole.add(3, &outcome(seed));
            broken.add(3, &outcome(seed));
            broken = format!("commit=abc {broken}\n").parse().expect("it was just written");
            assert_eq!(broken, whole);
        }
        assert_eq!((whole.worlds, whole.next_seed, whole.faults), (9, 10, 27));
        assert!(
            whole.hours() > 45.0 && whole.reached.missing().len() == ReachedState::ALL.len() - 9,
            "{whole}"
        );
    }

    #[test]
    fn a_text_that_is_cut_off_or_of_other_states_is_no_tally() {
        let text = WorldTally::from_seed(1).to_string();
        for (cut, field) in [
            (text.replace("hash=0", "hash=x"), "hash"),
            (text.replace("next_seed=1", ""), "next_seed"),
            (format!("{text},0"), "reached"),
            (text[..text.len() - 2].to_owned(), "reached"),
            (String::new(), "next_seed"),
        ] {
            let problem = cut.parse::<WorldTally>().map(|tally| tally.to_string());
            assert_eq!(problem, Err(WorldTallyProblem { field }), "{cut}");
        }
    }
}
