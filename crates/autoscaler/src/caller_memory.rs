//! Who keeps a revision awake? Activators name some callers of each second. Nothing is decided by them, so
//! the orchestrator does not hear of them, and no record keeps them.

use std::sync::Arc;
use std::time::Duration;

use orchestration::ControlEvent;
use vocabulary::{ActivatorWord, Caller, RevisionName, SharedMap, Timestamp};

/// How long a caller is kept at least; the window of a revision may be longer.
const KEPT_FOR: Duration = Duration::from_hours(1);

/// The last callers of each revision, the latest first.
pub(crate) type Callers = SharedMap<RevisionName, Arc<[SeenCaller]>>;

/// A caller, and when an autoscaler heard of it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenCaller {
    pub(crate) caller: Caller,
    pub(crate) at: Timestamp,
}

/// What the event loop knows of callers.
#[derive(Debug, Default)]
pub(crate) struct CallerMemory(Callers);

impl CallerMemory {
    /// Takes what an activator says of callers out of its word. Those of revisions that are not ours, such
    /// as of one that is gone when a late word comes, are not kept: nothing would forget them.
    pub(crate) fn take_from(
        &mut self,
        event: &mut ControlEvent,
        is_ours: impl Fn(&RevisionName) -> bool,
        now: Timestamp,
    ) {
        let ControlEvent::ActivatorSpoke { word: ActivatorWord::Loads { loads, .. }, .. } = event else {
            return;
        };
        for load in loads {
            let callers = std::mem::take(&mut load.callers);
            if !callers.is_empty() && is_ours(&load.revision) {
                self.note(&load.revision, callers, now);
            }
        }
    }

    fn note(&mut self, revision: &RevisionName, callers: Vec<Caller>, now: Timestamp) {
        let mut seen: Vec<SeenCaller> =
            callers.into_iter().map(|caller| SeenCaller { caller, at: now }).collect();
        let former = self.0.get(revision).into_iter().flat_map(|former| former.iter());
        for other in former.filter(|other| now.saturating_since(other.at) <= KEPT_FOR) {
            if !seen.iter().any(|known| known.caller == other.caller) {
                seen.push(other.clone());
            }
        }
        seen.truncate(Caller::NAMED_MAX);
        self.0.insert(revision.clone(), seen.into());
    }

    /// Forgets the callers of a revision that is gone.
    pub(crate) fn forget(&mut self, revision: &RevisionName) {
        self.0.remove(revision);
    }

    /// All of them, for readers.
    pub(crate) fn callers(&self) -> &Callers {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::{Load, RevisionLoad};

    use super::*;

    fn name() -> RevisionName {
        RevisionName::new("default", "service", "hello").expect("a name")
    }

    /// An activator names these callers of a second.
    fn word_of(agents: &[&str], second: u64) -> ControlEvent {
        let callers =
            agents.iter().map(|&agent| Caller { user_agent: agent.into(), address: [10, 0, 0, 7].into() });
        let load = RevisionLoad {
            revision: name(),
            load: Load::default(),
            oldest_wait: Duration::ZERO,
            callers: callers.collect(),
        };
        let word = ActivatorWord::Loads { second, loads: vec![load] };
        ControlEvent::ActivatorSpoke { link: orchestration::LinkId(1), word }
    }

    #[test]
    fn a_late_word_of_a_revision_that_is_gone_brings_no_caller_back() {
        let mut memory = CallerMemory::default();
        memory.take_from(&mut word_of(&["a"], 10), |_| true, Timestamp::from_secs(10));
        memory.forget(&name());
        let mut late = word_of(&["a"], 10);
        memory.take_from(&mut late, |_| false, Timestamp::from_secs(11));
        assert!(memory.callers().get(&name()).is_none());
        let ControlEvent::ActivatorSpoke { word: ActivatorWord::Loads { loads, .. }, .. } = late else {
            panic!("it stays a word about a second");
        };
        assert_eq!(loads[0].callers, [], "they leave the word all the same");
    }

    #[test]
    fn callers_are_kept_the_latest_first_and_leave_the_word() {
        let name = name();
        let mut memory = CallerMemory::default();
        let mut hear = |agents: &[&str], second: u64| {
            let mut event = word_of(agents, second);
            memory.take_from(&mut event, |_| true, Timestamp::from_secs(second));
            let ControlEvent::ActivatorSpoke { word: ActivatorWord::Loads { loads, .. }, .. } = event else {
                panic!("it stays a word about a second");
            };
            assert_eq!(loads[0].callers, []);
            let seen = memory.callers().get(&name).cloned().unwrap_or_default();
            seen.iter()
                .map(|seen| (seen.caller.user_agent.to_string(), seen.at.whole_secs()))
                .collect::<Vec<_>>()
        };
        let seen = |agent: &str, at: u64| (agent.to_owned(), at);
        assert_eq!(hear(&["a", "b"], 10), [seen("a", 10), seen("b", 10)]);
        assert_eq!(hear(&["b"], 11), [seen("b", 11), seen("a", 10)]);
        assert_eq!(hear(&[], 12), [seen("b", 11), seen("a", 10)]);
        assert_eq!(hear(&["c", "d", "e", "f"], 13).len(), Caller::NAMED_MAX);
        memory.forget(&name);
        assert!(memory.callers().get(&name).is_none());
    }
}
