//! A route is to be written, and the API server fails: it is tried again, ever more seldom, others are not
//! disturbed, endpoints that served are named on, and in the end the slices are right.

use orchestration::ReleaseProof;

use super::*;

const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/hello-ebb-ipv4-0";
const ACTIVATOR: &str = "10.244.1.9";

impl Laboratory {
    /// With `hello` served by an activator.
    async fn with_slice() -> Self {
        let mut laboratory = Self::start().await;
        laboratory.server.put(PODS, pace::activator());
        let (mut has_activator, mut is_served) = (false, false);
        let both = laboratory.wait("the route can be written", |fact| {
            if let PlatformFact::ActivatorsChanged(activators) = fact {
                has_activator = !activators.is_empty();
            }
            is_served |=
                matches!(fact, PlatformFact::RevisionChanged(facts) if facts.name == revision("hello"));
            (has_activator && is_served).then_some(())
        });
        both.await;
        let order = laboratory.route("hello", Routing::ThroughActivator);
        assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
        assert_eq!(laboratory.written(), ("through-activator".to_owned(), vec![ACTIVATOR.to_owned()]));
        laboratory
    }

    fn give(&mut self, what: Order) -> OrderId {
        self.orders += 1;
        let id = OrderId(self.orders);
        self.seat.execute(PlatformOrder { id, fence: self.fence, what });
        id
    }

    fn route(&mut self, name: &str, routing: Routing) -> OrderId {
        let activators = vec![ReplicaName::new("activator-1")];
        self.give(Order::Route { revision: revision(name), routing, activators })
    }

    /// What the slice of `hello` says of the route, and whom it names.
    fn written(&self) -> (String, Vec<String>) {
        let slice = self.server.object(SLICES, "shop", "hello-ebb-ipv4-0").expect("it is there");
        let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let addresses = endpoints.iter().map(|endpoint| text(&endpoint["addresses"][0])).collect();
        (text(&slice["metadata"]["annotations"]["ebb.dev/routing"]), addresses)
    }

    /// Nothing is said of an order while the slice of `hello` is tried so many times more.
    async fn waits(&mut self, order: OrderId, attempts: usize) {
        let server = self.server.clone();
        let attempts = server.asked("PUT", SLICE).len() + attempts;
        // Whichever comes first; the other would only look on.
        tokio::select! {
            word = self.word_of(order) => panic!("{word:?} although nothing could be written"),
            () = is_asked(&server, ("PUT", SLICE), attempts) => {}
        }
    }
}

async fn is_written_in_the_end(fault: Fault, reason: &str) {
    let mut laboratory = Laboratory::with_slice().await;
    let attempt = format!("PUT {SLICE}");
    let before = laboratory.server.asked("PUT", SLICE).len();
    let failures = fault.failures_before_recovery();
    laboratory.server.fail(&attempt, fault);
    let order = laboratory.route("hello", Routing::Direct);
    let why = laboratory.trouble_of(order).await;
    // Nothing else: people read it.
    assert!(why.starts_with(reason), "{why}");
    let other = laboratory.route("other", Routing::Direct);
    assert_eq!(laboratory.word_of(other).await, OrderOutcome::Done, "others are not disturbed");
    for _ in 1..failures {
        laboratory.trouble_of(order).await;
    }
    assert_eq!(laboratory.written(), ("through-activator".to_owned(), vec![ACTIVATOR.to_owned()]));
    let attempts = laboratory.server.asked("PUT", SLICE);
    let gaps: Vec<Duration> =
        attempts[before..].windows(2).map(|pair| pair[1].saturating_since(pair[0])).collect();
    let least = [100, 200].map(Duration::from_millis);
    assert!(gaps.iter().zip(least).all(|(gap, least)| *gap >= least), "each wait is longer: {gaps:?}");
    laboratory.server.heal(&attempt);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    // No pod is ready, so the activator stands in.
    assert_eq!(laboratory.written(), ("direct".to_owned(), vec![ACTIVATOR.to_owned()]));
}

#[tokio::test]
async fn a_slice_that_cannot_be_written_is_tried_again_and_disturbs_no_other() {
    let within = "the API server did not answer within 4 s";
    let statuses = [403, 404, 410, 422, 429, 500, 503, 504].map(|code| (Fault::Status(code), BECAUSE));
    let others = [
        (Fault::Status(409), "another client wrote the object at the same time"),
        (Fault::Silence, within),
        (Fault::HangsAfterHead, within),
    ];
    let cases = statuses.into_iter().chain(others);
    futures_util::future::join_all(cases.map(|(fault, reason)| is_written_in_the_end(fault, reason))).await;
}

