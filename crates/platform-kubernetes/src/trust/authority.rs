//! What does an authority make? Certificates of the roles, and its own successor. As text in Secrets, under
//! the names that Kubernetes has for such things.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use cluster::WallSeconds;
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use ring::digest;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use vocabulary::{TLS_CHAIN, TLS_KEY, TLS_REVOKED, TLS_ROOTS};

/// The authorities before this one, as JSON.
const FORMERS: &str = "formers";
const RENEW_AFTER: &str = "renew-after";
const ISSUER: &str = "issuer";

/// How long an authority lasts. It is followed by another one after two thirds of that; pods that know the
/// old one alone must be replaced before its end.
const AUTHORITY_LASTS: Duration = Duration::from_hours(3 * 365 * 24);
/// How long a program's certificate lasts.
const CERTIFICATE_LASTS: Duration = Duration::from_hours(30 * 24);
/// How many authorities before the present one are remembered. By itself there is never more than one; each
/// that a person asks for beside that costs 600 bytes in every handshake, and verifiers follow a chain of six
/// at most.
const FORMERS_MAX: usize = 4;
/// Clocks of nodes may be behind ours.
const CLOCK_RESERVE: Duration = Duration::from_hours(1);

pub(super) type SecretData = BTreeMap<String, ByteString>;

/// The authority that signs the certificates of links, with those before it.
#[derive(Debug)]
pub(super) struct LinkAuthority {
    key: KeyPair,
    certificate: String,
    /// The former authorities by whose certificates some pods still go, the newest first.
    formers: Vec<FormerAuthority>,
    renew_after: WallSeconds,
}

/// An authority that was followed by another, while pods still trust its certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FormerAuthority {
    certificate: String,
    /// The last certificate that it signed: the certificate of the authority that followed it.
    successor: String,
    /// The end of the certificate's validity, in seconds since 1970.
    ends: u64,
    /// Whether its key may have leaked: new pods do not trust it.
    #[serde(default)]
    is_revoked: bool,
}

/// A certificate that one of ebb's programs shows, with its private key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    /// Its own certificate, and those that lead from it to each former authority.
    pub(super) chain: String,
    pub(super) key: String,
    pub(super) roots: String,
    issuer: String,
    renew_after: WallSeconds,
}

impl LinkAuthority {
    pub(super) fn make(now: WallSeconds) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = parameters(&key, now)?.self_signed(&key)?.pem();
        let renew_after = two_thirds(now, AUTHORITY_LASTS);
        Ok(Self { key, certificate, formers: Vec::new(), renew_after })
    }

    /// The next one, which this one vouches for.
    pub(super) fn successor(&self, now: WallSeconds) -> Result<Self, rcgen::Error> {
        let next = Self::make(now)?;
        let successor = parameters(&next.key, now)?.signed_by(&next.key, &self.issuer()?)?.pem();
        // `renew_after` lies two thirds after the beginning, so a third is left.
        let ends = self.renew_after.later(AUTHORITY_LASTS / 3).0;
        let certificate = self.certificate.clone();
        let this = FormerAuthority { certificate, successor, ends, is_revoked: false };
        let formers = std::iter::once(this).chain(self.formers(now).cloned()).take(FORMERS_MAX).collect();
        Ok(Self { formers, ..next })
    }

    /// Nothing new goes by those before this one. What this one signs leads to them still, or pods that know
    /// them alone would be told nothing until they are replaced.
    pub(super) fn revoke_formers(&mut self) {
        for former in &mut self.formers {
            former.is_revoked = true;
        }
    }

    pub(super) fn is_due(&self, now: WallSeconds) -> bool {
        self.renew_after <= now
    }

    /// Issues a certificate for the program of this name.
    pub(super) fn issue(&self, name: &str, now: WallSeconds) -> Result<Certificate, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::new(vec![name.to_owned()])?;
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        last(&mut parameters, now, CERTIFICATE_LASTS);
        let own = parameters.signed_by(&key, &self.issuer()?)?.pem();
        Ok(Certificate {
            chain: self.formers(now).fold(own, |chain, former| chain + &former.successor),
            key: key.serialize_pem(),
            roots: self.roots(now),
            issuer: name_of(&self.key),
            renew_after: two_thirds(now, CERTIFICATE_LASTS),
        })
    }

    /// The authorities that are trusted now: this one and, until their ends, those before it that are not
    /// revoked.
    pub(super) fn roots(&self, now: WallSeconds) -> String {
        let own = self.certificate.clone();
        let formers = self.formers(now).filter(|former| !former.is_revoked);
        formers.fold(own, |roots, former| roots + &former.certificate)
    }

    /// The former authorities that are revoked and have not ended.
    fn revoked(&self, now: WallSeconds) -> String {
        self.formers(now).filter(|former| former.is_revoked).map(|former| &*former.certificate).collect()
    }

    fn formers(&self, now: WallSeconds) -> impl Iterator<Item = &FormerAuthority> {
        self.formers.iter().filter(move |former| former.ends > now.0)
    }

    fn issuer(&self) -> Result<Issuer<'static, &KeyPair>, rcgen::Error> {
        // Only the name and the constraints are read of these.
        Ok(Issuer::new(parameters(&self.key, WallSeconds::default())?, &self.key))
    }

    /// `None` if something is missing or damaged.
    pub(super) fn read(data: &SecretData) -> Option<Self> {
        Some(Self {
            key: KeyPair::from_pem(&text(data, TLS_KEY)?).ok()?,
            certificate: text(data, TLS_CHAIN)?,
            formers: serde_json::from_str(&text(data, FORMERS)?).ok()?,
            renew_after: number(data, RENEW_AFTER)?,
        })
    }

    pub(super) fn write(&self, now: WallSeconds) -> SecretData {
        in_data(vec![
            (TLS_CHAIN, self.certificate.clone()),
            (TLS_KEY, self.key.serialize_pem()),
            (TLS_ROOTS, self.roots(now)),
            (TLS_REVOKED, self.revoked(now)),
            (FORMERS, serde_json::to_string(&self.formers).expect("texts and numbers can be written")),
            (RENEW_AFTER, self.renew_after.0.to_string()),
        ])
    }
}

