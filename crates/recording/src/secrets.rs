//! What stands in a record in the place of tokens and keys?
//!
//! Whether a secret is the same as before matters to a replay: a pod whose token changed is linked anew. The
//! secret itself does not, and a record may be sent to people who may not know it. So a hash is recorded,
//! under a key that is drawn at the start and never written.

use std::hash::{BuildHasher as _, RandomState};

/// Hashes secrets under the key of one record.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecretHasher(RandomState);

impl SecretHasher {
    /// The hash of a secret: equal for equal secrets of one record.
    pub(crate) fn hash(&self, secret: &[u8]) -> u64 {
        self.0.hash_one(secret)
    }
}
