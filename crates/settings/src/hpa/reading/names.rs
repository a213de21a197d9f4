//! Which names Kubernetes lets through.

/// One segment of a path, and nothing that begins another part of a URL: the name of a metric. Adapters have
/// names with `|` and `:`, so these may be no DNS names.
pub(super) fn is_path_segment(name: &str) -> bool {
    let is_plain =
        |letter: char| !"/%?#\\".contains(letter) && !letter.is_control() && !letter.is_whitespace();
    !matches!(name, "" | "." | "..") && name.len() <= 253 && name.chars().all(is_plain)
}

/// A version, with or without a group before it.
pub(super) fn is_api_version(text: &str) -> bool {
    let (group, version) = text.split_once('/').map_or((None, text), |(group, one)| (Some(group), one));
    group.is_none_or(is_dns_subdomain) && is_dns_label(version)
}

/// The kind of an object.
pub(super) fn is_kind(text: &str) -> bool {
    !text.is_empty() && text.len() <= 63 && text.bytes().all(|letter| letter.is_ascii_alphanumeric())
}

/// A DNS label: the name of a container.
pub(super) fn is_dns_label(name: &str) -> bool {
    name.len() <= 63 && has_ends(name, |letter| letter.is_ascii_lowercase() || letter.is_ascii_digit()) && {
        name.bytes().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-')
    }
}

/// A DNS subdomain: the name of an object that Kubernetes keeps under its name.
pub(super) fn is_dns_subdomain(name: &str) -> bool {
    let allowed = |letter: &u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_part =
        |part: &str| has_ends(part, allowed) && part.bytes().all(|one| allowed(&one) || one == b'-');
    name.len() <= 253 && name.split('.').all(is_part)
}

/// The key of a label: a name, with or without a domain before it.
pub(super) fn is_label_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let is_domain = |domain: &str| domain.len() <= 253 && domain.split('.').all(is_dns_label);
    domain.is_none_or(is_domain) && !name.is_empty() && is_label_value(name)
}

/// The value of a label; may be empty.
pub(super) fn is_label_value(value: &str) -> bool {
    let allowed = |letter: u8| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter);
    value.is_empty()
        || (value.len() <= 63 && value.bytes().all(allowed) && has_ends(value, u8::is_ascii_alphanumeric))
}

fn has_ends(text: &str, allowed: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&allowed) && bytes.last().is_some_and(&allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_kubernetes_lets_through() {
        for (name, segment, label, key, value) in [
            ("cpu", true, true, true, true),
            ("http_requests", true, false, true, true),
            ("example.com/gpu", false, false, true, false),
            ("", false, false, false, true),
            ("..", false, false, false, false),
            ("50%", false, false, false, false),
            ("-a", true, false, false, false),
            ("A", true, false, true, true),
            ("a/b/c", false, false, false, false),
            ("/a", false, false, false, false),
            ("Example.com/a", false, false, false, false),
        ] {
            assert_eq!(is_path_segment(name), segment, "{name}");
            assert_eq!(is_dns_label(name), label, "{name}");
            assert_eq!(is_label_key(name), key, "{name}");
            assert_eq!(is_label_value(name), value, "{name}");
        }
        for (name, is_subdomain) in [
            ("web", true),
            ("web-1.shop", true),
            ("Web", false),
            ("web_1", false),
            ("a..b", false),
            ("a-", false),
        ] {
            assert_eq!(is_dns_subdomain(name), is_subdomain, "{name}");
        }
        for (name, is_name) in [
            ("pubsub.googleapis.com|subscription|undelivered", true),
            ("job:requests:rate5m", true),
            ("q?labelSelector=", false),
            ("q#", false),
            ("q q", false),
            ("q\u{1b}", false),
            ("q\\r", false),
        ] {
            assert_eq!(is_path_segment(name), is_name, "{name}");
        }
        for (text, is_version) in [
            ("v1", true),
            ("apps/v1", true),
            ("networking.k8s.io/v1", true),
            ("", false),
            ("a/b/c", false),
            ("../v1", false),
            ("apps/v1?", false),
            ("apps/", false),
        ] {
            assert_eq!(is_api_version(text), is_version, "{text}");
        }
        assert!(is_kind("Deployment") && !is_kind("../x") && !is_kind("") && !is_kind("a?b"));
        assert!(is_dns_subdomain(&"a".repeat(253)) && !is_dns_subdomain(&"a".repeat(254)));
        assert!(!is_dns_label(&"a".repeat(64)) && !is_label_value(&"a".repeat(64)));
    }
}
