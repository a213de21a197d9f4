//! Every row of the contract's §5.2, §5.3 and §5.4 that a head alone decides.

use super::*;

fn knative() -> ActivatorPlace {
    ActivatorPlace::Knative { domain: "cluster.local".to_owned() }
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    pairs.iter().map(pair).collect()
}

fn fields(pairs: &[(&'static str, &'static str)]) -> Fields {
    Fields::from(headers(pairs))
}

const REVISION: (&str, &str) = ("knative-serving-revision", "hello-00001");
const NAMESPACE: (&str, &str) = ("knative-serving-namespace", "shop");
const KUBELETS: (&str, &str) = ("user-agent", "kube-probe/1.37");

#[test]
fn a_revision_is_named_by_both_headers_and_in_knatives_place_alone() {
    let both = fields(&[REVISION, NAMESPACE]);
    assert_eq!(knative().named_host(&both).as_deref(), Some("hello-00001.shop.svc.cluster.local"));
    assert_eq!(ActivatorPlace::Ebb.named_host(&both), None);
    let empty = ("knative-serving-namespace", "");
    for one in [&[REVISION][..], &[NAMESPACE][..], &[REVISION, empty][..], &[][..]] {
        assert_eq!(knative().named_host(&fields(one)), None, "{one:?}");
    }
}

/// Status, hash and whether there is a body, of the answer to a probe.
fn answered(pairs: &[(&'static str, &'static str)], takes_requests: bool) -> Option<(u16, String, bool)> {
    let answer = knative().probe_answer(&fields(pairs), || takes_requests)?;
    let hash = answer.headers().get(names::K_NETWORK_HASH).map(HeaderValue::as_bytes).unwrap_or_default();
    let hash = String::from_utf8_lossy(hash).into_owned();
    Some((answer.status().as_u16(), hash, !answer.body().is_empty()))
}

#[test]
fn an_ingress_gets_its_hash_back_whether_requests_are_taken_or_not() {
    let of = |status, hash: &str, has_body| Some((status, hash.to_owned(), has_body));
    for takes_requests in [true, false] {
        let ask = |pairs: &[_]| answered(pairs, takes_requests);
        let (probe, hash) = (("k-network-probe", "probe"), ("k-network-hash", "abc"));
        assert_eq!(ask(&[probe, hash, REVISION, NAMESPACE]), of(200, "abc", false));
        assert_eq!(ask(&[probe]), of(400, "", true));
        assert_eq!(ask(&[probe, ("k-network-hash", "")]), of(400, "", true));
        assert_eq!(ask(&[("k-network-probe", "activator")]), of(200, "", true));
        assert_eq!(ask(&[("k-network-probe", "queue"), hash]), of(400, "", true));
    }
    assert_eq!(answered(&[("k-network-probe", ""), REVISION, NAMESPACE], true), None);
    assert_eq!(answered(&[("user-agent", "curl/8")], true), None);
}

#[test]
fn kubelet_is_told_whether_requests_are_taken() {
    let status = |pairs: &[_], takes_requests| answered(pairs, takes_requests).map(|(status, ..)| status);
    for asker in [KUBELETS, ("k-kubelet-probe", "1")] {
        assert_eq!(status(&[asker], true), Some(200), "{asker:?}");
        assert_eq!(status(&[asker], false), Some(500), "{asker:?}");
    }
    assert_eq!(status(&[KUBELETS, REVISION, NAMESPACE], false), None, "a health check by way of an ingress");
}

#[test]
fn elsewhere_no_request_is_a_probe_and_no_host_is_believed() {
    let made_up = fields(&[KUBELETS, ("k-network-probe", "activator"), ("k-original-host", "x")]);
    assert!(ActivatorPlace::Ebb.probe_answer(&made_up, || true).is_none());
    assert_eq!(ActivatorPlace::Ebb.noted_host(&made_up), None);
    let request = request(&[("host", "a.example.com")]);
    assert_eq!(ActivatorPlace::Ebb.host_for_plain_pods(&request), None);
}

fn request(pairs: &[(&'static str, &'static str)]) -> Request<()> {
    let mut request = Request::new(());
    *request.headers_mut() = headers(pairs);
    request
}

#[test]
fn the_host_that_an_ingress_noted_wins_over_the_requests_own() {
    let host = |pairs: &[_]| knative().host_for_plain_pods(&request(pairs));
    let (own, noted) = (("host", "hello.shop.svc"), ("k-original-host", "www.example.com"));
    assert_eq!(host(&[own]), Some(HeaderValue::from_static("hello.shop.svc")));
    assert_eq!(host(&[own, noted]), Some(HeaderValue::from_static("www.example.com")));
    for none in ["", "a, b", "user@www.example.com", "www.example.com/a"] {
        let found = host(&[own, ("k-original-host", none)]);
        assert_eq!(found, Some(HeaderValue::from_static("hello.shop.svc")), "{none:?}");
    }
    assert_eq!(host(&[]), None);
}

#[test]
fn words_of_an_ingress_to_apps_pass_and_all_others_of_hops_end_here() {
    let all = [
        REVISION,
        NAMESPACE,
        ("knative-serving-tag", "blue"),
        ("knative-serving-default-route", "false"),
        ("k-original-host", "www.example.com"),
        ("k-proxy-request", "activator"),
        ("ebb-hop-key", "guessed"),
        ("x-request-id", "7"),
        ("traceparent", "00-1-2-01"),
    ];
    let left = |place: ActivatorPlace| {
        let mut headers = headers(&all);
        place.strip(&mut headers);
        let mut left: Vec<String> = headers.keys().map(ToString::to_string).collect();
        left.sort();
        left
    };
    let of_clients = ["traceparent", "x-request-id"];
    assert_eq!(left(ActivatorPlace::Ebb), of_clients);
    let for_apps = ["knative-serving-default-route", "knative-serving-tag"];
    assert_eq!(left(knative()), [for_apps, of_clients].concat());
}
