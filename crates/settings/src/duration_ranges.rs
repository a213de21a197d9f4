//! Between which lengths may a duration be? For those that bring durations of other projects into range.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::keys::annotation as keys;
use crate::limits;

/// The range of an annotation whose durations other projects do not limit so: the window, the retention of
/// the last pod, and how often class hpa looks. `None` for any other annotation.
pub fn duration_range(annotation: &str) -> Option<RangeInclusive<Duration>> {
    let ranges = [
        (keys::WINDOW, limits::WINDOW_RANGE),
        (keys::POD_RETENTION, limits::HOUR_RANGE),
        (keys::HPA_SYNC_PERIOD, limits::SYNC_PERIOD_RANGE),
    ];
    ranges.into_iter().find(|(key, _)| key.name == annotation).map(|(_, range)| range)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use vocabulary::format_duration;

    use super::*;
    use crate::{Class, ClusterConfig, RevisionSettings};

    #[test]
    fn the_ends_of_a_range_are_accepted_and_what_lies_beyond_is_not() {
        for key in [keys::WINDOW, keys::POD_RETENTION, keys::HPA_SYNC_PERIOD] {
            let range = duration_range(key.name).expect("it has a range");
            let is_accepted = |duration: Duration| {
                let mut annotations = BTreeMap::from([(key.name.to_owned(), format_duration(duration))]);
                if key == keys::HPA_SYNC_PERIOD {
                    let of_class =
                        [(keys::CLASS, Class::Hpa.name()), (keys::METRIC, "cpu"), (keys::TARGET, "70")];
                    annotations.extend(of_class.map(|(key, text)| (key.name.to_owned(), text.to_owned())));
                }
                RevisionSettings::read(&annotations, &ClusterConfig::default(), None).is_ok()
            };
            assert!(is_accepted(*range.start()) && is_accepted(*range.end()), "{}", key.name);
            assert!(!is_accepted(*range.end() + Duration::from_secs(1)), "{}", key.name);
            if let Some(shorter) = range.start().checked_sub(Duration::from_secs(1)) {
                assert!(!is_accepted(shorter), "{}", key.name);
            }
        }
        assert_eq!(duration_range("ebb.dev/paused"), None);
    }
}
