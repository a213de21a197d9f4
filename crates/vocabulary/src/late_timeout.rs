//! What becomes of a response that has begun when the time of its request is up?

use serde::{Deserialize, Serialize};

/// The end of a response that has begun, once the time of its request is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LateTimeout {
    /// It is broken off visibly, so that what is cut short does not look whole.
    #[default]
    Reset,
    /// A text is appended, and the response ends as if it were whole, as in Knative. One that announced its
    /// length is broken off all the same.
    Append,
}

impl LateTimeout {
    /// Reads the word by which people choose it; `None` for any other.
    pub fn read(word: &str) -> Option<Self> {
        match word {
            "reset" => Some(Self::Reset),
            "append" => Some(Self::Append),
            _ => None,
        }
    }

    /// Whether the text is appended: the form in which links and records carry the choice.
    pub fn appends(self) -> bool {
        self == Self::Append
    }

    /// The choice that [`LateTimeout::appends`] tells.
    pub fn of_append(appends: bool) -> Self {
        if appends { Self::Append } else { Self::Reset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_read_and_carried() {
        assert_eq!(LateTimeout::read("reset"), Some(LateTimeout::Reset));
        assert_eq!(LateTimeout::read("append"), Some(LateTimeout::Append));
        assert_eq!(LateTimeout::read("Append"), None);
        for choice in [LateTimeout::Reset, LateTimeout::Append] {
            assert_eq!(LateTimeout::of_append(choice.appends()), choice);
        }
    }
}
