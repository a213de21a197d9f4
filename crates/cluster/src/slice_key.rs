//! How does a slice prove that an autoscaler wrote it?
//!
//! Every client that may write slices in a namespace can write one that looks like ours, and slices say which
//! ports of the activators belong to which Service. So what they say is signed with a key that autoscalers
//! alone have: for this namespace, this Service and these ports, with a number that is greater for what was
//! given later.

use std::fmt;

use ring::hmac;

/// Says for what the key is used, so that nothing else that is ever signed with it passes for this.
const PURPOSE: &str = "ports of activators";

/// The key with which autoscalers sign their `EndpointSlice`s; all of them share it.
#[derive(Clone, Debug)]
pub(crate) struct SliceKey(hmac::Key);

/// Which of two claims is the later one. Numbers grow within a bucket, and the next owner of a bucket goes on
/// beyond all that it finds, of other buckets too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimNumber(pub(crate) u64);

impl ClaimNumber {
    /// That of claims of a version that signed none: less than any other.
    pub(crate) const UNSIGNED: Self = Self(0);

    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for ClaimNumber {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

/// The statement that is signed, beside the number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortStatement<'a> {
    pub(crate) namespace: &'a str,
    /// The uid of the Service to which the slice belongs.
    pub(crate) uid: &'a str,
    /// As it stands on the slice, `KIND/NAME`.
    pub(crate) revision: &'a str,
    /// As they stand on the slice.
    pub(crate) ports: &'a str,
}

impl SliceKey {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// `NUMBER SIGNATURE`, as it is written on a slice.
    pub(crate) fn sign(&self, statement: &PortStatement<'_>, number: ClaimNumber) -> String {
        let signature = hmac::sign(&self.0, &message(statement, number));
        format!("{number} {}", in_digits(signature.as_ref()))
    }

    /// The number, if we have signed this.
    pub(crate) fn verify(&self, statement: &PortStatement<'_>, text: &str) -> Option<ClaimNumber> {
        let (number, signature) = text.split_once(' ')?;
        let number = ClaimNumber(number.parse().ok()?);
        let signature = from_digits(signature)?;
        hmac::verify(&self.0, &message(statement, number), &signature).ok()?;
        (number > ClaimNumber::UNSIGNED).then_some(number)
    }
}

/// As JSON, in which no part can be taken for a piece of its neighbour.
fn message(statement: &PortStatement<'_>, number: ClaimNumber) -> Vec<u8> {
    let PortStatement { namespace, uid, revision, ports } = statement;
    let parts = (PURPOSE, namespace, uid, revision, ports, number.0);
    serde_json::to_vec(&parts).expect("texts and a number can be written")
}

fn in_digits(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("half a byte");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_digits(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATEMENT: PortStatement<'_> =
        PortStatement { namespace: "shop", uid: "u1", revision: "deployment/hello", ports: "http:80=10007" };

    #[test]
    fn a_signature_holds_for_what_was_signed_and_for_nothing_else() {
        let key = SliceKey::new(b"key");
        let text = key.sign(&STATEMENT, ClaimNumber(7));
        assert_eq!(key.verify(&STATEMENT, &text), Some(ClaimNumber(7)));
        let others = [
            PortStatement { namespace: "bank", ..STATEMENT },
            PortStatement { uid: "u2", ..STATEMENT },
            PortStatement { revision: "deployment/other", ..STATEMENT },
            PortStatement { ports: "http:80=10008", ..STATEMENT },
            // The same letters, divided otherwise.
            PortStatement { namespace: "shopu1", uid: "", ..STATEMENT },
        ];
        for other in others {
            assert_eq!(key.verify(&other, &text), None, "{other:?}");
        }
        assert_eq!(SliceKey::new(b"other").verify(&STATEMENT, &text), None);
        let later = text.replacen('7', "8", 1);
        assert_eq!(key.verify(&STATEMENT, &later), None, "the number is signed, too");
        for damaged in ["", "7", "7 ", "7 zz", "x 00", &text[..text.len() - 2], &format!("{text}00")] {
            assert_eq!(key.verify(&STATEMENT, damaged), None, "{damaged:?}");
        }
    }

    #[test]
    fn a_signature_is_that_of_any_other_library() {
        // Computed with Python's hmac over `json.dumps(…, separators=(",", ":"))`.
        let expected = "7 1af9aac89e52b42767b9b88d6bd8570cc0c3d283e73af237534fe8225399f9d0";
        assert_eq!(SliceKey::new(b"key").sign(&STATEMENT, ClaimNumber(7)), expected);
    }
}
