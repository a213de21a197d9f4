//! Takes one setting after the other out of a map of strings and collects what is wrong, instead of stopping
//! at the first mistake.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{
    BurstCapacity, CheckedValue, DurationError, Findings, HeadSizeLimit, IgnoredUserAgents, MilliValue,
    Percentage, PodCount, Problem, UserAgentsError, parse_duration, parse_quantity, printable, shown,
};

use super::class::Class;
use super::hourly_price::{HourlyPrice, PRICE_FORM};
use super::keys::{CONFIG_MAP_NAME, SettingKey};
use super::limits::{self, Limit};
use super::numbers::{self, NumberError};
use super::resource_amount::ResourceAmount;
use crate::hpa::reading::{HpaDocument, read_annotation};

/// The place of the strings, by which messages name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsPlace {
    /// The annotations of a pod template; values are taken as they are.
    Annotations,
    /// The data of the ConfigMap. As with Knative, space around a word is ignored; around a number or a
    /// switch it is refused.
    ConfigMap,
}

impl SettingsPlace {
    /// `annotation X` or `key X of ConfigMap config-autoscaler`.
    pub(super) fn name(self, key: &str) -> String {
        let key = printable(key);
        match self {
            Self::Annotations => format!("annotation {key}"),
            Self::ConfigMap => format!("key {key} of ConfigMap {CONFIG_MAP_NAME}"),
        }
    }
}

/// A setting that is present, with the key under which it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenSetting<'a> {
    /// The spelling that was used.
    pub(super) key: &'a str,
    pub(super) value: &'a str,
}

/// Reads settings; see the module.
pub(super) struct SettingsReader<'a> {
    place: SettingsPlace,
    values: &'a BTreeMap<String, String>,
    findings: Findings,
}

impl<'a> SettingsReader<'a> {
    pub(super) fn new(place: SettingsPlace, values: &'a BTreeMap<String, String>) -> Self {
        Self { place, values, findings: Findings::default() }
    }

