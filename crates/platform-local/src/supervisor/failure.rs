//! How a pod failed, and what it had to say before.

use orchestration::AppOutput;

/// How long a failure in one line may be: with the pod's name it fits what links say of a revision (512
/// bytes).
const IN_SHORT_MAX: usize = 400;

/// Why a pod failed, with what it printed last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessFailure {
    /// What happened ("the app exited with code 3").
    pub(crate) reason: String,
    /// The last lines of its standard error, oldest first.
    pub(crate) last_lines: Vec<String>,
}

/// Why a pod is in trouble, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodTrouble {
    /// The reason with what the app, or the one of the pod before, printed last.
    pub(crate) whole: String,
    /// Without a word that an app printed.
    pub(crate) without_output: String,
}

impl PodTrouble {
    /// The trouble that another process noted. An older ebb does not say which part of it an app printed.
    pub(crate) fn taken_over(whole: Option<String>, without_output: Option<String>) -> Option<Self> {
        let without_output = without_output.unwrap_or_else(|| format!("it failed ({})", AppOutput::ADVICE));
        Some(Self { whole: whole?, without_output })
    }

    /// The same trouble, with both texts changed alike.
    pub(crate) fn map(&self, change: impl Fn(&str) -> String) -> Self {
        Self { whole: change(&self.whole), without_output: change(&self.without_output) }
    }
}

impl From<&str> for PodTrouble {
    /// Trouble of which no app had anything to say.
    fn from(text: &str) -> Self {
        Self { whole: text.to_owned(), without_output: text.to_owned() }
    }
}

impl ProcessFailure {
    /// A failure without output of the pod: it printed nothing, or its output is not known.
    pub(crate) fn without_words(reason: &str) -> Self {
        Self { reason: reason.to_owned(), last_lines: Vec::new() }
    }

    /// The trouble of a pod that failed so.
    pub(crate) fn trouble(&self) -> PodTrouble {
        let without_output = if self.words().is_empty() {
            self.reason.clone()
        } else {
            format!("{} ({})", self.reason, AppOutput::ADVICE)
        };
        PodTrouble { whole: self.in_short(), without_output }
    }

    fn words(&self) -> Vec<&str> {
        self.last_lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect()
    }

    /// The reason and the last words in one line.
    pub(crate) fn in_short(&self) -> String {
        let words = self.words();
        if words.is_empty() {
            return self.reason.clone();
        }
        let mut text = format!("{}: {}", self.reason, words.join(" / "));
        if text.len() > IN_SHORT_MAX {
            text.truncate(text.floor_char_boundary(IN_SHORT_MAX));
            text.push('…');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_follow_the_reason_in_one_line_of_bounded_length() {
        let failure = |lines: &[&str]| ProcessFailure {
            reason: "the app exited with code 1".to_owned(),
            last_lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        assert_eq!(failure(&["", "  "]).in_short(), "the app exited with code 1");
        assert_eq!(failure(&["a", " b"]).in_short(), "the app exited with code 1: a / b");
        let long = failure(&["ä".repeat(1000).as_str()]).in_short();
        assert!(long.len() <= IN_SHORT_MAX + '…'.len_utf8() && long.ends_with("ä…"), "{long}");
    }
}
