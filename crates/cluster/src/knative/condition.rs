//! What does a condition of a Knative object say, and since when?

use std::fmt;

use jiff::Timestamp as WallTime;
use serde_json::{Map, Value, json};

use super::fields::text_at;

/// The conditions of a `PodAutoscaler`, in the order in which they are written: by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionKind {
    /// Whether the revision has the ready pods that it needs.
    Active,
    /// Follows from the three others.
    Ready,
    /// Whether Knative's controller has carried out the spec of the `ServerlessService`.
    ServerlessServiceReady,
    /// Whether the revision ever had as many ready pods as its initial scale asks for.
    ScaleTargetInitialized,
}

impl ConditionKind {
    /// All conditions of a `PodAutoscaler`, by their names.
    pub const ALL: [Self; 4] =
        [Self::Active, Self::Ready, Self::ServerlessServiceReady, Self::ScaleTargetInitialized];

    /// The conditions that `Ready` follows from, in the order in which they count when they change at once.
    pub(crate) const DEPENDENT: [Self; 3] =
        [Self::Active, Self::ScaleTargetInitialized, Self::ServerlessServiceReady];

    /// The name of the condition in the object (`type`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::Ready => "Ready",
            Self::ServerlessServiceReady => "SKSReady",
            Self::ScaleTargetInitialized => "ScaleTargetInitialized",
        }
    }
}

/// The three answers of a condition in Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition is known to hold.
    True,
    /// The condition does not hold.
    False,
    /// The answer is not known yet.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// A status as it is written; any other text means that nothing is known.
    pub(crate) fn read(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        })
    }
}

/// The content of a condition, without its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionWords {
    /// Whether the condition holds, if known.
    pub status: ConditionStatus,
    /// One word for programs; empty where there is none.
    pub reason: String,
    /// A sentence for people; empty where there is none.
    pub message: String,
}

impl ConditionWords {
    pub(crate) fn yes() -> Self {
        Self { status: ConditionStatus::True, ..Self::default() }
    }

    pub(crate) fn no(reason: &str, message: impl Into<String>) -> Self {
        Self { status: ConditionStatus::False, reason: reason.to_owned(), message: message.into() }
    }

    pub(crate) fn unknown(reason: &str, message: impl Into<String>) -> Self {
        Self { status: ConditionStatus::Unknown, reason: reason.to_owned(), message: message.into() }
    }
}

/// A condition, and since when it says the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The content of the condition.
    pub words: ConditionWords,
    /// Since when the content is this one, to the second; `None` where the object does not say.
    pub since: Option<WallTime>,
}

impl Condition {
    /// The condition with these words: its time moves when a word changes, and only then.
    #[must_use]
    pub(crate) fn with_words(&self, words: ConditionWords, now: WallTime) -> Self {
        if self.words == words && self.since.is_some() {
            return self.clone();
        }
        Self { words, since: Some(whole_seconds(now)) }
    }

    /// The condition of this name in an object's status, if it is there.
    pub(crate) fn find(status: &Value, name: &str) -> Option<Self> {
        let all = status.get("conditions")?.as_array()?;
        let found = all.iter().find(|condition| text_at(condition, "type") == name)?;
        Some(Self {
            words: ConditionWords {
                status: ConditionStatus::read(text_at(found, "status")),
                reason: text_at(found, "reason").to_owned(),
                message: text_at(found, "message").to_owned(),
            },
            since: text_at(found, "lastTransitionTime").parse().ok(),
        })
    }

    /// The condition as it is written, without the fields that are empty.
    pub(crate) fn written(&self, kind: ConditionKind) -> Value {
        let mut fields = Map::new();
        fields.insert("type".to_owned(), json!(kind.name()));
        fields.insert("status".to_owned(), json!(self.words.status.to_string()));
        if let Some(since) = self.since {
            fields.insert("lastTransitionTime".to_owned(), json!(whole_seconds(since).to_string()));
        }
        for (key, text) in [("reason", &self.words.reason), ("message", &self.words.message)] {
            if !text.is_empty() {
                fields.insert(key.to_owned(), json!(text));
            }
        }
        Value::Object(fields)
    }
}

/// Kubernetes writes the times of conditions in whole seconds.
fn whole_seconds(at: WallTime) -> WallTime {
    WallTime::from_second(at.as_second()).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> WallTime {
        text.parse().expect("a time")
    }

    #[test]
    fn a_conditions_time_moves_with_its_words_alone_and_is_written_in_seconds() {
        let first = at("2026-11-22T10:00:00.7Z");
        let queued = Condition::default().with_words(ConditionWords::unknown("Queued", "Waits."), first);
        assert_eq!(queued.since, Some(at("2026-11-22T10:00:00Z")));
        let later = at("2026-11-22T10:00:09Z");
        assert_eq!(queued.with_words(queued.words.clone(), later), queued);
        // The same status with another reason, and with another message, is another condition.
        for words in
            [ConditionWords::unknown("Other", "Waits."), ConditionWords::unknown("Queued", "Longer.")]
        {
            assert_eq!(queued.with_words(words, later).since, Some(later));
        }
        let written = queued.written(ConditionKind::Active);
        assert_eq!(
            written,
            json!({"type": "Active", "status": "Unknown", "reason": "Queued", "message": "Waits.",
                "lastTransitionTime": "2026-11-22T10:00:00Z"})
        );
        assert_eq!(Condition::find(&json!({"conditions": [written]}), "Active"), Some(queued));
    }

    #[test]
    fn conditions_are_in_the_order_of_their_names() {
        let names = ConditionKind::ALL.map(ConditionKind::name);
        assert!(names.is_sorted() && ConditionKind::ALL.is_sorted(), "{names:?}");
    }
}