#[tokio::test]
async fn slices_are_left_alone_as_long_as_the_server_says() {
    let mut laboratory = Laboratory::with_slice().await;
    let attempt = format!("PUT {SLICE}");
    let before = laboratory.server.asked("PUT", SLICE).len();
    laboratory.server.fail(&attempt, Fault::TurnedAway { seconds: 2 });
    let order = laboratory.route("hello", Routing::Direct);
    laboratory.trouble_of(order).await;
    laboratory.server.heal(&attempt);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    let attempts = laboratory.server.asked("PUT", SLICE);
    let [first, second] = attempts[before..] else { panic!("one more attempt: {attempts:?}") };
    let wait = second.saturating_since(first);
    assert!(wait >= Duration::from_secs(2), "a first wait of its own is 0.1 s: {wait:?}");
}

#[tokio::test]
async fn a_slice_whose_answer_was_cut_is_found_written() {
    let mut laboratory = Laboratory::with_slice().await;
    let attempt = format!("PUT {SLICE}");
    laboratory.server.fail(&attempt, Fault::CutInAnswer);
    let order = laboratory.route("hello", Routing::Direct);
    laboratory.trouble_of(order).await;
    laboratory.server.heal(&attempt);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    assert_eq!(laboratory.written().0, "direct");
}

#[tokio::test]
async fn a_slice_that_another_client_deletes_or_writes_is_restored() {
    let mut laboratory = Laboratory::with_slice().await;
    let server = laboratory.server.clone();
    server.remove(SLICES, "shop", "hello-ebb-ipv4-0");
    let again = async {
        while server.object(SLICES, "shop", "hello-ebb-ipv4-0").is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("no other order is needed");
    assert_eq!(laboratory.written(), ("through-activator".to_owned(), vec![ACTIVATOR.to_owned()]));
    // Before the watch knows it: it is neither there nor what was read of it.
    server.remove_unseen(SLICES, "shop", "hello-ebb-ipv4-0");
    let order = laboratory.route("hello", Routing::Direct);
    let why = laboratory.trouble_of(order).await;
    assert!(why.contains("not found"), "{why}");
    server.end_watches(SLICES, WatchEnd::GoneInStream);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    assert_eq!(laboratory.written(), ("direct".to_owned(), vec![ACTIVATOR.to_owned()]));
    // And the same of one that was written over.
    let mut emptied = server.object(SLICES, "shop", "hello-ebb-ipv4-0").expect("it is there");
    emptied["endpoints"] = json!([]);
    server.change_unseen(SLICES, emptied);
    let order = laboratory.route("hello", Routing::ThroughActivator);
    let why = laboratory.trouble_of(order).await;
    assert_eq!(why, "another client wrote the object at the same time");
    server.end_watches(SLICES, WatchEnd::GoneInStream);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    assert_eq!(laboratory.written(), ("through-activator".to_owned(), vec![ACTIVATOR.to_owned()]));
}

#[tokio::test]
async fn a_pod_is_released_once_no_slice_names_it_however_often_the_write_fails() {
    let mut laboratory = Laboratory::with_slice().await;
    let order = laboratory.route("hello", Routing::Direct);
    assert_eq!(laboratory.end_of(order).await, OrderOutcome::Done);
    let server = laboratory.server.clone();
    let at = |name: &str, address: &str| {
        let mut pod = pod(name, None);
        pod["status"]["podIP"] = json!(address);
        pod
    };
    let addresses = ["10.244.1.7", "10.244.1.8"];
    for (name, address) in ["hello-1", "hello-2"].into_iter().zip(addresses) {
        server.put(PODS, at(name, address));
    }
    let named = async {
        while laboratory.written().1 != addresses {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, named).await.expect("both serve");
    let attempt = format!("PUT {SLICE}");
    server.fail(&attempt, Fault::Status(500));
    let mut leaving = at("hello-1", "10.244.1.7");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-22T10:00:00Z");
    leaving["metadata"]["deletionGracePeriodSeconds"] = json!(375);
    server.put(PODS, leaving);
    is_asked(&server, ("PUT", SLICE), server.asked("PUT", SLICE).len() + 1).await;
    let pod = PodName::new("shop/hello-1");
    let release = laboratory.give(Order::ReleasePod { pod, proof: ReleaseProof::Acknowledged });
    laboratory.waits(release, 3).await;
    assert_eq!(laboratory.written().1, addresses, "endpoints that served are named on");
    server.heal(&attempt);
    assert_eq!(laboratory.end_of(release).await, OrderOutcome::Done);
    assert_eq!(laboratory.written().1, ["10.244.1.8"]);
}
