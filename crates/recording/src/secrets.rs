//! What stands in a record in the place of tokens and keys?
//!
//! Whether a secret is the same as before matters to a replay: a pod whose token changed is linked anew. The
//! secret itself does not, and a record may be sent to people who may not know it. So a hash is recorded,
//! under a key that is drawn at the start and never written.

use std::hash::{BuildHasher as _, RandomState};

use vocabulary::{HopKey, LinkToken};

/// Hashes secrets under the key of one record.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecretHasher(RandomState);

impl SecretHasher {
    /// The hash of a secret: equal for equal secrets of one record.
    pub(crate) fn hash(&self, secret: &[u8]) -> u64 {
        self.0.hash_one(secret)
    }

    /// The key that a reader of the record finds in the place of this one.
    pub(crate) fn hop_key(&self, key: &HopKey) -> HopKey {
        stand_in_key(self.hash(key.expose().as_bytes()))
    }

    /// The token that a reader of the record finds in the place of this one.
    pub(crate) fn token(&self, token: &LinkToken) -> LinkToken {
        stand_in_token(self.hash(token.expose()))
    }
}

/// A key that stands for the one of this hash.
pub(crate) fn stand_in_key(hash: u64) -> HopKey {
    HopKey::new(format!("{hash:016x}"))
}

/// A token that stands for the one of this hash.
pub(crate) fn stand_in_token(hash: u64) -> LinkToken {
    let mut bytes = [0; LinkToken::BYTES];
    bytes[..8].copy_from_slice(&hash.to_be_bytes());
    LinkToken::new(bytes)
}
