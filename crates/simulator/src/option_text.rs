//! How is an option of the command line read that holds several words?
//!
//! A word may come first, then settings, with commas between: `diurnal,peak=200rps,trough=10rps`. What is
//! wrong names the word or the key, the value, what is allowed and, for an unknown word, the nearest one.

use std::time::Duration;

use thiserror::Error;
use vocabulary::{DurationError, RequestRate, did_you_mean, parse_duration, shown};

/// More requests in a second than any simulation gets through.
const RATE_MAX: f64 = 1_000_000.0;
/// The units of a rate, each with its seconds.
const RATE_UNITS: [(&str, f64); 3] = [("rps", 1.0), ("rpm", 60.0), ("rph", 3600.0)];

/// Why the text of an option cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OptionProblem {
    /// The first word is none of those that are allowed.
    #[error("{} is none of {known}{near}", shown(.word))]
    UnknownWord {
        /// The first word as it is written.
        word: String,
        /// The words that are allowed.
        known: String,
        /// The nearest allowed name, or nothing.
        near: String,
    },
    /// A key is none of those that the first word takes.
    #[error("{} is no key here; write {known}{near}", shown(.key))]
    UnknownKey {
        /// The key as it is written.
        key: String,
        /// The keys that are allowed.
        known: String,
        /// The nearest allowed name, or nothing.
        near: String,
    },
    /// A key stands twice, and only one value can apply.
    #[error("{key} stands twice; write it once")]
    RepeatedKey {
        /// The key as it is written.
        key: String,
    },
    /// A key is missing that the first word needs.
    #[error("{key} is missing; write {key}={example}")]
    MissingKey {
        /// The key that is missing.
        key: &'static str,
        /// A value that could stand there.
        example: &'static str,
    },
    /// A part behind the first word has no `=`.
    #[error("{} is no setting; write key=value", shown(.part))]
    NoSetting {
        /// The part as it is written.
        part: String,
    },
    /// A value cannot be used.
    #[error("{key} is {}, which {flaw}", shown(.value))]
    UnusableValue {
        /// The key of the value, or what the value is.
        key: String,
        /// The value as it is written.
        value: String,
        /// Ends the sentence and says what is allowed.
        flaw: String,
    },
}

impl OptionProblem {
    pub(crate) fn unusable(key: &str, value: &str, flaw: &str) -> Self {
        Self::UnusableValue { key: key.to_owned(), value: value.to_owned(), flaw: flaw.to_owned() }
    }

    pub(crate) fn unknown_word(word: &str, known: &[&'static str]) -> Self {
        let near = did_you_mean(word, known.iter().copied());
        Self::UnknownWord { word: word.to_owned(), known: known.join(", "), near }
    }
}

/// How a value is read: an error says what is wrong with it and what is allowed ("is negative").
type ValueReader<Value> = fn(&str) -> Result<Value, String>;

/// A key with the values that it takes.
pub(crate) struct OptionKey<Value> {
    pub(crate) name: &'static str,
    /// A value that could stand there.
    pub(crate) example: &'static str,
    pub(crate) reader: ValueReader<Value>,
}

/// The parts of an option.
#[derive(Clone, Debug)]
pub(crate) struct OptionText<'t> {
    head: Option<&'t str>,
    settings: Vec<(&'t str, &'t str)>,
}

impl<'t> OptionText<'t> {
    pub(crate) fn read(text: &'t str) -> Result<Self, OptionProblem> {
        let mut parts = text.split(',').map(str::trim).peekable();
        let head = parts.next_if(|part| !part.contains('='));
        let settings = parts.map(|part| {
            let setting = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            setting.ok_or_else(|| OptionProblem::NoSetting { part: part.to_owned() })
        });
        Ok(Self { head, settings: settings.collect::<Result<_, _>>()? })
    }

