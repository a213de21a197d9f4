//! Requests that clients break off, beside those of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use tests::Ebb;

use crate::protocols::client::{Answer, Client, Protocol, empty};
use crate::protocols::world::{ROUTINGS, Routing, warm};

/// How many connections break requests off.
const IMPATIENT: usize = 16;
/// How many each of them breaks off: together, and over a hop that they share, far more than any one may.
const CANCELLED_BY_EACH: usize = 400;
/// How far apart: 200 in a second, which is no attack.
const APART: Duration = Duration::from_millis(5);
/// How many connections do as they should.
const HONEST: usize = 4;

/// One connection that opens requests and breaks them off while the app works on them.
async fn cancel(ebb: Arc<Ebb>, routing: Routing) -> usize {
    let mut client = Client::connect(&ebb, Protocol::Http2).await;
    let mut cancelled = 0;
    for _ in 0..CANCELLED_BY_EACH {
        let request = Protocol::Http2.request(Method::GET, &routing.host(), "/?sleep=1000", empty());
        tokio::select! {
            answer = client.send(request) => panic!("an answer to what is broken off: {answer:?}"),
            // Dropping the other future resets its stream.
            () = tokio::time::sleep(APART) => cancelled += 1,
        }
    }
    cancelled
}

/// Asks one request after another until the others have done.
async fn ask(ebb: Arc<Ebb>, routing: Routing, is_over: Arc<AtomicBool>, answered: Arc<AtomicUsize>) {
    let mut client = Client::connect(&ebb, Protocol::Http2).await;
    while !is_over.load(Ordering::Relaxed) {
        let answer = Answer::read(client.get(&routing.host(), "/").await).await;
        assert_eq!(answer.status, 200, "{routing:?}: {answer:?}");
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn requests_that_many_clients_break_off_end_no_request_of_others() {
    let ebb = Arc::new(warm(|service| service).await);
    for routing in ROUTINGS {
        let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let honest: Vec<_> = (0..HONEST)
            .map(|_| {
                tokio::spawn(ask(Arc::clone(&ebb), routing, Arc::clone(&is_over), Arc::clone(&answered)))
            })
            .collect();
        let impatient: Vec<_> =
            (0..IMPATIENT).map(|_| tokio::spawn(cancel(Arc::clone(&ebb), routing))).collect();
        for cancelling in impatient {
            assert_eq!(cancelling.await.expect("nothing breaks"), CANCELLED_BY_EACH, "{routing:?}");
        }
        is_over.store(true, Ordering::Relaxed);
        for asking in honest {
            asking.await.expect("every request is answered");
        }
        assert!(answered.load(Ordering::Relaxed) >= HONEST, "{routing:?}");
    }
}
