//! Which secrets do our programs share?
//!
//! Two Secrets in our own namespace, made by the first autoscaler that looks: the key from which each
//! workload's hop key is derived, so that every owner tells the same, and the key by which autoscalers know
//! the slices that they wrote. (By what our programs know each other is in `trust`.)

use std::collections::BTreeMap;

use cluster::ClusterKeys;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use rand::Rng;
use rand::rngs::StdRng;
use thiserror::Error;

/// From which hop keys are derived.
const HOP_KEY: KeySecret = KeySecret { name: "ebb-links", key: "hop-key" };
/// With which slices are signed.
const SLICE_KEY: KeySecret = KeySecret { name: "ebb-slices", key: "slice-key" };
/// The least length of a key.
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
        /// The answer of the API server.
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

/// Reads the Secrets, and makes those that are not there.
pub(crate) async fn find_or_make(client: Client, namespace: &str) -> Result<ClusterKeys, SecretError> {
    let api: Api<Secret> = Api::namespaced(client, namespace);
    let hop_key = HOP_KEY.find_or_make(&api, namespace).await?;
    let slice_key = SLICE_KEY.find_or_make(&api, namespace).await?;
    Ok(ClusterKeys::new(&hop_key, &slice_key))
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
}
