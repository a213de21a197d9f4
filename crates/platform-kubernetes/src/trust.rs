//! Which authority signs the certificates of ebb's programs on links?
//!
//! An authority of our own, which the first replica makes: a Secret with its key, and one for each role with
//! what a program of that role shows. All of them are kept: certificates are renewed after two thirds of
//! their time, and the authority is followed by another one long before it ends (or when an operator puts
//! `ebb.dev/rotate` on its Secret). The old one also signs the new one, so pods that know the old one alone
//! take what the new one signed, until they are replaced. Any replica may do this: a replica that writes over
//! another version than it has read is refused, and reads again.
//!
//! Where a key may have leaked, `ebb.dev/rotate: revoke` makes another authority as well, and the former ones
//! are no roots of anything that is made from then on. Pods that are there know them still, and take the new
//! one's word all the same: until those are replaced, the leaked key commands them too.

mod authority;

use std::time::Duration;

use cluster::WallSeconds;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use thiserror::Error;
use tokio::sync::watch;
use vocabulary::{AUTHORITY_SECRET, LinkRole};

use crate::clocks::wall_seconds;
use authority::{Certificate, LinkAuthority, SecretData};

/// The annotation by which a person asks for another authority.
const ROTATE: &str = "ebb.dev/rotate";
/// And that nothing new goes by those before it.
const REVOKE: &str = "revoke";
/// How often all of it is looked at, which is four requests. As long as Kubernetes itself takes to show
/// programs what has changed.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The wait after something failed. What is shown lasts for days yet.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Two replicas begin at once; neither is refused more often than this.
const ATTEMPTS_MAX: u32 = 5;

/// The certificates that a program shows on links, and the roots by which it knows others, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCertificates {
    /// The program's own certificate, and those that lead to a root.
    pub chain: String,
    /// The private key of that certificate.
    pub key: LinkKey,
    /// The certificates of the authorities that are believed, in PEM.
    pub roots: String,
}

/// A private key in PEM. Never shown in logs.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LinkKey(pub String);

impl std::fmt::Debug for LinkKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("LinkKey(…)")
    }
}

/// Why there are no certificates.
#[derive(Debug, Error)]
pub enum TrustError {
    /// The API server did not give or take a Secret.
    #[error("Secret {name} of namespace {namespace}")]
    Request {
        /// The namespace of ebb's own programs, where the Secret is.
        namespace: String,
        /// The name of the Secret that was read or written.
        name: &'static str,
        /// The answer of the API server.
        #[source]
        source: Box<kube::Error>,
    },
    /// A certificate could not be made.
    #[error("a certificate could not be made")]
    Make(#[from] rcgen::Error),
    /// The Secret cannot be made anew: pods know the authority that it held.
    #[error(
        "Secret {0} is damaged; restore it, or delete it and restart the workloads with queue-proxies, \
         whose pods know the authority that it held"
    )]
    Damaged(&'static str),
    /// Each attempt to write the Secret met a newer version of it.
    #[error("Secret {0} was written by others each time it was tried")]
    Contended(&'static str),
}

/// The keeper of all certificates.
pub(crate) struct Trust {
    client: Client,
    namespace: String,
}

/// The program and the purpose that a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CertificateHolder {
    /// A program at its end of a link.
    Link(LinkRole),
    /// The injector's webhook, which the API server calls.
    Injector,
}

impl CertificateHolder {
    fn secret(self) -> &'static str {
        match self {
            Self::Link(LinkRole::Autoscaler) => "ebb-autoscaler-tls",
            Self::Link(LinkRole::Activator) => "ebb-activator-tls",
            Self::Injector => "ebb-injector-tls",
        }
    }

    /// The one name in its certificate: what it is good for depends on that alone.
    fn name(self, namespace: &str) -> String {
        match self {
            Self::Link(role) => role.name().to_owned(),
            Self::Injector => format!("injector.{namespace}.svc"),
        }
    }
}

