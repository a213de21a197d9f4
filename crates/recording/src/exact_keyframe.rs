//! An exact keyframe: the private state of the control loop as bytes.
//!
//! Only the executable that wrote them reads them. Any other one begins with the keyframe that every program
//! reads. Secrets are replaced as in facts, by the same hashes: a fact behind the keyframe that names the
//! same token is no news.

use orchestration::ExactState;

use crate::frame_fault::FrameFault;
use crate::secrets::SecretHasher;

/// A larger state is not written: ten minutes of a large record would be little beside it.
const STATE_BYTES_MAX: usize = 4 << 20;

/// The bytes of a state; `None` if it is too large.
pub(crate) fn state_out(state: &ExactState, secrets: &SecretHasher) -> Option<Vec<u8>> {
    let recorded = state.clone().into_recorded(|key| secrets.hop_key(key), |token| secrets.token(token));
    // Nothing in the state is without a form, so a state that cannot be written does not occur.
    postcard::to_stdvec(&recorded).ok().filter(|bytes| bytes.len() <= STATE_BYTES_MAX)
}

/// The state that this very executable wrote.
pub(crate) fn state_in(bytes: &[u8]) -> Result<ExactState, FrameFault> {
    postcard::from_bytes(bytes).map_err(|error| FrameFault::BadValue {
        field: "an exact keyframe",
        problem: format!("is not the state of this program: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Bytes of no state are refused, or are a state: they end no program that reads them.
        #[test]
        fn bytes_of_no_state_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Err(fault) = state_in(&bytes) {
                prop_assert!(fault.to_string().starts_with("an exact keyframe is not the state"));
            }
        }
    }
}
