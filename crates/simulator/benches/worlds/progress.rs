//! How far a run of worlds is, in memory and in a file from which it goes on.

use std::fs;
use std::path::{Path, PathBuf};

use simulator::WorldTally;

use crate::cpu_seconds::cpu_seconds;
use crate::figures::Figure;

/// The goals: simulated hours in an hour of CPU time, and the pods, requests and faults of an hour.
const SPEED_MIN: f64 = 5e4;
const PODS_MIN: f64 = 4.0;
const REQUESTS_MIN: f64 = 1_000.0;
const FAULTS_MIN: f64 = 5.0;

/// How fast worlds ran, and how much there was in an hour of theirs.
#[derive(Clone, Copy, Debug)]
struct WorldRates {
    /// Simulated hours in an hour of CPU time.
    speed: f64,
    pods: f64,
    requests: f64,
    faults: f64,
}

/// A run of worlds, with what came of it so far.
pub(crate) struct WorldProgress {
    pub(crate) tally: WorldTally,
    file: Option<PathBuf>,
    commit: String,
    /// The seconds of a core that the run took before this process.
    cpu_before: f64,
}

impl WorldProgress {
    /// A run that begins, or goes on if the file tells of one. An error is the file with its problem.
    pub(crate) fn begin(file: Option<PathBuf>, commit: &str, first_seed: u64) -> Result<Self, String> {
        let (tally, commit) = (WorldTally::from_seed(first_seed), commit.to_owned());
        let mut progress = Self { tally, file, commit, cpu_before: 0.0 };
        if let Some(file) = progress.file.clone().filter(|file| file.exists()) {
            progress.go_on(&file).map_err(|problem| format!("{}: {problem}", file.display()))?;
            println!("{}", progress.line());
        }
        Ok(progress)
    }

    fn go_on(&mut self, file: &Path) -> Result<(), String> {
        let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
        let field = |name: &str| text.split_whitespace().find_map(|field| field.strip_prefix(name));
        let commit = field("commit=").unwrap_or_default();
        if commit != self.commit {
            let present = &self.commit;
            return Err(format!(
                "it tells of worlds of commit {commit:?}, and this is {present}; name another file"
            ));
        }
        let seconds = field("cpu_seconds=").and_then(|seconds| seconds.parse().ok());
        self.cpu_before = seconds.ok_or("it has no number cpu_seconds; name another file")?;
        self.tally = text.parse::<WorldTally>().map_err(|problem| format!("{problem}; name another file"))?;
        Ok(())
    }

    /// Writes down how far the run is, whole or not at all.
    pub(crate) fn note(&self) {
        let Some(file) = &self.file else { return };
        let (commit, seconds, tally) = (&self.commit, self.cpu_seconds(), &self.tally);
        let new = file.with_extension("new");
        let text = format!("commit={commit} cpu_seconds={seconds:.1} {tally}\n");
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, file));
        if let Err(error) = written {
            eprintln!("{}: {error}; the run goes on, and how far it is stays unknown", file.display());
        }
    }

    /// What a person sees of the run.
    pub(crate) fn line(&self) -> String {
        let (tally, hours, seconds) = (&self.tally, self.tally.hours(), self.cpu_seconds());
        let WorldRates { speed, pods, requests, faults } = self.rates();
        format!(
            "{} worlds, {hours:.0} hours in {seconds:.0} s of a core ({speed:.0} hours per CPU hour); in an \
             hour {pods:.1} pods, {requests:.0} requests, {faults:.1} faults; the next seed is {}; hash {:016x}",
            tally.worlds, tally.next_seed, tally.hash,
        )
    }

    /// What became of the goals beside the laws. Worlds in which little happens would prove little.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let WorldRates { speed, pods, requests, faults } = self.rates();
        let at_least = |goal: &str, found: f64, least: f64| Figure {
            goal: goal.to_owned(),
            found: format!("{found:.1} (at least {least})"),
            at_most: None,
            is_met: found >= least,
        };
        let missing = u32::try_from(self.tally.reached.missing().len()).unwrap_or(u32::MAX);
        vec![
            at_least("simulated hours in an hour of CPU time", speed, SPEED_MIN),
            at_least("pods: in an hour of a world", pods, PODS_MIN),
            at_least("requests: in an hour of a world", requests, REQUESTS_MIN),
            at_least("faults: in an hour of a world", faults, FAULTS_MIN),
            Figure::at_most("states that no world has reached", missing.into(), 0.0),
        ]
    }

    fn rates(&self) -> WorldRates {
        let (tally, hours) = (&self.tally, self.tally.hours());
        WorldRates {
            speed: hours / self.cpu_seconds() * 3_600.0,
            pods: tally.pod_time.as_secs_f64() / tally.simulated.as_secs_f64(),
            requests: real(tally.requests) / hours,
            faults: real(tally.faults) / hours,
        }
    }

    fn cpu_seconds(&self) -> f64 {
        self.cpu_before + cpu_seconds()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count is printed with three digits")]
fn real(count: u64) -> f64 {
    count as f64
}