impl Trust {
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned() }
    }

    /// Makes what is missing and renews what is due; returns what an autoscaler shows.
    pub(crate) async fn settle(&self, now: WallSeconds) -> Result<LinkCertificates, TrustError> {
        let authority = self.authority(now).await?;
        for holder in [CertificateHolder::Link(LinkRole::Activator), CertificateHolder::Injector] {
            self.certificate(&authority, holder, now).await?;
        }
        let own = self.certificate(&authority, CertificateHolder::Link(LinkRole::Autoscaler), now).await?;
        Ok(LinkCertificates { chain: own.chain, key: LinkKey(own.key), roots: authority.roots(now) })
    }

    /// Keeps all certificates up to date, for as long as an autoscaler receives its own.
    pub(crate) async fn keep(self, shown: watch::Sender<LinkCertificates>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            loop {
                match self.settle(wall_seconds()).await {
                    Ok(certificates) => {
                        shown.send_if_modified(|known| {
                            let is_news = *known != certificates;
                            *known = certificates;
                            is_news
                        });
                        break;
                    }
                    Err(error) => {
                        let why = &error as &dyn std::error::Error;
                        tracing::warn!(error = why, "the certificates of links could not be read or renewed");
                    }
                }
                tokio::time::sleep(RETRY_AFTER).await;
            }
            if shown.is_closed() {
                return;
            }
        }
    }

    async fn authority(&self, now: WallSeconds) -> Result<LinkAuthority, TrustError> {
        self.find_or_write(AUTHORITY_SECRET, |found| {
            let Some(data) = found.and_then(|secret| secret.data.as_ref()).filter(|data| !data.is_empty())
            else {
                let made = LinkAuthority::make(now)?;
                return Ok((made.write(now), made, SecretState::Outdated));
            };
            let known = LinkAuthority::read(data).ok_or(TrustError::Damaged(AUTHORITY_SECRET))?;
            let annotations = found.and_then(|secret| secret.metadata.annotations.as_ref());
            let asked = annotations.and_then(|annotations| annotations.get(ROTATE)).map(String::as_str);
            if asked.is_none() && !known.is_due(now) {
                return Ok((SecretData::new(), known, SecretState::Good));
            }
            let mut next = known.successor(now)?;
            if asked == Some(REVOKE) {
                next.revoke_formers();
                tracing::warn!(
                    "links have another authority from now on, and the former authorities are revoked; present pods trust them until the pods are replaced (`ebb check` names these pods)"
                );
            } else {
                tracing::info!("links have another authority from now on, whose certificate the former authority has signed");
            }
            Ok((next.write(now), next, SecretState::Outdated))
        })
        .await
    }

    async fn certificate(
        &self,
        authority: &LinkAuthority,
        holder: CertificateHolder,
        now: WallSeconds,
    ) -> Result<Certificate, TrustError> {
        self.find_or_write(holder.secret(), |found| {
            let known = found.and_then(|secret| Certificate::read(secret.data.as_ref()?));
            let roots = authority.roots(now);
            // The roots too: a former authority falls out of them when it ends, while the certificate is
            // still good.
            if let Some(known) = known.filter(|known| known.is_good(authority, now) && known.roots == roots) {
                return Ok((SecretData::new(), known, SecretState::Good));
            }
            let issued = authority.issue(&holder.name(&self.namespace), now)?;
            Ok((issued.write(), issued, SecretState::Outdated))
        })
        .await
    }

    /// Reads a Secret and, if `decide` wants it otherwise, writes it over what was read.
    async fn find_or_write<Value>(
        &self,
        name: &'static str,
        decide: impl Fn(Option<&Secret>) -> Result<(SecretData, Value, SecretState), TrustError>,
    ) -> Result<Value, TrustError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let request = |source| {
            let namespace = self.namespace.clone();
            TrustError::Request { namespace, name, source: Box::new(source) }
        };
        for _ in 0..ATTEMPTS_MAX {
            let found = api.get_opt(name).await.map_err(request)?;
            let (data, value, state) = decide(found.as_ref())?;
            let resource_version = match (state, found) {
                (SecretState::Good, _) => return Ok(value),
                (SecretState::Outdated, found) => found.and_then(|secret| secret.metadata.resource_version),
            };
            let is_new = resource_version.is_none();
            // Without annotations: an operator's wish for another authority is granted once, and gone with
            // this write.
            let metadata =
                ObjectMeta { name: Some(name.to_owned()), resource_version, ..ObjectMeta::default() };
            let secret = Secret { metadata, data: Some(data), ..Secret::default() };
            let parameters = PostParams::default();
            let written = if is_new {
                api.create(&parameters, &secret).await
            } else {
                api.replace(name, &parameters, &secret).await
            };
            match written {
                Ok(_) => return Ok(value),
                // Another replica was faster.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(request(error)),
            }
        }
        Err(TrustError::Contended(name))
    }
}

/// Whether what is there is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecretState {
    Good,
    Outdated,
}
