//! An activator in the place of Knative's: whose request it is, what probes are answered, and what a pod
//! whose queue-proxy is Knative's is told. (Contract of the installation, §5.2 to §5.4.)

use std::sync::atomic::Ordering;

use http::Request;
use http_body_util::Full;
use vocabulary::{Assignment, PodState, RevisionName};

use crate::world::{Caller, Got, HOP_KEY, Pod, Seen, World, assignment};

/// The Host of the public Service of the revision.
const PUBLIC_HOST: &str = "hello-00001.shop.svc.cluster.local";
/// The Host that a user of the Service asks for, which is no key here.
const USERS_HOST: &str = "hello.shop.example.com";
const IDENTITY: [(&str, &str); 2] =
    [("knative-serving-revision", "hello-00001"), ("knative-serving-namespace", "shop")];

/// A revision of Knative's: known by the Host of its public Service, with pods that have no key.
fn revision(pods: &[&Pod]) -> Assignment {
    let pods: Vec<_> = pods.iter().map(|pod| ("a", pod.address, PodState::Ready)).collect();
    Assignment {
        revision: RevisionName::parse("shop/revision/hello-00001").unwrap(),
        hosts: vec![PUBLIC_HOST.to_owned()],
        hop_keys: Vec::new(),
        ..assignment(1, &pods)
    }
}

