//! Which notes of ports stand on the Lease, as a text that people read?

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use vocabulary::BUCKETS_ANNOTATION;

use crate::slice_key::ClaimNumber;

/// Keys and values of our own annotations of a Lease.
pub type LeaseNotes = BTreeMap<String, String>;

const NEXT: &str = "ebb.dev/ports-next";
const GIVEN: &str = "ebb.dev/ports-given";
const RESTING: &str = "ebb.dev/ports-resting";
const NUMBER: &str = "ebb.dev/ports-number";
const UNSIGNED_UNTIL: &str = "ebb.dev/ports-unsigned-until";

/// How long slices of a version that signed none are believed at most, from when the first owner that signs
/// takes a bucket over: it signs them within seconds, and an owner that follows it meanwhile finds some of
/// each.
const UNSIGNED_FOR: Duration = Duration::from_hours(1);

const OURS: [&str; 6] = [NEXT, GIVEN, RESTING, NUMBER, UNSIGNED_UNTIL, BUCKETS_ANNOTATION];

/// Seconds since 1970: what rests does so across owners, which share no other clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallSeconds(pub u64);

impl WallSeconds {
    /// A time before 1970 is the beginning of 1970.
    pub fn of(wall: jiff::Timestamp) -> Self {
        Self(u64::try_from(wall.as_second()).unwrap_or_default())
    }

    /// The time that is so much later.
    #[must_use]
    pub fn later(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_secs()))
    }

    /// How long after that it is; zero for what is before.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }
}

/// The ports of a bucket, as its next owner must know them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortNotes {
    /// Where the round goes on.
    pub(crate) next: Option<u16>,
    pub(crate) given: BTreeSet<u16>,
    pub(crate) resting: BTreeMap<u16, WallSeconds>,
    /// That of the latest claim.
    pub(crate) number: Option<ClaimNumber>,
    /// Until when slices that are not signed are believed; `None` where no owner has signed any.
    pub(crate) unsigned_until: Option<WallSeconds>,
}

impl PortNotes {
    /// A note that cannot be read is left out: another client wrote it.
    pub(crate) fn read(notes: &LeaseNotes) -> Self {
        let text = |key: &str| notes.get(key).map_or("", String::as_str);
        let parts = |key: &str| text(key).split(',').map(str::trim).filter(|part| !part.is_empty());
        let resting = parts(RESTING).filter_map(|part| {
            let (port, until) = part.split_once('@')?;
            Some((port.parse().ok()?, WallSeconds(until.parse().ok()?)))
        });
        Self {
            next: text(NEXT).parse().ok(),
            given: parts(GIVEN).filter_map(range).flatten().collect(),
            resting: resting.collect(),
            number: text(NUMBER).parse().ok().map(ClaimNumber),
            unsigned_until: text(UNSIGNED_UNTIL).parse().ok().map(WallSeconds),
        }
    }

    /// Until when the next owner believes slices that are not signed, where these are the notes on the
    /// bucket's own Lease and `elsewhere` those on all others. Only a version before signatures left such
    /// slices, and that version noted the ports that it gave: where no Lease has such notes, none was here.
    pub(crate) fn unsigned_until(&self, elsewhere: &[Self], now: WallSeconds) -> WallSeconds {
        if let Some(until) = self.unsigned_until {
            return until;
        }
        if self.number.is_some() {
            return now;
        }
        // The slices of a bucket that is new are of the time with fewer buckets, so other Leases count.
        if std::iter::once(self).chain(elsewhere).any(Self::is_of_unsigned_version) {
            return now.later(UNSIGNED_FOR);
        }
        elsewhere.iter().filter_map(|notes| notes.unsigned_until).max().unwrap_or(now)
    }

    /// Whether the last owner was of a version that signed no slices.
    fn is_of_unsigned_version(&self) -> bool {
        self.number.is_none() && (self.next.is_some() || !self.given.is_empty())
    }

    /// Whether the notes are empty: no owner has given ports yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_none() && self.number.is_none()
    }

    pub(crate) fn write(&self) -> LeaseNotes {
        let resting = self.resting.iter().map(|(port, until)| format!("{port}@{}", until.0));
        let resting = resting.collect::<Vec<_>>().join(",");
        let next = self.next.map(|next| next.to_string()).unwrap_or_default();
        let number = self.number.map(|number| number.to_string()).unwrap_or_default();
        let unsigned_until = self.unsigned_until.map(|until| until.0.to_string()).unwrap_or_default();
        let notes = [
            (NEXT, next),
            (GIVEN, ranges(&self.given)),
            (RESTING, resting),
            (NUMBER, number),
            (UNSIGNED_UNTIL, unsigned_until),
        ];
        let notes = notes.into_iter().filter(|(_, text)| !text.is_empty());
        notes.map(|(key, text)| (key.to_owned(), text)).collect()
    }

    /// Our own annotations among all of a Lease's.
    pub(crate) fn among(annotations: Option<&BTreeMap<String, String>>) -> LeaseNotes {
        let ours = annotations.into_iter().flatten().filter(|(key, _)| OURS.contains(&key.as_str()));
        ours.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// `10000-10007,10011`: most ports lie side by side.
fn ranges(ports: &BTreeSet<u16>) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for &port in ports {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(port) => *last = port,
            Some(_) | None => ranges.push((port, port)),
        }
    }
    let texts = ranges
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    texts.collect::<Vec<_>>().join(",")
}

fn range(text: &str) -> Option<std::ops::RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallSeconds = WallSeconds(1_000_000);

    fn notes(text: &[(&str, &str)]) -> PortNotes {
        let text = text.iter().map(|(key, value)| (format!("ebb.dev/ports-{key}"), (*value).to_owned()));
        PortNotes::read(&text.collect())
    }

    #[test]
    fn unsigned_slices_are_believed_only_behind_a_version_that_signed_none() {
        let hour = NOW.later(UNSIGNED_FOR);
        let former = notes(&[("next", "10001"), ("given", "10000")]);
        let under_way = notes(&[("next", "10001"), ("number", "2"), ("unsigned-until", "1000060")]);
        let over = notes(&[("next", "10001"), ("number", "2"), ("unsigned-until", "999000")]);
        let none = PortNotes::default();
        let rows = [
            ("a new installation", &none, vec![], NOW),
            ("the first start after the upgrade", &former, vec![], hour),
            ("while slices are being signed", &under_way, vec![former.clone()], WallSeconds(1_000_060)),
            ("after that", &over, vec![former.clone()], WallSeconds(999_000)),
            ("a bucket that came with the upgrade", &none, vec![former.clone()], hour),
            (
                "a bucket that came just after",
                &none,
                vec![over.clone(), under_way.clone()],
                WallSeconds(1_000_060),
            ),
            ("a bucket that came long after", &none, vec![over.clone()], WallSeconds(999_000)),
        ];
        for (case, own, elsewhere, until) in rows {
            assert_eq!(own.unsigned_until(&elsewhere, NOW), until, "{case}");
        }
    }
}
