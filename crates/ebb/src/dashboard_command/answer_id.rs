//! Which answer of a cluster is an event made of? The id of the event says so: the autoscalers that answered,
//! and the number of their snapshot.
//!
//! A page that comes back names the last event that it has. If the same autoscalers answer now, its averages
//! go on; if others do, or one of them began anew, they do not, and the page says so.

use std::fmt;

use autoscaler::api_types::RevisionList;

/// The autoscalers that gave an answer, and its snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnswerId {
    autoscalers: String,
    snapshot: u64,
}

impl AnswerId {
    /// Of an answer that every autoscaler gave its part of; else `None`, for nothing tells whether a silent
    /// one goes on.
    pub(super) fn of(list: &RevisionList) -> Option<Self> {
        if !list.unanswered.is_empty() {
            return None;
        }
        let names: Vec<&str> = list.links.iter().map(|links| links.autoscaler.as_str()).collect();
        Some(Self { autoscalers: names.join("+"), snapshot: list.snapshot })
    }

    /// As a page sends back what stands in an event; `None` for anything else.
    pub(super) fn read(id: &str) -> Option<Self> {
        let (autoscalers, snapshot) = id.rsplit_once('-')?;
        Some(Self { autoscalers: autoscalers.to_owned(), snapshot: snapshot.parse().ok()? })
    }

    /// Whether the later answer is one of the same autoscalers. One that began anew counts from zero again.
    pub(super) fn goes_on_to(&self, later: &Self) -> bool {
        self.autoscalers == later.autoscalers && self.snapshot <= later.snapshot
    }
}

impl fmt::Display for AnswerId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}-{}", self.autoscalers, self.snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_goes_on_after_one_of_the_same_autoscalers_with_a_lower_number() {
        let before = AnswerId::read("autoscaler-7c9-x2+autoscaler-7c9-z8-120").expect("an id");
        assert_eq!(before.to_string(), "autoscaler-7c9-x2+autoscaler-7c9-z8-120");
        for (later, goes_on) in [
            ("autoscaler-7c9-x2+autoscaler-7c9-z8-120", true),
            ("autoscaler-7c9-x2+autoscaler-7c9-z8-121", true),
            ("autoscaler-7c9-x2+autoscaler-7c9-z8-119", false),
            ("autoscaler-7c9-x2-121", false),
        ] {
            let later = AnswerId::read(later).expect("an id");
            assert_eq!(before.goes_on_to(&later), goes_on, "{later}");
        }
        for stranger in ["", "12", "autoscaler-x"] {
            assert_eq!(AnswerId::read(stranger), None, "{stranger:?}");
        }
    }
}
