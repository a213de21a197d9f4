//! Takes one setting after the other out of a map of strings and collects what is wrong, instead of stopping at the first mistake.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{BurstCapacity, DurationError, Percentage, PodCount, parse_duration};

use super::class::Class;
use super::keys::{CONFIG_MAP_NAME, Key};
use super::limits::Limit;
use super::numbers::{self, NumberError};
use super::problem::{Checked, Problem};

/// Longer values are shown cut: a message is one line.
const SHOWN_CHARS_MAX: usize = 80;

/// Where the strings stand; it decides how a message names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The annotations of a pod template; values are taken as they are.
    Annotations,
    /// The data of the ConfigMap. As with Knative, space around a word is ignored; around a number or a switch it is refused.
    ConfigMap,
}

impl Place {
    /// `annotation X` or `key X of ConfigMap config-autoscaler`.
    pub(super) fn name(self, key: &str) -> String {
        let key = printable(key);
        match self {
            Self::Annotations => format!("annotation {key}"),
            Self::ConfigMap => format!("key {key} of ConfigMap {CONFIG_MAP_NAME}"),
        }
    }
}

/// A setting that is present.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    /// The spelling that was used.
    pub(super) key: &'a str,
    pub(super) value: &'a str,
}

/// Reads settings; see the module.
pub(super) struct Reader<'a> {
    place: Place,
    values: &'a BTreeMap<String, String>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(place: Place, values: &'a BTreeMap<String, String>) -> Self {
        Self { place, values, problems: Vec::new(), warnings: Vec::new() }
    }

    /// The setting under its present name, else under its old one, as Knative looks it up.
    pub(super) fn entry(&self, key: &Key) -> Option<Entry<'a>> {
        [Some(key.name), key.old].into_iter().flatten().find_map(|name| {
            let (key, value) = self.values.get_key_value(name)?;
            Some(Entry { key, value })
        })
    }

    /// A setting that is a number or a switch, which have nothing around them. A value in block style (`|`) ends in a line break.
    fn tight_entry(&mut self, key: &Key) -> Option<Entry<'a>> {
        let entry = self.entry(key)?;
        let tight = entry.value.trim();
        if tight.len() == entry.value.len() {
            return Some(entry);
        }
        self.refuse(
            entry,
            &format!("has blanks around it, with which Knative refuses it too; write {}", shown(tight)),
        );
        None
    }

    /// A number of pods.
    pub(super) fn count(&mut self, key: &Key, limit: &Limit<i64>) -> Option<PodCount> {
        let count = self.limited(key, limit, numbers::integer)?;
        Some(PodCount::new(u32::try_from(count).expect("every limit of counts starts at 0 or above")))
    }

    /// A finite number.
    pub(super) fn float(&mut self, key: &Key, limit: &Limit<f64>) -> Option<f64> {
        self.limited(key, limit, numbers::float)
    }

    /// A percentage as a person writes it.
    pub(super) fn percentage(&mut self, key: &Key, limit: &Limit<f64>) -> Option<Percentage> {
        let value = self.float(key, limit)?;
        Some(
            Percentage::new(value).expect("every limit of percentages starts above 0 and numbers are finite"),
        )
    }

    /// A target burst capacity.
    pub(super) fn burst_capacity(&mut self, key: &Key, limit: &Limit<f64>) -> Option<BurstCapacity> {
        let value = self.float(key, limit)?;
        Some(BurstCapacity::new(value).expect("the limit lets -1 and non-negative numbers through"))
    }

    /// True or false.
    pub(super) fn boolean(&mut self, key: &Key) -> Option<bool> {
        let entry = self.tight_entry(key)?;
        let value = numbers::boolean(entry.value);
        if value.is_none() {
            self.refuse(entry, "is neither true nor false; write \"true\" or \"false\"");
        }
        value
    }

    /// A duration.
    pub(super) fn duration(&mut self, key: &Key, limit: &Limit<Duration>) -> Option<Duration> {
        let entry = self.tight_entry(key)?;
        match parse_duration(entry.value) {
            Ok(duration) => self.within(entry, limit, duration),
            Err(DurationError::Negative) => {
                self.refuse(entry, &format!("is negative; write {}", limit.words));
                None
            }
            // The other errors bring their own remedy.
            Err(error) => {
                self.refuse(entry, &format!("{error} (allowed: {})", limit.words));
                None
            }
        }
    }

    /// A word of some form. Nothing around it counts.
    pub(super) fn word(&mut self, key: &Key, limit: &Limit<String>) -> Option<String> {
        let entry = self.entry(key)?;
        self.within(entry, limit, entry.value.trim().to_owned())
    }

    /// The name of an algorithm.
    pub(super) fn class(&mut self, key: &Key) -> Option<Class> {
        let entry = self.entry(key)?;
        let class = Class::parse(match self.place {
            Place::ConfigMap => entry.value.trim(),
            Place::Annotations => entry.value,
        });
        if class.is_none() {
            let (kpa, hpa) = (Class::Kpa, Class::Hpa);
            let flaw = format!(
                "is not a class of Knative's; write {:?} or {:?}, or a name outside knative.dev",
                kpa.name(),
                hpa.name()
            );
            self.refuse(entry, &flaw);
        }
        class
    }

    fn limited<Value>(
        &mut self,
        key: &Key,
        limit: &Limit<Value>,
        parse: fn(&str) -> Result<Value, NumberError>,
    ) -> Option<Value> {
        let entry = self.tight_entry(key)?;
        match parse(entry.value) {
            Ok(value) => self.within(entry, limit, value),
            Err(error) => {
                self.refuse(entry, &format!("{error}; write {}", limit.words));
                None
            }
        }
    }

    fn within<Value>(&mut self, entry: Entry<'a>, limit: &Limit<Value>, value: Value) -> Option<Value> {
        if (limit.allows)(&value) {
            return Some(value);
        }
        self.refuse(entry, &format!("is out of range; write {}", limit.words));
        None
    }

    /// Refuses a setting: `flaw` continues the sentence that names it and ends in the remedy.
    pub(super) fn refuse(&mut self, entry: Entry<'_>, flaw: &str) {
        let message = format!("{} is {}, which {flaw}", self.place.name(entry.key), shown(entry.value));
        self.problems.push(Problem { key: entry.key.to_owned(), message });
    }

    /// Refuses a setting that is known to be present, as the user spelt it.
    pub(super) fn refuse_present(&mut self, key: &Key, flaw: &str) {
        let entry = self.entry(key).expect("the caller saw a value that is not the default");
        self.refuse(entry, flaw);
    }

    /// Warns of a setting that is known to be present, as the user spelt it.
    pub(super) fn warn_present(&mut self, key: &Key, flaw: &str) {
        let entry = self.entry(key).expect("the caller saw a value that is not the default");
        self.warn(entry.key, flaw);
    }

    /// Notes what somebody else found wrong.
    pub(super) fn refuse_all(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.problems.extend(problems);
    }

    /// Refuses a key; `flaw` continues the sentence that names it.
    pub(super) fn refuse_key(&mut self, key: &str, flaw: &str) {
        let message = format!("{} {flaw}", self.place.name(key));
        self.problems.push(Problem { key: key.to_owned(), message });
    }

    /// Accepts a setting with a word about it; `flaw` continues the sentence that names the key.
    pub(super) fn warn(&mut self, key: &str, flaw: &str) {
        let message = format!("{} {flaw}", self.place.name(key));
        self.warnings.push(Problem { key: key.to_owned(), message });
    }

    /// Warns of old spellings that are not looked at, because the present one stands beside them.
    pub(super) fn warn_of_shadowed(&mut self, keys: &[Key]) {
        for key in keys {
            let Some(old) = key.old else { continue };
            if self.values.contains_key(key.name) && self.values.contains_key(old) {
                self.warn(old, &format!("is ignored, because {} is set too; remove it", key.name));
            }
        }
    }

    /// Whether nothing was found wrong with any of these, so that a rule about them together says something new.
    pub(super) fn are_sound(&self, keys: &[&Key]) -> bool {
        let mut names = keys.iter().flat_map(|key| [Some(key.name), key.old]).flatten();
        names.all(|name| self.problems.iter().all(|problem| problem.key != name))
    }

    /// The result: the value, or everything that is wrong.
    pub(super) fn finish<Value>(self, value: Value) -> Result<Checked<Value>, Vec<Problem>> {
        if self.problems.is_empty() {
            Ok(Checked { value, warnings: self.warnings })
        } else {
            Err(self.problems)
        }
    }
}

/// A key cut to a length that can be read and without what would break the line or hide something.
pub(super) fn printable(key: &str) -> String {
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '\u{2028}' | '\u{2029}');
    cut(key)
        .chars()
        .flat_map(|letter| {
            let plain = is_plain(letter).then_some(letter);
            let escaped = if plain.is_none() { Some(letter.escape_unicode()) } else { None };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

/// A value in quotes, on one line.
pub(super) fn shown(value: &str) -> String {
    format!("{:?}", cut(value))
}

fn cut(text: &str) -> String {
    let mut letters = text.chars();
    let mut cut: String = letters.by_ref().take(SHOWN_CHARS_MAX).collect();
    if letters.next().is_some() {
        cut.push('…');
    }
    cut
}
