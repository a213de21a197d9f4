//! Apps that break their answers: nothing that is not whole looks whole, and what never began is a refusal
//! with a reason.

use http::Method;
use http_body_util::BodyExt;

use crate::protocols::client::{Answer, Client, Protocol, empty, full, next_data};
use crate::protocols::world::{ROUTINGS, warm, within};

/// Vector H17 of the data-plane specification.
#[tokio::test]
async fn an_answer_that_the_app_breaks_off_breaks_off_for_the_client() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        for path in ["/short", "/unterminated"] {
            let mut client = Client::connect(&ebb, Protocol::Http1).await;
            let mut response = client.get(&routing.host(), path).await;
            assert_eq!(response.status(), 200, "{routing:?} {path}");
            assert_eq!(next_data(response.body_mut()).await, "7 bytes", "{routing:?} {path}");
            let rest = within("the end of the response", response.body_mut().frame()).await;
            assert!(matches!(rest, Some(Err(_))), "{routing:?} {path}: it looks whole: {rest:?}");
        }
    }
}

/// Vector H15. What may have been done is not done again, so the client has to hear of it.
#[tokio::test]
async fn an_answer_that_never_came_is_a_refusal_with_its_reason() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        for method in [Method::GET, Method::POST] {
            for (path, reason) in [("/nothing", "upstream-closed"), ("/garbage", "upstream-reset")] {
                let body = if method == Method::POST { full("body") } else { empty() };
                let request = Protocol::Http1.request(method.clone(), &routing.host(), path, body);
                let mut client = Client::connect(&ebb, Protocol::Http1).await;
                let answer = Answer::read(client.send(request).await.expect("there is a response")).await;
                assert_eq!((answer.status, answer.reason()), (502, reason), "{routing:?} {method} {path}");
            }
        }
    }
}