async fn ask(caller: &Caller, headers: &[(&str, &str)]) -> Got {
    let mut request = Request::get("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    caller.send(request.body(Full::default()).unwrap()).await
}

/// What the pod saw of its only request.
fn seen(pod: &Pod) -> Seen {
    let [seen] = <[Seen; 1]>::try_from(pod.seen()).unwrap();
    seen
}

fn header(seen: &Seen, name: &str) -> String {
    seen.headers.get(name).map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_ingress_names_the_revision_and_without_it_the_host_of_the_public_service_does() {
    let (world, pod) = (World::in_knatives_place(), Pod::start());
    let _autoscaler = world.synced(&[revision(&[&pod])]).await;
    for caller in [Caller::http1(&world), Caller::http2(&world)] {
        let users = caller.to(USERS_HOST);
        assert_eq!(ask(&users, &IDENTITY).await.status, 200);
        assert_eq!(ask(&caller.to(PUBLIC_HOST), &[]).await.status, 200);
        assert_eq!(ask(&users, &[]).await.status, 404, "the Host of a user is no key");
        assert_eq!(ask(&users, &IDENTITY[..1]).await.status, 404, "one header of both");
        let other = [IDENTITY[0], ("knative-serving-namespace", "other")];
        // The headers of an ingress come before the Host.
        assert_eq!(ask(&caller.to(PUBLIC_HOST), &other).await.status, 404);
    }
}

/// The MUSTs of §5.4: no word of ours reaches an app behind a queue-proxy of Knative's.
#[tokio::test]
async fn a_pod_without_a_key_hears_knatives_words_alone() {
    let (world, pod) = (World::in_knatives_place(), Pod::start());
    let _autoscaler = world.synced(&[revision(&[&pod])]).await;
    let caller = Caller::http1(&world).to(USERS_HOST);
    let more = [
        ("k-original-host", "www.example.com"),
        ("knative-serving-tag", "blue"),
        ("ebb-hop-key", "guessed"),
        ("k-proxy-request", "made-up"),
    ];
    assert_eq!(ask(&caller, &[&IDENTITY[..], &more[..]].concat()).await.status, 200);
    let seen = seen(&pod);
    let ours: Vec<_> = seen.headers.keys().filter(|name| name.as_str().starts_with("ebb-")).collect();
    assert_eq!(ours, Vec::<&http::HeaderName>::new());
    assert_eq!(header(&seen, "k-proxy-request"), "activator");
    // A value that an ingress noted wins over Host: DomainMappings go by it.
    assert_eq!([header(&seen, "k-original-host"), header(&seen, "host")], ["www.example.com"; 2]);
    assert_eq!(header(&seen, "knative-serving-tag"), "blue");
    for ended in ["knative-serving-revision", "knative-serving-namespace", "expect"] {
        assert_eq!(header(&seen, ended), "", "{ended}");
    }
    assert!(!header(&seen, "x-forwarded-for").is_empty(), "{seen:?}");
}

/// Pods of one revision are of both kinds while queue-proxies are replaced.
#[tokio::test]
async fn pods_of_ebbs_are_told_the_key_and_plain_ones_beside_them_are_not() {
    for is_plain in [false, true] {
        let (world, pod) = (World::in_knatives_place(), Pod::start());
        let mut assigned = Assignment { hop_keys: assignment(1, &[]).hop_keys, ..revision(&[&pod]) };
        assigned.pods[0].is_plain = is_plain;
        let _autoscaler = world.synced(&[assigned]).await;
        assert_eq!(ask(&Caller::http1(&world).to(PUBLIC_HOST), &[]).await.status, 200);
        let seen = seen(&pod);
        let [key, named] = ["ebb-hop-key", "ebb-pod"].map(|name| header(&seen, name));
        let told = if is_plain { ["", ""] } else { [HOP_KEY, "a"] };
        assert_eq!([key.as_str(), named.as_str()], told);
        assert_eq!(header(&seen, "k-proxy-request"), "activator");
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_to_keep_is_sent_without_asking() {
    let (world, pod) = (World::in_knatives_place(), Pod::start());
    let _autoscaler = world.synced(&[revision(&[&pod])]).await;
    let body = "x".repeat(200_000);
    let got = Caller::http1(&world).to(PUBLIC_HOST).post("/", body.clone()).await;
    assert_eq!((got.status.as_u16(), got.body.len()), (200, body.len()));
    assert_eq!(header(&seen(&pod), "expect"), "");
}

/// An app behind a queue-proxy of Knative's may write any header: it is the app's answer, and not a word of
/// ours.
#[tokio::test]
async fn a_refusal_of_ours_in_the_answer_of_such_a_pod_is_the_apps_and_is_not_repeated() {
    let (world, pod) = (World::in_knatives_place(), Pod::start());
    let _autoscaler = world.synced(&[revision(&[&pod])]).await;
    pod.refusals.store(1, Ordering::SeqCst);
    let got = ask(&Caller::http1(&world).to(PUBLIC_HOST), &[]).await;
    assert_eq!((got.status.as_u16(), got.body.as_str()), (503, "not here\n"));
    assert_eq!((got.header("ebb-not-started"), pod.seen().len()), ("", 1));
}

#[tokio::test]
async fn probes_are_answered_here_and_no_pod_hears_of_them() {
    let (world, pod) = (World::in_knatives_place(), Pod::start());
    let caller = Caller::http1(&world).to(USERS_HOST);
    let kubelet = [("user-agent", "kube-probe/1.37")];
    assert_eq!(ask(&caller, &kubelet).await.status, 500, "nothing was heard of an autoscaler");
    let _autoscaler = world.synced(&[revision(&[&pod])]).await;
    assert_eq!(ask(&caller, &kubelet).await.status, 200);
    let probe = [("k-network-probe", "probe"), ("k-network-hash", "abc")];
    let got = ask(&caller, &[&IDENTITY[..], &probe[..]].concat()).await;
    assert_eq!((got.status.as_u16(), got.header("k-network-hash"), got.body.as_str()), (200, "abc", ""));
    let got = ask(&caller, &[("k-network-probe", "activator")]).await;
    assert_eq!((got.status.as_u16(), got.body.as_str()), (200, "activator"));
    assert_eq!(ask(&caller, &[("k-network-probe", "queue")]).await.status, 400);
    assert!(pod.seen().is_empty());
    world.activator.leave();
    assert_eq!(ask(&caller, &kubelet).await.status, 500, "it is on its way out");
}

/// In an installation of our own these headers are a client's invention.
#[tokio::test]
async fn elsewhere_identity_headers_name_nothing() {
    let (world, pod) = (World::start(), Pod::start());
    let _autoscaler = world.synced(&[revision(&[&pod])]).await;
    assert_eq!(ask(&Caller::http1(&world).to(USERS_HOST), &IDENTITY).await.status, 404);
}

/// Contract §1.2: requests of a revision whose `PodAutoscaler` is gone are refused, though its pods are there
/// and go on with what they hold.
#[tokio::test]
async fn must_answer_404_for_a_revision_that_lives_on_for_the_sake_of_its_pods() {
    let (world, pod) = (World::in_knatives_place(), Pod::start());
    let mut autoscaler = world.synced(&[revision(&[&pod])]).await;
    let caller = Caller::http1(&world).to(USERS_HOST);
    assert_eq!(ask(&caller, &IDENTITY).await.status, 200);
    let version = assignment(2, &[]).version;
    autoscaler.assign(&Assignment { hosts: Vec::new(), version, ..revision(&[&pod]) }).await;
    assert_eq!(ask(&caller, &IDENTITY).await.status, 404);
    assert_eq!(ask(&caller.to(PUBLIC_HOST), &[]).await.status, 404);
    assert_eq!(pod.seen().len(), 1);
}
