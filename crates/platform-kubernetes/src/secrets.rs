//! What do our programs know that others must not?
//!
//! One Secret in our own namespace, made by the first autoscaler that looks: the token by which activators know an autoscaler, and the key from which each
//! workload's hop key is derived, so that every owner tells the same. (Until links are encrypted; then certificates take the token's place.)

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use rand::Rng;
use rand::rngs::StdRng;
use ring::hmac;
use thiserror::Error;
use vocabulary::{HopKey, LinkToken};

/// Mounted by activators, who find the token under [`TOKEN`].
pub(crate) const SECRET: &str = "ebb-links";
const TOKEN: &str = "activator-link-token";
const HOP_KEY: &str = "hop-key";
const HOP_KEY_BYTES: usize = 32;

/// Why the Secret is of no use.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The API server did not give or take it.
    #[error("Secret {SECRET} of namespace {namespace}")]
    Request {
        /// Ours.
        namespace: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// Somebody else wrote something else there.
    #[error("Secret {SECRET} has no usable {0:?}; delete it, and it is made anew")]
    Content(&'static str),
}

/// What is in it.
#[derive(Debug)]
pub(crate) struct Secrets {
    pub(crate) activator_token: LinkToken,
    pub(crate) hop_keys: HopKeys,
}

/// Derives each workload's hop key.
#[derive(Clone, Debug)]
pub(crate) struct HopKeys(hmac::Key);

impl HopKeys {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// By the workload's uid, so that one made anew under the same name has another.
    pub(crate) fn of(&self, uid: &str) -> HopKey {
        let tag = hmac::sign(&self.0, uid.as_bytes());
        let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("half a byte");
        HopKey::new(tag.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
    }
}

impl Secrets {
    /// Reads the Secret, and makes it if there is none.
    pub(crate) async fn find_or_make(client: Client, namespace: &str) -> Result<Self, SecretError> {
        let api: Api<Secret> = Api::namespaced(client, namespace);
        let request =
            |source| SecretError::Request { namespace: namespace.to_owned(), source: Box::new(source) };
        if let Some(secret) = api.get_opt(SECRET).await.map_err(request)? {
            return Self::read(&secret.data.unwrap_or_default());
        }
        match api.create(&PostParams::default(), &new_secret()).await {
            Ok(secret) => Self::read(&secret.data.unwrap_or_default()),
            // Another autoscaler was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Self::read(&api.get(SECRET).await.map_err(request)?.data.unwrap_or_default())
            }
            Err(error) => Err(request(error)),
        }
    }

    fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, SecretError> {
        let value = |name| data.get(name).map(|value| value.0.as_slice()).ok_or(SecretError::Content(name));
        let token = std::str::from_utf8(value(TOKEN)?).ok().and_then(|text| text.trim().parse().ok());
        let hop_key = value(HOP_KEY)?;
        if hop_key.len() < HOP_KEY_BYTES {
            return Err(SecretError::Content(HOP_KEY));
        }
        Ok(Self {
            activator_token: token.ok_or(SecretError::Content(TOKEN))?,
            hop_keys: HopKeys::new(hop_key),
        })
    }
}

fn new_secret() -> Secret {
    let mut random: StdRng = rand::make_rng();
    let mut hop_key = vec![0; HOP_KEY_BYTES];
    random.fill_bytes(&mut hop_key);
    let token = String::from(runtime::new_link_token());
    Secret {
        metadata: ObjectMeta { name: Some(SECRET.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([
            (TOKEN.to_owned(), ByteString(token.into_bytes())),
            (HOP_KEY.to_owned(), ByteString(hop_key)),
        ])),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_can_be_read_and_what_was_damaged_is_named() {
        let data = new_secret().data.expect("it has data");
        Secrets::read(&data).expect("it was made to be read");
        for key in [TOKEN, HOP_KEY] {
            let mut damaged = data.clone();
            damaged.insert(key.to_owned(), ByteString(b"x".to_vec()));
            let error = Secrets::read(&damaged).expect_err("it is damaged").to_string();
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn hop_keys_are_a_workloads_own_and_the_same_for_every_owner() {
        let [one, same, other] = [b"k", b"k", b"o"].map(|key| HopKeys::new(key));
        assert_eq!(one.of("u1"), same.of("u1"));
        assert_ne!(one.of("u1"), one.of("u2"));
        assert_ne!(one.of("u1"), other.of("u1"));
        // RFC 4231 has no vector of this key; this one was computed with Python's hmac.
        assert_eq!(
            HopKeys::new(b"key").of("The quick brown fox jumps over the lazy dog").expose(),
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
        );
    }
}
