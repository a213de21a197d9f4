//! Which keys do activators show pods, and with which do autoscalers sign slices?
//!
//! Each workload's hop keys are derived from one key, so that every owner tells the same.

use std::time::Duration;

use ring::hmac;
use vocabulary::HopKey;

use crate::port_book::WallSeconds;
use crate::slice_key::SliceKey;

/// The keys that all autoscalers of a cluster share.
#[derive(Debug)]
pub struct ClusterKeys {
    pub(crate) hop_keys: HopKeys,
    pub(crate) slice_key: SliceKey,
}

impl ClusterKeys {
    /// By the bytes of two Secrets: that of links, and that of slices.
    pub fn new(hop_key: &[u8], slice_key: &[u8]) -> Self {
        Self { hop_keys: HopKeys::new(hop_key), slice_key: SliceKey::new(slice_key) }
    }
}

/// How often a workload's keys may change. Each does so once a day, in a turn that its uid says: all at
/// midnight would be one burst of messages to every pod.
const TURN: Duration = Duration::from_mins(15);
const TURNS_A_DAY: u64 = 96;

/// Which quarter of an hour it is, counted from 1970: by it workloads' days begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyTurn(u64);

impl KeyTurn {
    pub(crate) fn at(wall: WallSeconds) -> Self {
        Self(wall.0 / TURN.as_secs())
    }

    /// How long it is until the next one.
    pub(crate) fn rest_of(wall: WallSeconds) -> Duration {
        Duration::from_secs(TURN.as_secs() - wall.0 % TURN.as_secs())
    }
}

/// Derives each workload's hop keys.
#[derive(Clone, Debug)]
pub(crate) struct HopKeys(hmac::Key);

impl HopKeys {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The keys of a workload: that of its present day, which activators send, then those of the days after
    /// and before, which its queue-proxies take too. So no program need hear of a change at once, and clocks
    /// of autoscalers may be hours apart. By its uid, so that a workload made anew under the same name has
    /// others.
    pub(crate) fn of(&self, uid: &str, turn: KeyTurn) -> Vec<HopKey> {
        let day = self.day(uid, turn);
        [day, day + 1, day.saturating_sub(1)].map(|day| self.of_day(uid, day)).into()
    }

    /// The workload's own day, counted from 1970.
    pub(crate) fn day(&self, uid: &str, turn: KeyTurn) -> u64 {
        let tag = hmac::sign(&self.0, uid.as_bytes());
        let begins_earlier = u64::from(tag.as_ref()[0]) % TURNS_A_DAY;
        (turn.0 + begins_earlier) / TURNS_A_DAY
    }

    fn of_day(&self, uid: &str, day: u64) -> HopKey {
        let tag = hmac::sign(&self.0, format!("{uid}/{day}").as_bytes());
        let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("half a byte");
        HopKey::new(tag.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_keys_are_a_workloads_own_and_the_same_for_every_owner() {
        let [one, same, other] = [b"k", b"k", b"o"].map(|key| HopKeys::new(key));
        let turn = KeyTurn::at(WallSeconds(1_800_000_000));
        assert_eq!(one.of("u1", turn), same.of("u1", turn));
        assert_ne!(one.of("u1", turn), one.of("u2", turn));
        assert_ne!(one.of("u1", turn), other.of("u1", turn));
    }

    #[test]
    fn hop_keys_are_those_of_a_day_and_its_neighbours() {
        let (keys, uid) = (HopKeys::new(b"key"), "The quick brown fox jumps over the lazy dog");
        // Its tag begins with 247, so its days begin 247 - 2 * 96 = 55 turns before midnight.
        let day = 86_400;
        let begins = 12 * day - 55 * TURN.as_secs();
        let exposed = |wall: u64| -> Vec<String> {
            let turn = KeyTurn::at(WallSeconds(wall));
            keys.of(uid, turn).iter().map(|key| key.expose().to_owned()).collect()
        };
        // Computed with Python's hmac.
        let [before, present, after] = [
            "593ac717863e49cffdad1823ef106346c23a06d8d034dd54009f74d9fc24b721",
            "76307bb2c9e46f682386b64d2277402ecc1bc9bbd3caa774950b303bfec0e159",
            "e95ef98deeceabea5a4fef657cbc3c1ca8a883b1145c7090f5f8e44e27cc6931",
        ];
        assert_eq!(exposed(begins), [present, after, before]);
        assert_eq!(exposed(begins + day - 1), [present, after, before]);
        // A peer that still sends the former key, or sends the next one already, is known at either side.
        assert_eq!(exposed(begins - 1)[..2], [before, present]);
        assert_eq!(exposed(begins + day)[0], after);
        assert_eq!(exposed(begins + day)[2], present);
    }

    #[test]
    fn days_begin_spread_over_the_day() {
        let keys = HopKeys::new(b"key");
        let changes = |turn: u64| {
            let uids = (0..960).map(|number| format!("uid-{number}"));
            uids.filter(|uid| keys.day(uid, KeyTurn(turn)) != keys.day(uid, KeyTurn(turn + 1))).count()
        };
        let changes: Vec<usize> = (0..TURNS_A_DAY).map(changes).collect();
        assert_eq!(changes.iter().sum::<usize>(), 960, "each once a day");
        assert!(changes.iter().all(|&changes| changes < 50), "{changes:?}");
        assert_eq!(KeyTurn::rest_of(WallSeconds(901)), Duration::from_secs(899));
    }
}
