//! Conditions as Knative writes them: their time moves when a word of them changes.

use serde_json::{Value, json};

use crate::knative::objects::list;

/// The words of a condition, without its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConditionText<'t> {
    pub(super) kind: &'t str,
    pub(super) status: &'t str,
    pub(super) reason: &'t str,
    pub(super) message: &'t str,
    /// `Info` for a condition that Ready does not depend on; else empty.
    pub(super) severity: &'t str,
}

impl<'t> ConditionText<'t> {
    pub(super) fn new(kind: &'t str, status: &'t str) -> Self {
        Self { kind, status, reason: "", message: "", severity: "" }
    }

    pub(super) fn because(self, reason: &'t str, message: &'t str) -> Self {
        Self { reason, message, ..self }
    }

    pub(super) fn for_information(self) -> Self {
        Self { severity: "Info", ..self }
    }

    /// The same words under another name.
    pub(super) fn renamed(self, kind: &'t str) -> Self {
        Self { kind, ..self }
    }

    fn written(&self, since: &str) -> Value {
        let mut condition = json!({"type": self.kind, "status": self.status, "lastTransitionTime": since});
        let fields = [("reason", self.reason), ("message", self.message), ("severity", self.severity)];
        for (key, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
            condition[key] = json!(text);
        }
        condition
    }
}

/// A condition of an object; Unknown and without a word where it is not written.
pub(super) fn condition<'o>(object: &'o Value, kind: &'o str) -> ConditionText<'o> {
    let Some(found) = found(object, kind) else { return ConditionText::new(kind, "Unknown") };
    let text = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or_default();
    ConditionText {
        kind,
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        severity: text("severity"),
    }
}

/// The list as it is written, sorted by name. A condition whose words stay keeps its time.
pub(super) fn written(object: &Value, wanted: &[ConditionText<'_>], now: &str) -> Value {
    let mut wanted = wanted.to_vec();
    wanted.sort_by_key(|condition| condition.kind);
    let conditions = wanted.iter().map(|wanted| {
        let live = found(object, wanted.kind);
        let is_same = live.is_some() && condition(object, wanted.kind) == *wanted;
        let since = live.filter(|_| is_same).and_then(|live| live["lastTransitionTime"].as_str());
        wanted.written(since.unwrap_or(now))
    });
    conditions.collect()
}

fn found<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    list(object, "/status/conditions").iter().find(|condition| condition["type"] == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_moves_when_a_word_changes() {
        let at = |time: &str, object: &Value, reason: &str| {
            let wanted = ConditionText::new("Ready", "Unknown").because(reason, "It waits.");
            json!({"status": {"conditions": written(object, &[wanted], time)}})
        };
        let first = at("t1", &json!({}), "Deploying");
        let same = at("t2", &first, "Deploying");
        assert_eq!(first, same);
        let changed = at("t3", &same, "Resolving");
        assert_eq!(changed["status"]["conditions"][0]["lastTransitionTime"], "t3");
    }
}
