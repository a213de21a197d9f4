//! What do our programs know that others must not?
//!
//! Two Secrets in our own namespace, made by the first autoscaler that looks: the key from which each
//! workload's hop key is derived, so that every owner tells the same, and the key by which autoscalers know
//! the slices that they wrote. (By what our programs know each other is in `trust`.)

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use rand::Rng;
use rand::rngs::StdRng;
use ring::hmac;
use thiserror::Error;
use vocabulary::HopKey;

use crate::port_book::WallSeconds;
use crate::slice_key::SliceKey;

/// From which hop keys are derived.
const HOP_KEY: KeySecret = KeySecret { name: "ebb-links", key: "hop-key" };
/// With which slices are signed.
const SLICE_KEY: KeySecret = KeySecret { name: "ebb-slices", key: "slice-key" };
/// What a key has at least.
const KEY_BYTES: usize = 32;

/// A Secret that holds one key.
#[derive(Clone, Copy, Debug)]
struct KeySecret {
    name: &'static str,
    /// Under which the key stands in it.
    key: &'static str,
}

/// Why a Secret is of no use.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The API server did not give or take it.
    #[error("Secret {name} of namespace {namespace}")]
    Request {
        /// The name of the Secret that was read or made.
        name: &'static str,
        /// The namespace of ebb's own programs, where the Secret is.
        namespace: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// Another client wrote something else into the Secret.
    #[error("Secret {name} has no usable {key:?}; delete it, and it is made anew")]
    Content {
        /// The name of the Secret whose content is damaged.
        name: &'static str,
        /// Under which a key was to be.
        key: &'static str,
    },
}

/// The keys that all autoscalers of a cluster share, read from their Secrets.
#[derive(Debug)]
pub(crate) struct Secrets {
    pub(crate) hop_keys: HopKeys,
    pub(crate) slice_key: SliceKey,
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

    /// Those of a workload: that of its present day, which activators send, then those of the days after and
    /// before, which its queue-proxies take too. So nobody need hear of a change at once, and clocks of
    /// autoscalers may be hours apart. By its uid, so that one made anew under the same name has others.
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

impl Secrets {
    /// Reads the Secrets, and makes those that are not there.
    pub(crate) async fn find_or_make(client: Client, namespace: &str) -> Result<Self, SecretError> {
        let api: Api<Secret> = Api::namespaced(client, namespace);
        let hop_key = HOP_KEY.find_or_make(&api, namespace).await?;
        let slice_key = SLICE_KEY.find_or_make(&api, namespace).await?;
        Ok(Self { hop_keys: HopKeys::new(&hop_key), slice_key: SliceKey::new(&slice_key) })
    }
}

impl KeySecret {
    async fn find_or_make(self, api: &Api<Secret>, namespace: &str) -> Result<Vec<u8>, SecretError> {
        let request = |source| {
            let namespace = namespace.to_owned();
            SecretError::Request { name: self.name, namespace, source: Box::new(source) }
        };
        if let Some(secret) = api.get_opt(self.name).await.map_err(request)? {
            return self.read(secret);
        }
        match api.create(&PostParams::default(), &self.make()).await {
            Ok(secret) => self.read(secret),
            // Another autoscaler was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.read(api.get(self.name).await.map_err(request)?)
            }
            Err(error) => Err(request(error)),
        }
    }

    fn read(self, secret: Secret) -> Result<Vec<u8>, SecretError> {
        let key = secret.data.unwrap_or_default().remove(self.key).map(|key| key.0);
        let unusable = SecretError::Content { name: self.name, key: self.key };
        key.filter(|key| key.len() >= KEY_BYTES).ok_or(unusable)
    }

    fn make(self) -> Secret {
        let mut random: StdRng = rand::make_rng();
        let mut key = vec![0; KEY_BYTES];
        random.fill_bytes(&mut key);
        Secret {
            metadata: ObjectMeta { name: Some(self.name.to_owned()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([(self.key.to_owned(), ByteString(key))])),
            ..Secret::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_secret_can_be_read_and_a_damaged_one_is_named() {
        for kind in [HOP_KEY, SLICE_KEY] {
            kind.read(kind.make()).expect("it was made to be read");
            let damaged = BTreeMap::from([(kind.key.to_owned(), ByteString(b"x".to_vec()))]);
            let damaged = Secret { data: Some(damaged), ..Secret::default() };
            let error = kind.read(damaged).expect_err("it is damaged").to_string();
            assert!(error.contains(kind.key) && error.contains(kind.name), "{error}");
        }
    }

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