    /// The setting under its present name, else under its old one, as Knative looks it up.
    pub(super) fn entry(&self, key: &SettingKey) -> Option<WrittenSetting<'a>> {
        [Some(key.name), key.old].into_iter().flatten().find_map(|name| {
            let (key, value) = self.values.get_key_value(name)?;
            Some(WrittenSetting { key, value })
        })
    }

    /// A setting that is a number or a switch, which have nothing around them. A value in block style (`|`)
    /// ends in a line break.
    fn tight_entry(&mut self, key: &SettingKey) -> Option<WrittenSetting<'a>> {
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

    /// Reads a number of pods within the limit.
    pub(super) fn count(&mut self, key: &SettingKey, limit: &Limit<i64>) -> Option<PodCount> {
        let count = self.limited(key, limit, numbers::integer)?;
        Some(PodCount::new(u32::try_from(count).expect("every limit of counts starts at 0 or above")))
    }

    /// A finite decimal number; a hexadecimal one gets a warning and counts as absent.
    pub(super) fn float(&mut self, key: &SettingKey, limit: &Limit<f64>) -> Option<f64> {
        if let Some(written) = self.entry(key).filter(|entry| numbers::is_hexadecimal_float(entry.value)) {
            let flaw = format!(
                "is {}, a hexadecimal number, which is retired and has no effect; write a decimal number, for the next version refuses it",
                shown(written.value)
            );
            self.warn(written.key, &flaw);
            return None;
        }
        self.limited(key, limit, numbers::float)
    }

    /// A percentage as a person writes it.
    pub(super) fn percentage(&mut self, key: &SettingKey, limit: &Limit<f64>) -> Option<Percentage> {
        let value = self.float(key, limit)?;
        Some(
            Percentage::new(value).expect("every limit of percentages starts above 0 and numbers are finite"),
        )
    }

    /// Reads a target burst capacity: a number of requests, or -1 for a capacity without a limit.
    pub(super) fn burst_capacity(&mut self, key: &SettingKey, limit: &Limit<f64>) -> Option<BurstCapacity> {
        let value = self.float(key, limit)?;
        Some(BurstCapacity::new(value).expect("the limit lets -1 and non-negative numbers through"))
    }

    /// Reads a switch, in any of Go's spellings of true and false.
    pub(super) fn boolean(&mut self, key: &SettingKey) -> Option<bool> {
        let entry = self.tight_entry(key)?;
        let value = numbers::boolean(entry.value);
        if value.is_none() {
            self.refuse(entry, "is neither true nor false; write \"true\" or \"false\"");
        }
        value
    }

    /// Reads a duration in Go's grammar, such as `1m30s`, within the limit.
    pub(super) fn duration(&mut self, key: &SettingKey, limit: &Limit<Duration>) -> Option<Duration> {
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

    /// An amount of CPU or memory, as Kubernetes writes it.
    pub(super) fn amount(&mut self, key: &SettingKey, limit: &Limit<MilliValue>) -> Option<ResourceAmount> {
        let (entry, amount) = self.quantity(key, limit)?;
        Some(ResourceAmount::new(entry.value, amount))
    }

    /// The size of a head, as an amount of memory.
    pub(super) fn head_size(&mut self, key: &SettingKey) -> Option<HeadSizeLimit> {
        let (_, amount) = self.quantity(key, &limits::HEAD_SIZE)?;
        let bytes = u32::try_from(amount.value() / 1000).ok().and_then(HeadSizeLimit::new);
        Some(bytes.expect("the limit lets no other sizes through"))
    }

    fn quantity(
        &mut self,
        key: &SettingKey,
        limit: &Limit<MilliValue>,
    ) -> Option<(WrittenSetting<'a>, MilliValue)> {
        let entry = self.tight_entry(key)?;
        match parse_quantity(entry.value) {
            Ok(amount) => Some((entry, self.within(entry, limit, amount)?)),
            // It brings its own remedy.
            Err(error) => {
                self.refuse(entry, &format!("{error} (allowed: {})", limit.words));
                None
            }
        }
    }

    /// Reads a price with its currency; nothing stands for no price.
    pub(super) fn price(&mut self, key: &SettingKey) -> Option<HourlyPrice> {
        let entry = self.tight_entry(key).filter(|entry| !entry.value.is_empty())?;
        match HourlyPrice::parse(entry.value) {
            Ok(price) => Some(price),
            Err(error) => {
                self.refuse(entry, &format!("{error}; write {PRICE_FORM}"));
                None
            }
        }
    }

    /// Reads names of user agents, with commas between them. Space around a name is ignored.
    pub(super) fn user_agents(&mut self, key: &SettingKey) -> Option<IgnoredUserAgents> {
        let entry = self.entry(key)?;
        match entry.value.parse() {
            Ok(agents) => Some(agents),
            // It brings its own remedy.
            Err(error) => {
                let error: UserAgentsError = error;
                self.refuse(entry, &error.to_string());
                None
            }
        }
    }

    /// Reads a word of the form that the limit allows. Space around it is ignored.
    pub(super) fn word(&mut self, key: &SettingKey, limit: &Limit<String>) -> Option<String> {
        let entry = self.entry(key)?;
        self.within(entry, limit, entry.value.trim().to_owned())
    }

    /// Reads the name of a class; an unknown name in Knative's domain is refused.
    pub(super) fn class(&mut self, key: &SettingKey) -> Option<Class> {
        let entry = self.entry(key)?;
        let class = Class::parse(match self.place {
            SettingsPlace::ConfigMap => entry.value.trim(),
            SettingsPlace::Annotations => entry.value,
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

    /// A document of class hpa. Its findings name places inside it, and belong to its key.
    pub(super) fn document(&mut self, key: &SettingKey) -> Option<HpaDocument> {
        let entry = self.entry(key)?;
        let of_key = |found: Problem| Problem { key: entry.key.to_owned(), ..found };
        match read_annotation(entry.value) {
            Ok(checked) => {
                self.findings.warnings.extend(checked.warnings.into_iter().map(of_key));
                Some(checked.value)
            }
            Err(problems) => {
                self.findings.problems.extend(problems.into_iter().map(of_key));
                None
            }
        }
    }

    fn limited<Value>(
        &mut self,
        key: &SettingKey,
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

    fn within<Value>(
        &mut self,
        entry: WrittenSetting<'a>,
        limit: &Limit<Value>,
        value: Value,
    ) -> Option<Value> {
        if (limit.allows)(&value) {
            return Some(value);
        }
        self.refuse(entry, &format!("is out of range; write {}", limit.words));
        None
    }

    /// Refuses a setting: `flaw` continues the sentence that names it and ends in the remedy.
    pub(super) fn refuse(&mut self, entry: WrittenSetting<'_>, flaw: &str) {
        let message = format!("{} is {}, which {flaw}", self.place.name(entry.key), shown(entry.value));
        self.findings.problems.push(Problem { key: entry.key.to_owned(), message });
    }

    /// Refuses a setting that is known to be present, as the user spelt it.
    pub(super) fn refuse_present(&mut self, key: &SettingKey, flaw: &str) {
        let entry = self.entry(key).expect("the caller saw a value that is not the default");
        self.refuse(entry, flaw);
    }

    /// Warns of a setting that is known to be present, as the user spelt it.
    pub(super) fn warn_present(&mut self, key: &SettingKey, flaw: &str) {
        let entry = self.entry(key).expect("the caller saw a value that is not the default");
        self.warn(entry.key, flaw);
    }

    /// The place of a key, by which messages name it.
    pub(super) fn place_of(&self, key: &str) -> String {
        self.place.name(key)
    }

    /// Adds problems that another reader found with the value of a key.
    pub(super) fn refuse_all_of(&mut self, key: &SettingKey, problems: Vec<Problem>) {
        let of_key = |found: Problem| Problem { key: key.name.to_owned(), ..found };
        self.findings.problems.extend(problems.into_iter().map(of_key));
    }

    /// Adds problems that another reader found.
    pub(super) fn refuse_all(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.findings.problems.extend(problems);
    }

    /// Refuses a key; `flaw` continues the sentence that names it.
    pub(super) fn refuse_key(&mut self, key: &str, flaw: &str) {
        let message = format!("{} {flaw}", self.place.name(key));
        self.findings.problems.push(Problem { key: key.to_owned(), message });
    }

    /// Accepts a setting with a word about it; `flaw` continues the sentence that names the key.
    pub(super) fn warn(&mut self, key: &str, flaw: &str) {
        let message = format!("{} {flaw}", self.place.name(key));
        self.findings.warnings.push(Problem { key: key.to_owned(), message });
    }

    /// Warns of old spellings that are not looked at, because the present one stands beside them.
    pub(super) fn warn_of_shadowed(&mut self, keys: &[SettingKey]) {
        for key in keys {
            let Some(old) = key.old else { continue };
            if self.values.contains_key(key.name) && self.values.contains_key(old) {
                self.warn(old, &format!("is ignored, because {} is set too; remove it", key.name));
            }
        }
    }

    /// Whether nothing was found wrong with any of these, so that a rule about them together says something
    /// new.
    pub(super) fn are_sound(&self, keys: &[&SettingKey]) -> bool {
        let mut names = keys.iter().flat_map(|key| [Some(key.name), key.old]).flatten();
        names.all(|name| self.findings.problems.iter().all(|problem| problem.key != name))
    }

    /// The result: the value, or everything that is wrong.
    pub(super) fn finish<Value>(self, value: Value) -> Result<CheckedValue<Value>, Vec<Problem>> {
        self.findings.finish(value)
    }
}
