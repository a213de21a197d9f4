//! `late-timeout: append`: an owner in Knative's place may choose Knative's end of a response that has begun
//! when the time of its request is up.

use http::{Request, Response};
use http_body_util::BodyExt as _;
use link::PodOrder;
use vocabulary::{Epoch, LateTimeout, PodSettings, PodWord, Version};

use crate::world::{App, Proxy, http2, run, streamed};

/// A queue-proxy before this app whose owner has chosen that.
async fn appending(app: &App, limit: (&str, &str)) -> Proxy {
    let mut proxy = Proxy::start(app.port, &[limit]).await;
    let version = Version { epoch: Epoch(1), counter: 1 };
    let settings = PodSettings { version, late: LateTimeout::Append, ..PodSettings::default() };
    proxy.writer.send(&PodOrder::Settings(settings.into())).await.expect("the link is up");
    while !matches!(proxy.heard().await, PodWord::SettingsAcknowledged(known) if known == version) {}
    proxy
}

#[test]
fn a_late_response_of_no_announced_length_is_appended_to_and_ends_well() {
    run(async {
        let app = App::start(|_| Box::pin(async { Response::new(streamed(&[(0, "a"), (1500, "b")])) })).await;
        let proxy = appending(&app, ("REVISION_IDLE_TIMEOUT_SECONDS", "1")).await;
        let mut sender = http2(proxy.ports.requests).await;
        let over_http2 = async {
            let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
            let response = sender.send_request(Request::get("http://h/").body(body).expect("legal")).await;
            response.expect("a head").into_body().collect().await.expect("it ends well").to_bytes()
        };
        let (answer, over_http2) = tokio::join!(proxy.get("/", &[]), over_http2);
        assert_eq!((answer.status, answer.body.as_str(), answer.is_whole), (200, "arequest timeout", true));
        assert_eq!(&over_http2[..], b"arequest timeout");
    });
}

/// What came behind the announced length would be read as the begin of the next answer.
#[test]
fn a_late_response_of_an_announced_length_is_broken_off_all_the_same() {
    run(async {
        let app = App::start(|_| {
            Box::pin(async {
                let frames = &[(0, "a"), (400, "b"), (400, "c"), (400, "d"), (400, "e")];
                Response::builder().header("content-length", "5").body(streamed(frames)).expect("legal")
            })
        })
        .await;
        let proxy = appending(&app, ("REVISION_TIMEOUT_SECONDS", "1")).await;
        let answer = proxy.get("/", &[]).await;
        assert_eq!((answer.status, answer.body.as_str(), answer.is_whole), (200, "abc", false));
    });
}
