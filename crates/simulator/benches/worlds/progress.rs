//! How far a run of worlds is, in memory and in a file from which it goes on.

use std::fs;
use std::path::{Path, PathBuf};

use simulator::WorldTally;

use crate::cpu_seconds::cpu_seconds;

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
        format!(
            "{} worlds, {hours:.0} hours in {seconds:.0} s of a core ({:.0} hours per CPU hour); in an hour \
             {:.1} pods, {:.0} requests, {:.1} faults; the next seed is {}; hash {:016x}",
            tally.worlds,
            hours / seconds * 3_600.0,
            tally.pod_time.as_secs_f64() / tally.simulated.as_secs_f64(),
            real(tally.requests) / hours,
            real(tally.faults) / hours,
            tally.next_seed,
            tally.hash,
        )
    }

    fn cpu_seconds(&self) -> f64 {
        self.cpu_before + cpu_seconds()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count is printed with three digits")]
fn real(count: u64) -> f64 {
    count as f64
}
