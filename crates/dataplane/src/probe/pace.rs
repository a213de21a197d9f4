//! How often an app is asked.

use std::time::Duration;

use super::Probe;

const FASTEST: Duration = Duration::from_millis(1);
const FAST_UNTIL: Duration = Duration::from_secs(5);
const FAST_AT_MOST: Duration = Duration::from_millis(10);
const SLOW_AT_MOST: Duration = Duration::from_millis(100);
/// The shortest wait between two questions that each start a process.
const COSTLY_AT_LEAST: Duration = Duration::from_millis(100);
/// The same where a container engine starts it, which costs ten times as much.
const COSTLIER_AT_LEAST: Duration = Duration::from_secs(1);
/// For probes without a period of their own.
const PERIOD: Duration = Duration::from_secs(1);

/// The waits between questions. While the app is not ready it is asked after 1 ms, doubling to 10 ms until it
/// was ready once or 5 s have passed, and to 100 ms from then on; while it is ready, once per period.
#[derive(Clone, Debug)]
pub struct ProbePace {
    period: Duration,
    at_least: Duration,
    next: Duration,
    waited: Duration,
    was_ready: bool,
}

impl ProbePace {
    /// The pace of an app that has just been started.
    pub fn new(probe: &Probe) -> Self {
        Self {
            period: probe.period.unwrap_or(PERIOD),
            at_least: match (probe.is_costly(), probe.is_run_by_engine) {
                (true, true) => COSTLIER_AT_LEAST,
                (true, false) => COSTLY_AT_LEAST,
                (false, _) => FASTEST,
            },
            next: FASTEST,
            waited: Duration::ZERO,
            was_ready: false,
        }
    }

    /// The wait after a question to an app that is not ready (yet, or any more).
    pub fn while_unready(&mut self) -> Duration {
        let is_hurried = !self.was_ready && self.waited < FAST_UNTIL;
        let at_most = if is_hurried { FAST_AT_MOST } else { SLOW_AT_MOST };
        let wait = self.next.min(at_most).max(self.at_least);
        self.next = wait.saturating_mul(2);
        self.waited += wait;
        wait
    }

    /// The wait after a question to a ready app. An app that fails later is asked without hurry: its requests
    /// go to other pods.
    pub fn while_ready(&mut self) -> Duration {
        self.was_ready = true;
        self.next = FAST_AT_MOST;
        self.period
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Check, ContainerNetwork};
    use super::*;

    #[test]
    fn hurries_at_first_and_calms_down() {
        let mut pace = ProbePace::new(&Probe::none());
        let first: Vec<u128> = (0..6).map(|_| pace.while_unready().as_millis()).collect();
        assert_eq!(first, [1, 2, 4, 8, 10, 10]);
        let mut waited = Duration::from_millis(35);
        while waited < Duration::from_secs(5) {
            waited += pace.while_unready();
        }
        let later: Vec<u128> = (0..5).map(|_| pace.while_unready().as_millis()).collect();
        assert_eq!(later, [20, 40, 80, 100, 100]);
    }

    #[test]
    fn asks_a_ready_app_once_per_period() {
        let probe = Probe { period: Some(Duration::from_secs(10)), ..Probe::none() };
        let mut pace = ProbePace::new(&probe);
        assert_eq!(pace.while_ready().as_secs(), 10);
        let after: Vec<u128> = (0..5).map(|_| pace.while_unready().as_millis()).collect();
        assert_eq!(after, [10, 20, 40, 80, 100]);
    }

    #[test]
    fn starts_processes_ten_times_a_second_at_most() {
        let check = Check::Exec { command: vec!["true".to_owned()] };
        let probe = Probe { check, ..Probe::none() };
        let mut pace = ProbePace::new(&probe);
        assert!((0..100).all(|_| pace.while_unready().as_millis() == 100));
        let mut pace = ProbePace::new(&probe.in_network(1, ContainerNetwork::Host));
        assert!((0..100).all(|_| pace.while_unready().as_secs() == 1), "in containers once a second");
        let tcp = Probe::none().in_network(1, ContainerNetwork::Bridge);
        assert_eq!(ProbePace::new(&tcp).while_unready().as_millis(), 1);
    }
}
