//! The page that a browser is shown while a pod starts.

use http::Request;
use http_body_util::Full;
use vocabulary::{Assignment, PodState, WaitingPage};

use crate::world::{Caller, Got, Pod, World, assignment, until};

async fn navigate(caller: &Caller) -> Got {
    caller.send(Request::get("/").header("sec-fetch-mode", "navigate").body(Full::default()).unwrap()).await
}

fn with_page(assignment: Assignment) -> Assignment {
    Assignment { waiting_page: WaitingPage::Auto, ..assignment }
}

#[tokio::test]
async fn browsers_are_shown_a_page_while_one_request_keeps_the_start_alive() {
    let world = World::start();
    let mut autoscaler = world.synced(&[with_page(assignment(1, &[]))]).await;
    for caller in [Caller::http1(&world), Caller::http2(&world)] {
        let got = navigate(&caller).await;
        assert_eq!((got.status.as_u16(), got.header("retry-after"), got.header("refresh")), (503, "1", "1"));
        assert!(got.header("ebb-error").starts_with("starting; "), "{got:?}");
        assert!(got.body.contains("hello is starting") && got.body.contains("exit code 3"), "{got:?}");
        until("one place is kept", || world.metric("activator_waiting_requests") == 1.0).await;
    }
    // A program waits.
    let program = Caller::http1(&world).start("/program");
    until("it waits", || world.metric("activator_waiting_requests") == 2.0).await;
    let pod = Pod::start();
    autoscaler.assign(&with_page(assignment(2, &[("a", pod.address, PodState::Ready)]))).await;
    assert_eq!(program.await.unwrap().status, 200);
    assert_eq!(navigate(&Caller::http1(&world)).await.status, 200);
    until("nobody waits", || world.metric("activator_waiting_requests") == 0.0).await;
    // What was kept for the browsers reached no pod.
    assert_eq!(pod.paths(), ["/program", "/"]);
}

#[tokio::test]
async fn without_the_setting_a_browser_waits_as_programs_do() {
    let world = World::start();
    let mut autoscaler = world.synced(&[assignment(1, &[])]).await;
    let caller = Caller::http1(&world);
    let waiting = tokio::spawn(async move { navigate(&caller).await });
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    assert!(!waiting.is_finished(), "it waits for longer than the page would let it");
    let pod = Pod::start();
    autoscaler.assign(&assignment(2, &[("a", pod.address, PodState::Ready)])).await;
    assert_eq!(waiting.await.unwrap().status, 200);
}