    /// The word that comes first; `None` if a setting does.
    pub(crate) fn head(&self) -> Option<&'t str> {
        self.head
    }

    /// Refuses keys that are not known here, and keys that stand twice.
    pub(crate) fn check_keys(&self, known: &[&'static str]) -> Result<(), OptionProblem> {
        for (at, (key, _)) in self.settings.iter().enumerate() {
            if !known.contains(key) {
                let near = did_you_mean(key, known.iter().copied());
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(OptionProblem::UnknownKey { key: (*key).to_owned(), known, near });
            }
            if self.settings[..at].iter().any(|(before, _)| before == key) {
                return Err(OptionProblem::RepeatedKey { key: (*key).to_owned() });
            }
        }
        Ok(())
    }

    pub(crate) fn required<Value>(&self, key: &OptionKey<Value>) -> Result<Value, OptionProblem> {
        let missing = || OptionProblem::MissingKey { key: key.name, example: key.example };
        self.optional(key)?.ok_or_else(missing)
    }

    pub(crate) fn optional<Value>(&self, key: &OptionKey<Value>) -> Result<Option<Value>, OptionProblem> {
        let Some((_, value)) = self.settings.iter().find(|(written, _)| *written == key.name) else {
            return Ok(None);
        };
        let read = (key.reader)(value);
        read.map(Some).map_err(|flaw| OptionProblem::unusable(key.name, value, &flaw))
    }
}

/// Reads a span of time.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error: DurationError| error.to_string())
}

/// Reads a span of time that is longer than nothing.
pub(crate) fn span_above_zero(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    if span.is_zero() { Err("is no time at all; write something like 10s".to_owned()) } else { Ok(span) }
}

/// Reads a rate with its unit.
pub(crate) fn rate(text: &str) -> Result<RequestRate, String> {
    let advice = || {
        format!(
            "is no rate; write a number from 0 to {RATE_MAX} with rps, rpm or rph, such as 50rps (requests per second, minute, hour)"
        )
    };
    let unit = RATE_UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (number, seconds) = unit.ok_or_else(advice)?;
    let per_second = number.trim().parse::<f64>().map_err(|_| advice())? / seconds;
    let rate = RequestRate::new(per_second).map_err(|_| advice())?;
    if rate.value() > RATE_MAX { Err(advice()) } else { Ok(rate) }
}

/// Reads a rate that is above zero.
pub(crate) fn rate_above_zero(text: &str) -> Result<RequestRate, String> {
    let rate = rate(text)?;
    if rate == RequestRate::ZERO { Err("must be above zero".to_owned()) } else { Ok(rate) }
}

/// Reads a number of things, at least one.
pub(crate) fn count(text: &str) -> Result<u32, String> {
    const MOST: u32 = 1_000_000;
    let count = text.parse().ok().filter(|count| (1..=MOST).contains(count));
    count.ok_or_else(|| format!("must be a whole number from 1 to {MOST}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAK: OptionKey<RequestRate> = OptionKey { name: "peak", example: "200rps", reader: rate };

    fn error_of(text: &str) -> String {
        let peak = OptionText::read(text).and_then(|option| {
            option.check_keys(&["peak", "trough"])?;
            option.required(&PEAK)
        });
        peak.expect_err(text).to_string()
    }

    #[test]
    fn a_first_word_and_settings_are_told_apart() {
        let option = OptionText::read("diurnal, peak=200rps").expect("well formed");
        assert_eq!(option.head(), Some("diurnal"));
        assert_eq!(option.required(&PEAK).map(RequestRate::value), Ok(200.0));
        let option = OptionText::read("peak=30rpm").expect("well formed");
        assert_eq!((option.head(), option.required(&PEAK).map(RequestRate::value)), (None, Ok(0.5)));
    }

    #[test]
    fn an_error_names_key_value_and_what_is_allowed() {
        assert_eq!(
            error_of("diurnal,peek=1rps"),
            "\"peek\" is no key here; write peak, trough; did you mean peak?"
        );
        assert_eq!(error_of("diurnal,peak"), "\"peak\" is no setting; write key=value");
        assert_eq!(error_of("diurnal,trough=1rps"), "peak is missing; write peak=200rps");
        assert_eq!(error_of("diurnal,peak=1rps,peak=2rps"), "peak stands twice; write it once");
        for value in ["200", "rps", "-1rps", "NaNrps", "1e9rps", "200rpx"] {
            let error = error_of(&format!("diurnal,peak={value}"));
            assert!(error.starts_with(&format!("peak is \"{value}\", which is no rate; write")), "{error}");
        }
        let error = OptionProblem::unknown_word("constnt", &["constant", "step"]).to_string();
        assert_eq!(error, "\"constnt\" is none of constant, step; did you mean constant?");
    }

    #[test]
    fn values_have_their_ranges() {
        assert_eq!(span_above_zero("1m").as_ref().map(Duration::as_secs), Ok(60));
        assert!(span_above_zero("0s").is_err() && span("5").is_err());
        assert_eq!(count("50"), Ok(50));
        for text in ["0", "-1", "x", "1000001"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(rate("0rps").is_ok() && rate_above_zero("0rps").is_err());
    }
}
