use http::HeaderValue;

use super::*;

/// Whether a request with these headers is answered.
fn is_answered(trusted: &str, target: &str, headers: &[(&HeaderName, &str)]) -> bool {
    let trusted: TrustedHosts = trusted.parse().expect("names");
    let headers =
        headers.iter().map(|(name, value)| ((*name).clone(), HeaderValue::from_str(value).expect("a value")));
    trusted.check(&target.parse().expect("a target"), &headers.fold(HeaderMap::new(), appended)).is_ok()
}

fn appended(mut headers: HeaderMap, (name, value): (HeaderName, HeaderValue)) -> HeaderMap {
    headers.append(name, value);
    headers
}

#[test]
fn a_host_is_an_address_or_a_name_that_no_page_was_served_under() {
    for (host, trusted, expected) in [
        ("127.0.0.1:9000", "", true),
        ("10.1.2.3", "", true),
        ("[::1]", "", true),
        ("[::1]:9000", "", true),
        ("[fe80::1]:8022", "", true),
        ("localhost", "", true),
        ("LocalHost:9000", "", true),
        ("localhost.", "", true),
        ("ebb-autoscaler.ebb-system.svc", "", true),
        ("ebb-autoscaler.ebb-system.svc:8080", "", true),
        ("ebb-autoscaler.ebb-system.svc.cluster.local:8080", "", true),
        ("ebb.example.com", "ebb.example.com", true),
        ("EBB.example.com:9000", "other.example, ebb.example.com", true),
        ("a.svc.corp.example", "*.svc.corp.example", true),
        // A page of evil.example whose name was led here.
        ("evil.example", "", false),
        ("evil.example:9000", "ebb.example.com", false),
        ("localhost.evil.example", "", false),
        ("evil-localhost", "", false),
        ("evilsvc", "", false),
        (".svc", "", false),
        ("svc", "", false),
        ("a.svc.evil.example", "", false),
        ("corp.example", "*.corp.example", false),
        ("evilcorp.example", "*.corp.example", false),
        ("127.0.0.1.evil.example", "", false),
        // Not addresses as a browser writes them.
        ("127.1", "", false),
        ("2130706433", "", false),
        ("::1", "", false),
        ("[127.0.0.1]", "", false),
        ("[::1", "", false),
        ("[::1]9000", "", false),
        // Nothing that two readers could read differently.
        ("127.0.0.1:port", "", false),
        ("127.0.0.1@evil.example", "", false),
        ("127.0.0.1, evil.example", "", false),
        ("", "", false),
    ] {
        assert_eq!(is_answered(trusted, "/v1/revisions", &[(&HOST, host)]), expected, "{host:?} {trusted:?}");
        assert_eq!(is_answered(trusted, "/metrics", &[(&HOST, host)]), expected, "{host:?} {trusted:?}");
        let is_open = is_answered(trusted, "/healthz", &[(&HOST, host)]);
        assert!(is_open, "{host:?} of an open page");
    }
}

#[test]
fn an_origin_is_the_address_that_is_asked() {
    for (origin, host, trusted, expected) in [
        ("http://127.0.0.1:9000", "127.0.0.1:9000", "", true),
        ("http://localhost:9000", "LOCALHOST:9000", "", true),
        ("http://[::1]:9000", "[::1]:9000", "", true),
        ("http://10.0.0.1", "10.0.0.1:80", "", true),
        ("https://ebb.example.com", "ebb.example.com", "ebb.example.com", true),
        // A proxy that asks us by address.
        ("https://ebb.example.com", "10.0.0.1:8080", "ebb.example.com", true),
        ("http://evil.example", "127.0.0.1:9000", "", false),
        ("http://localhost:3000", "localhost:9000", "", false),
        ("http://localhost:9000", "127.0.0.1:9000", "", false),
        ("https://127.0.0.1:9000", "127.0.0.1", "", false),
        ("null", "127.0.0.1:9000", "", false),
        ("file://", "127.0.0.1:9000", "", false),
        ("127.0.0.1:9000", "127.0.0.1:9000", "", false),
        ("", "127.0.0.1:9000", "", false),
    ] {
        let headers = [(&HOST, host), (&ORIGIN, origin)];
        let is_answered = |page| is_answered(trusted, page, &headers);
        for page in ["/v1/restart/autoscaler", "/metrics"] {
            assert_eq!(is_answered(page), expected, "{origin:?} {host:?} {page}");
        }
        assert!(OPEN_PAGES.iter().all(|page| is_answered(page)), "{origin:?} of an open page");
    }
}

#[test]
fn a_request_without_host_and_origin_is_not_a_browsers() {
    assert!(is_answered("", "/v1/revisions", &[]));
    assert!(is_answered("", "http://127.0.0.1:9000/v1/revisions", &[]), "HTTP/2");
    assert!(!is_answered("", "http://evil.example/v1/revisions", &[]), "HTTP/2");
    assert!(!is_answered("", "http://evil.example/v1/revisions", &[(&HOST, "127.0.0.1")]));
    assert!(!is_answered("", "http://127.0.0.1/v1/revisions", &[(&HOST, "evil.example")]));
}

#[test]
fn of_two_hosts_or_origins_none_is_believed() {
    let (host, origin) = ((&HOST, "127.0.0.1"), (&ORIGIN, "http://127.0.0.1"));
    assert!(is_answered("", "/v1/revisions", &[host, origin]));
    assert!(!is_answered("", "/v1/revisions", &[host, host]));
    assert!(!is_answered("", "/v1/revisions", &[host, origin, origin]));
}

#[test]
fn the_refusal_says_what_to_do() {
    let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("evil.example"))]);
    let foreign = TrustedHosts::default().check(&Uri::from_static("/"), &headers).expect_err("foreign");
    assert_eq!(
        foreign.to_string(),
        "host \"evil.example\" is foreign: the request may come from another site's web page; ask by address or as localhost, or allow the name \
         (EBB_TRUSTED_HOSTS, --trusted-host)"
    );
}

#[test]
fn an_invalid_host_name_is_refused_with_advice() {
    for text in ["http://ebb.example.com", "ebb.example.com:80", "*", "*.", "a..b", "a b", "é"] {
        let error = text.parse::<TrustedHosts>().expect_err(text);
        assert!(error.to_string().contains("write a name without scheme and port"), "{error}");
    }
    assert_eq!("".parse(), Ok(TrustedHosts::default()));
}
