//! What of a container has not had TERM when its first process has ended?
//!
//! TERM goes to the first process of each container, as in a container: a master tells its own workers, and a
//! second TERM means "at once" to many. A shell or a launcher (`sh -c "export A=1; app"`, `npm start`) tells
//! no other process and ends. What it had started is an orphan then, a child of this process, and gets TERM
//! in its place:
//!
//! ```text
//! TERM ──► sh  (ends)          the grace runs from here, for all of them
//!           └─ npm ◄── TERM    once it is an orphan
//!               └─ node        has its TERM from npm, or once it is an orphan itself
//! ```
//!
//! So each process has TERM once, from its parent or from here. Once nothing is left the pod has ended;
//! each process that is left when the grace of the first TERM is over is killed, and people are told.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vocabulary::Timestamp;

use super::descendants;

/// So many are named when they are killed.
const NAMES_MAX: usize = 3;

/// Which orphans are told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrphanAge {
    /// Orphans whose parent has ended since TERM.
    SinceTerm,
    Any,
}

/// The orphans of containers that were told to end.
#[derive(Debug)]
pub(super) struct Orphans {
    /// They were orphans before TERM (daemons). Their container is not known, and the first process of their
    /// container may tell them itself.
    older: Vec<Pid>,
    told: Vec<Pid>,
    kill_at: Timestamp,
    is_kill_reported: bool,
}

impl Orphans {
    /// The containers have TERM now; whatever is left of them at `kill_at` is killed.
    pub(super) fn at_term(older: Vec<Pid>, kill_at: Timestamp) -> Self {
        Self { older, told: Vec::new(), kill_at, is_kill_reported: false }
    }

    /// When those that are left are killed.
    pub(super) fn kill_at(&self) -> Timestamp {
        // Reported, it is done.
        if self.is_kill_reported { Timestamp::MAX } else { self.kill_at }
    }

    /// Whether their end is still waited for.
    pub(super) fn are_awaited(&self, now: Timestamp) -> bool {
        now < self.kill_at
    }

    /// Tells each of these that has not been told.
    pub(super) fn tell(&mut self, age: OrphanAge, orphans: &[Pid]) {
        for &orphan in orphans {
            let is_of_age = age == OrphanAge::Any || !self.older.contains(&orphan);
            if is_of_age && !self.told.contains(&orphan) {
                // Not collected by us yet, so the number is its own.
                let _ = kill(orphan, Signal::SIGTERM);
                self.told.push(orphan);
            }
        }
    }

    /// A child was collected; its number may soon be another's.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.older.retain(|known| *known != pid);
        self.told.retain(|known| *known != pid);
    }

    /// Whether the grace is over since the last look.
    pub(super) fn is_kill_to_be_reported(&mut self, now: Timestamp) -> bool {
        let is_first = now >= self.kill_at && !self.is_kill_reported;
        self.is_kill_reported |= is_first;
        is_first
    }
}

/// What is killed, for people: the containers whose first process lives, else the processes that are left.
/// `None` if there is nothing to say: no grace at all was asked for, or nothing is left.
pub(super) fn how_killed(containers: &[&str], left: &[Pid], grace: Duration) -> Option<String> {
    if grace.is_zero() {
        return None;
    }
    let (killed, number) = if containers.is_empty() {
        let mut names: Vec<String> = left.iter().filter_map(|&pid| described(pid)).collect();
        let number = names.len();
        names.truncate(NAMES_MAX);
        if number > NAMES_MAX {
            names.push(format!("{} more", number - NAMES_MAX));
        }
        let which = if number == 1 { "which" } else { "all of which" };
        (format!("{}, {which} outlived the first process,", listed(&names)), number)
    } else {
        let names: Vec<String> = containers.iter().map(|&name| name.to_owned()).collect();
        (listed(&names), names.len())
    };
    let verb = if number == 1 { "was" } else { "were" };
    (number > 0).then(|| format!("{killed} {verb} killed {} s after TERM", grace.as_secs()))
}

/// `None` for one that has ended.
fn described(pid: Pid) -> Option<String> {
    let name = descendants::name_of(pid)?;
    Some(format!("{name} (pid {pid})"))
}

fn listed(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(8);

    #[test]
    fn a_kill_names_the_containers_whose_first_process_lives() {
        let said = |containers: &[&str]| how_killed(containers, &[], GRACE);
        assert_eq!(said(&["the app"]).as_deref(), Some("the app was killed 8 s after TERM"));
        assert_eq!(
            said(&["the app", "the container log"]).as_deref(),
            Some("the app and the container log were killed 8 s after TERM")
        );
        assert_eq!(said(&[]), None, "everything has ended");
        assert_eq!(how_killed(&["the app"], &[], Duration::ZERO), None, "no grace was asked for");
    }

    #[test]
    fn a_kill_of_processes_that_are_left_names_the_first_of_them() {
        let own = nix::unistd::getpid();
        let name = descendants::name_of(own).expect("this process lives");
        let named = format!("{name} (pid {own})");
        assert_eq!(
            how_killed(&[], &[own], GRACE),
            Some(format!("{named}, which outlived the first process, was killed 8 s after TERM"))
        );
        let several = how_killed(&[], &[own; 5], GRACE).expect("they live");
        let expected = format!(
            "{named}, {named}, {named} and 2 more, all of which outlived the first process, were killed 8 s after TERM"
        );
        assert_eq!(several, expected);
    }

    #[test]
    fn the_end_of_the_grace_is_reported_once() {
        let at = Timestamp::from_secs;
        let mut orphans = Orphans::at_term(Vec::new(), at(18));
        assert!(orphans.are_awaited(at(17)) && !orphans.is_kill_to_be_reported(at(17)));
        assert_eq!(orphans.kill_at(), at(18));
        assert!(orphans.is_kill_to_be_reported(at(18)) && !orphans.is_kill_to_be_reported(at(19)));
        assert_eq!((orphans.are_awaited(at(18)), orphans.kill_at()), (false, Timestamp::MAX));
    }
}
