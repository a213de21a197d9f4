//! Do the queue-proxies of new pods know the authority of ebb's autoscaler?

use std::collections::BTreeMap;

use crate::check::findings::CheckFinding;

/// What is well once queue-proxies are told of the right authority.
pub(crate) const KNOW_THE_AUTHORITY: &str =
    "queue-proxies of new pods know the authority of ebb's autoscaler";
/// The key of `config-deployment` with the authority that queue-proxies are told of.
const ROOT_CA: &str = "queue-sidecar-rootca";
/// What ends a certificate in PEM.
const END: &str = "-----END CERTIFICATE-----";

/// The authority that `config-deployment` names, if it names one.
pub(crate) fn told_of(settings: &BTreeMap<String, String>) -> Option<&str> {
    settings.get(ROOT_CA).map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// The finding where `config-deployment` names none.
pub(crate) fn told_of_none() -> CheckFinding {
    CheckFinding::well("queue-proxies of new pods are told of no authority, as Knative's own".to_owned())
}

/// The verdict about the authority that queue-proxies are told of; `known` are the certificates of the
/// autoscaler's.
pub(crate) fn verdict(told: &str, known: &str) -> CheckFinding {
    let certificates = told.split_inclusive(END).map(str::trim);
    let is_known =
        certificates.filter(|text| text.ends_with(END)).any(|certificate| known.contains(certificate));
    CheckFinding::of(is_known, KNOW_THE_AUTHORITY.to_owned(), || {
        format!(
            "{ROOT_CA} of config-deployment names another one than Secret ebb-ca, so new pods take no link; write ca.crt of that Secret into deploy/knative/queue-proxy and apply it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::findings::tests::text_of;

    const FIRST: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    const SECOND: &str = "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n";

    #[test]
    fn one_certificate_of_the_autoscalers_authority_is_enough() {
        let both = format!("{FIRST}{SECOND}");
        for (told, known, is_well) in [
            (FIRST, both.as_str(), true),
            (both.as_str(), SECOND, true),
            (FIRST, SECOND, false),
            ("x", FIRST, false),
        ] {
            let text = text_of(verdict(told, known));
            assert_eq!(text.contains("ok "), is_well, "{text}");
            assert_eq!(text.contains("Secret ebb-ca"), !is_well, "{text}");
        }
    }

    #[test]
    fn an_empty_key_names_none() {
        let settings = |text: &str| BTreeMap::from([(ROOT_CA.to_owned(), text.to_owned())]);
        assert_eq!(told_of(&settings(" \n")), None);
        assert_eq!(told_of(&settings(FIRST)), Some(FIRST.trim()));
        assert!(text_of(told_of_none()).contains("ok "));
    }
}