impl Certificate {
    /// Whether it is of this authority, and not about to end.
    pub(super) fn is_good(&self, authority: &LinkAuthority, now: WallSeconds) -> bool {
        self.issuer == name_of(&authority.key) && now < self.renew_after
    }

    pub(super) fn read(data: &SecretData) -> Option<Self> {
        let key = text(data, TLS_KEY)?;
        KeyPair::from_pem(&key).ok()?;
        Some(Self {
            chain: text(data, TLS_CHAIN)?,
            key,
            roots: text(data, TLS_ROOTS)?,
            issuer: text(data, ISSUER)?,
            renew_after: number(data, RENEW_AFTER)?,
        })
    }

    pub(super) fn write(&self) -> SecretData {
        in_data(vec![
            (TLS_CHAIN, self.chain.clone()),
            (TLS_KEY, self.key.clone()),
            (TLS_ROOTS, self.roots.clone()),
            (ISSUER, self.issuer.clone()),
            (RENEW_AFTER, self.renew_after.0.to_string()),
        ])
    }
}

/// The parameters of an authority's own certificate, which signs itself.
fn parameters(key: &KeyPair, now: WallSeconds) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(Vec::<String>::new())?;
    parameters.distinguished_name.push(DnType::CommonName, name_of(key));
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    last(&mut parameters, now, AUTHORITY_LASTS);
    Ok(parameters)
}

/// By its key, so that two authorities never have one name and the name need not be kept.
fn name_of(key: &KeyPair) -> String {
    let digest = digest::digest(&digest::SHA256, key.public_key_raw());
    let digits = digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}"));
    format!("ebb links {}", digits.collect::<String>())
}

fn last(parameters: &mut CertificateParams, now: WallSeconds, lasts: Duration) {
    let now = UNIX_EPOCH + Duration::from_secs(now.0);
    parameters.not_before = OffsetDateTime::from(now.checked_sub(CLOCK_RESERVE).unwrap_or(now));
    parameters.not_after = OffsetDateTime::from(now + lasts);
}

fn two_thirds(now: WallSeconds, lasts: Duration) -> WallSeconds {
    now.later(lasts * 2 / 3)
}

fn text(data: &SecretData, key: &str) -> Option<String> {
    String::from_utf8(data.get(key)?.0.clone()).ok().filter(|text| !text.is_empty())
}

fn number(data: &SecretData, key: &str) -> Option<WallSeconds> {
    text(data, key)?.parse().ok().map(WallSeconds)
}

fn in_data(texts: Vec<(&str, String)>) -> SecretData {
    texts.into_iter().map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallSeconds = WallSeconds(1_800_000_000);

    #[test]
    fn a_written_authority_can_be_read_and_a_damaged_one_cannot() {
        let authority = LinkAuthority::make(NOW).expect("it is made").successor(NOW).expect("and followed");
        let data = authority.write(NOW);
        let read = LinkAuthority::read(&data).expect("it was written to be read");
        assert_eq!(read.write(NOW), data);
        let certificate = read.issue("a", NOW).expect("it signs");
        assert!(Certificate::read(&certificate.write()).is_some_and(|read| read == certificate));
        for key in [TLS_CHAIN, TLS_KEY, FORMERS, RENEW_AFTER] {
            let mut damaged = data.clone();
            damaged.insert(key.to_owned(), ByteString(Vec::new()));
            assert!(LinkAuthority::read(&damaged).is_none(), "{key}");
        }
    }

    #[test]
    fn a_revoked_authority_is_no_root_and_pods_that_know_it_alone_are_still_led_to_the_next() {
        let count = |text: &str| text.matches("BEGIN CERTIFICATE").count();
        let first = LinkAuthority::make(NOW).expect("it is made");
        let mut next = first.successor(NOW).expect("it is followed");
        next.revoke_formers();
        let next = LinkAuthority::read(&next.write(NOW)).expect("it was written to be read");
        assert_eq!(
            (next.roots(NOW), next.revoked(NOW)),
            (next.certificate.clone(), first.certificate.clone())
        );
        let shown = next.issue("a", NOW).expect("it signs");
        assert_eq!(
            (count(&shown.roots), count(&shown.chain)),
            (1, 2),
            "its own, and the bridge from the first"
        );
        // An authority that follows in the usual way is vouched for only by authorities that are not revoked.
        let third = next.successor(NOW).expect("it is followed");
        assert_eq!((count(&third.roots(NOW)), third.revoked(NOW)), (2, first.certificate.clone()));
        let ended = WallSeconds(NOW.0 + 1_096 * 86_400);
        assert_eq!(third.revoked(ended), "", "by then no program takes it any more");
        // The Secret of the version before says nothing of revocation.
        let mut data = first.successor(NOW).expect("it is followed").write(NOW);
        let formers = data.remove(FORMERS).expect("there are some").0;
        let formers = String::from_utf8(formers).expect("it is text").replace(",\"is_revoked\":false", "");
        data.insert(FORMERS.to_owned(), ByteString(formers.into_bytes()));
        assert_eq!(count(&LinkAuthority::read(&data).expect("it can be read").roots(NOW)), 2);
    }

    #[test]
    fn certificates_are_renewed_in_time_and_when_the_authority_is_another() {
        let authority = LinkAuthority::make(NOW).expect("it is made");
        let certificate = authority.issue("a", NOW).expect("it signs");
        let days = |days: u64| WallSeconds(NOW.0 + days * 86_400);
        assert!(certificate.is_good(&authority, days(19)));
        assert!(!certificate.is_good(&authority, days(20)));
        let next = authority.successor(NOW).expect("it is followed");
        assert!(!certificate.is_good(&next, NOW));
        assert!(!authority.is_due(days(729)));
        assert!(authority.is_due(days(731)));
        // Another one is asked for a day later: a program that knows the first alone finds a way to it
        // all the same.
        let third = next.successor(days(1)).expect("it is followed");
        assert_eq!(third.roots(days(2)).matches("BEGIN CERTIFICATE").count(), 3);
        let chain = third.issue("a", days(2)).expect("it signs").chain;
        assert_eq!(chain.matches("BEGIN CERTIFICATE").count(), 3, "its own, and two bridges");
        // The former one is known until its end, and no longer.
        assert_eq!(next.roots(days(1)).matches("BEGIN CERTIFICATE").count(), 2);
        assert_eq!(next.roots(days(1096)).matches("BEGIN CERTIFICATE").count(), 1);
        let chain = next.issue("a", NOW).expect("it signs").chain;
        assert_eq!(
            chain.matches("BEGIN CERTIFICATE").count(),
            2,
            "its own, and the bridge from the former one"
        );
    }
}
