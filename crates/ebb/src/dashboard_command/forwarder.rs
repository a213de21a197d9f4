//! The pages of a cluster at a port of this machine: files that carry no data, and answers of the autoscalers
//! to a reader who has the token.
//!
//! Every process of the machine reaches the port, and the person's kubeconfig must not answer them all: so
//! each answer needs the token, which this command made and only its output shows. Questions alone are passed
//! on; nothing can be changed here.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use autoscaler::api_types::{
    API_VERSION, ChangeEvent, ForecastView, LedgerList, OwnersAnswer, RevisionDetail, RevisionList,
    RevisionSummary, SeriesView,
};
use autoscaler::refusal;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use futures_util::stream::unfold;
use runtime::TrustedHosts;
use serde::Serialize;
use vocabulary::RevisionName;

use super::answer_id::AnswerId;
use crate::api_token::{ApiToken, bearer};
use crate::cluster::Cluster;

/// How often the autoscalers are asked while a page is shown: each time takes a port-forward to each of them.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After so many looks without a change a comment goes out, within 15 s though a look takes a port-forward: a
/// reader who has left is found by it.
const QUIET_LOOKS_MAX: u32 = 12;

/// Answers a person's browser from a cluster.
#[derive(Clone)]
pub(super) struct Forwarder {
    cluster: Arc<Cluster>,
    token: ApiToken,
}

impl Forwarder {
    pub(super) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, token: ApiToken::random() }
    }

    pub(super) fn token(&self) -> ApiToken {
        self.token
    }

    pub(super) fn router(&self) -> Router {
        let router = Router::new().fallback(answer).with_state(self.clone()).merge(dashboard::pages());
        autoscaler::refuse_foreign(router, TrustedHosts::default(), refusal)
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|offered| self.token.is(offered))
    }

    async fn ask<Answer: OwnersAnswer + Serialize>(&self, path: &str) -> Response {
        match self.cluster.get::<Answer>(path).await {
            Ok(answer) => Json(answer).into_response(),
            Err(error) => refusal(StatusCode::SERVICE_UNAVAILABLE, format!("{error:#}")),
        }
    }

    /// What changes, as a stream of events: first everything, so an error is an answer of its own. `last` is
    /// the last event that the reader has.
    async fn stream(self, last: Option<AnswerId>) -> Response {
        let shown = match self.cluster.get::<RevisionList>(REVISIONS).await {
            Ok(shown) => shown,
            Err(error) => return refusal(StatusCode::SERVICE_UNAVAILABLE, format!("{error:#}")),
        };
        let answered = AnswerId::of(&shown);
        let goes_on = last.as_ref().is_some_and(|last| may_go_on(last, answered.as_ref()));
        let (told, first) = (Told::default(), Some(FirstAnswer { list: shown, goes_on }));
        let stream = ForwardedStream { forwarder: self, told, first, answered: answered.or(last) };
        let body = Body::from_stream(unfold(stream, ForwardedStream::next));
        ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], body).into_response()
    }
}

const REVISIONS: &str = "/v1/revisions";

async fn answer(State(forwarder): State<Forwarder>, request: Request) -> Response {
    if !forwarder.admits(request.headers()) {
        let error = "this needs the token: open the address that `ebb dashboard` has printed".to_owned();
        return refusal(StatusCode::UNAUTHORIZED, error);
    }
    let whole = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    if request.method() == Method::GET {
        // By its parts: a workload may be called `series` or `forecast`, too.
        match request.uri().path().split('/').skip(1).collect::<Vec<_>>()[..] {
            ["v1", "stream"] => {
                let last = last_told(request.headers());
                return forwarder.stream(last).await;
            }
            ["v1", "revisions"] => return forwarder.ask::<RevisionList>(&whole).await,
            ["v1", "ledger"] => return forwarder.ask::<LedgerList>(&whole).await,
            ["v1", "revisions", _, _, _] => return forwarder.ask::<RevisionDetail>(&whole).await,
            ["v1", "revisions", _, _, _, "series"] => return forwarder.ask::<SeriesView>(&whole).await,
            ["v1", "revisions", _, _, _, "forecast"] => return forwarder.ask::<ForecastView>(&whole).await,
            _ => {}
        }
    }
    refusal(StatusCode::NOT_FOUND, format!("the dashboard of a cluster has no {}", request.uri().path()))
}

/// The answer that was told last to a reader that comes back, as the reader's request names it.
fn last_told(headers: &HeaderMap) -> Option<AnswerId> {
    AnswerId::read(headers.get("last-event-id")?.to_str().ok()?)
}

/// Whether the autoscalers of an answer are those of the one before. While one of them is silent, they may
/// be.
fn may_go_on(before: &AnswerId, now: Option<&AnswerId>) -> bool {
    now.is_none_or(|now| before.goes_on_to(now))
}

/// What a reader was told last.
#[derive(Default)]
struct Told {
    revisions: BTreeMap<RevisionName, RevisionSummary>,
    problems: Vec<String>,
    unanswered: Vec<String>,
}

/// The answer that is told first.
struct FirstAnswer {
    list: RevisionList,
    /// Whether the reader has an event of the same autoscalers.
    goes_on: bool,
}

struct ForwardedStream {
    forwarder: Forwarder,
    told: Told,
    first: Option<FirstAnswer>,
    /// The last answer in which no autoscaler was silent.
    answered: Option<AnswerId>,
}

impl ForwardedStream {
    /// The next event or comment; the end once no autoscaler answers or others do, so that the reader asks
    /// again and hears that averages begin anew.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if let Some(FirstAnswer { list, goes_on }) = self.first.take() {
            let event = self.told.first(list, goes_on);
            return Some((Ok(encoded(&event, self.answered.as_ref())), self));
        }
        for _ in 0..QUIET_LOOKS_MAX {
            tokio::time::sleep(LOOK_EVERY).await;
            let list = self.forwarder.cluster.get::<RevisionList>(REVISIONS).await.ok()?;
            let answered = AnswerId::of(&list);
            if self.answered.as_ref().is_some_and(|before| !may_go_on(before, answered.as_ref())) {
                return None;
            }
            self.answered = answered.or(self.answered.take());
            if let Some(event) = self.told.take(list) {
                return Some((Ok(encoded(&event, self.answered.as_ref())), self));
            }
        }
        Some((Ok(Bytes::from_static(b": nothing has changed\n\n")), self))
    }
}

fn encoded(event: &ChangeEvent, answered: Option<&AnswerId>) -> Bytes {
    let id = answered.map(|answered| format!("id: {answered}\n")).unwrap_or_default();
    let data = serde_json::to_string(event).expect("an event is plain data");
    Bytes::from(format!("{id}event: change\ndata: {data}\n\n"))
}

impl Told {
    /// Everything, for a reader that was told nothing on this stream. One that goes on is told which
    /// revisions there are, unless a silent autoscaler may decide about more.
    fn first(&mut self, list: RevisionList, goes_on: bool) -> ChangeEvent {
        let (snapshot, have_all_answered) = (list.snapshot, list.unanswered.is_empty());
        let nothing = ChangeEvent { version: API_VERSION, snapshot, ..ChangeEvent::default() };
        let event = self.take(list).unwrap_or(nothing);
        let names = event.revisions.iter().map(|one| one.name.clone()).collect();
        ChangeEvent { whole: !goes_on, names: (goes_on && have_all_answered).then_some(names), ..event }
    }

    /// What is new in the latest answer; `None` if nothing is. While an autoscaler does not answer, the
    /// revisions of which no other one tells stay as they were: that one may decide about them.
    fn take(&mut self, list: RevisionList) -> Option<ChangeEvent> {
        let RevisionList { snapshot, revisions, problems, unanswered, .. } = list;
        let mut present: BTreeMap<_, _> = revisions.into_iter().map(|one| (one.name.clone(), one)).collect();
        if !unanswered.is_empty() {
            for (name, one) in &self.revisions {
                present.entry(name.clone()).or_insert_with(|| one.clone());
            }
        }
        let changed = present.iter().filter(|(name, one)| self.revisions.get(*name) != Some(one));
        let changed: Vec<RevisionSummary> = changed.map(|(_, one)| one.clone()).collect();
        let gone = self.revisions.keys().filter(|name| !present.contains_key(*name));
        let gone: Vec<RevisionName> = gone.cloned().collect();
        let is_news = !changed.is_empty()
            || !gone.is_empty()
            || (&self.problems, &self.unanswered) != (&problems, &unanswered);
        *self = Self { revisions: present, problems: problems.clone(), unanswered: unanswered.clone() };
        is_news.then_some(ChangeEvent {
            version: API_VERSION,
            snapshot,
            whole: false,
            revisions: changed,
            names: None,
            gone,
            problems,
            unanswered,
        })
    }
}

#[cfg(test)]
mod tests {
    use autoscaler::api_types::{LinkTallyView, LinksView};
    use axum::http::HeaderValue;
    use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
    use tower::ServiceExt as _;

    use super::*;

    /// A forwarder to a cluster in which nothing is installed.
    fn forwarder() -> Forwarder {
        let nothing = tower::service_fn(|_: axum::http::Request<kube::client::Body>| async {
            let mut nothing = axum::http::Response::new(kube::client::Body::empty());
            *nothing.status_mut() = StatusCode::NOT_FOUND;
            Ok::<_, Infallible>(nothing)
        });
        Forwarder::new(Arc::new(Cluster {
            client: kube::Client::new(nothing, "default"),
            namespace: "default".to_owned(),
            system: "ebb-system".to_owned(),
            context: "test".to_owned(),
        }))
    }

    #[tokio::test]
    async fn files_are_open_and_each_answer_needs_the_token() {
        let forwarder = forwarder();
        let right = format!("Bearer {}", forwarder.token().expose());
        let other = format!("Bearer {}", ApiToken::random().expose());
        let own = "http://127.0.0.1:9";
        for (path, token, origin, expected) in [
            ("/", None, own, StatusCode::OK),
            ("/dashboard/app.js", None, own, StatusCode::OK),
            ("/v1/revisions", None, own, StatusCode::UNAUTHORIZED),
            ("/v1/stream", Some(&other), own, StatusCode::UNAUTHORIZED),
            ("/v1/stream", Some(&right), "http://evil.example", StatusCode::FORBIDDEN),
            // No autoscaler decides there.
            ("/v1/stream", Some(&right), own, StatusCode::SERVICE_UNAVAILABLE),
            ("/v1/ledger?since=7d", Some(&right), own, StatusCode::SERVICE_UNAVAILABLE),
            ("/v1/revisions/a/deployment/b/forecast", Some(&right), own, StatusCode::SERVICE_UNAVAILABLE),
            ("/v1/revisions/a/deployment/b/pods", Some(&right), own, StatusCode::NOT_FOUND),
            ("/v1/logs/default/service/hello", Some(&right), own, StatusCode::NOT_FOUND),
        ] {
            let mut request = axum::http::Request::builder().uri(path).header(HOST, "127.0.0.1:9");
            request = request.header(ORIGIN, origin);
            if let Some(token) = token {
                request = request.header(AUTHORIZATION, token);
            }
            let request = request.body(Body::empty()).expect("a request");
            let response = forwarder.router().oneshot(request).await.expect("it answers");
            assert_eq!(response.status(), expected, "{path} {origin}");
        }
    }

    fn answered(problems: &[&str]) -> RevisionList {
        RevisionList {
            version: API_VERSION,
            snapshot: 7,
            revisions: Vec::new(),
            problems: problems.iter().map(|&problem| problem.to_owned()).collect(),
            unanswered: Vec::new(),
            links: Vec::new(),
        }
    }

    #[test]
    fn a_reader_is_told_everything_first_and_then_what_changed() {
        let mut told = Told::default();
        let event = told.first(answered(&[]), false);
        assert!(event.whole && event.names.is_none() && event.gone.is_empty(), "{event:?}");
        assert_eq!(told.take(answered(&[])), None);
        let event = told.take(answered(&["a typo"])).expect("a problem is news");
        assert_eq!((event.whole, event.snapshot, event.problems), (false, 7, vec!["a typo".to_owned()]));
        assert_eq!(told.take(answered(&["a typo"])), None);
    }

    fn revision(name: &str) -> RevisionSummary {
        let summary = serde_json::json!({
            "name": name, "template": "", "mode": "stable", "metric": "rps", "target_per_pod": 7.0,
            "wanted": 1, "ready_pods": 1, "not_ready_pods": 0, "pending_pods": 0, "terminating_pods": 0,
            "routing": "direct", "waiting": 0, "activity": "active", "last_reason": "",
        });
        serde_json::from_value(summary).expect("a summary")
    }

    #[test]
    fn a_fleet_of_two_autoscalers_stays_whole_while_one_of_them_does_not_answer() {
        let mut told = Told::default();
        let (one, two) = (revision("default/deployment/one"), revision("default/deployment/two"));
        let both = RevisionList { revisions: vec![one.clone(), two.clone()], ..answered(&[]) };
        assert_eq!(told.first(both.clone(), false).revisions.len(), 2);
        let of_one = RevisionList { revisions: vec![one.clone()], ..answered(&[]) };
        let silent = RevisionList { unanswered: vec!["autoscaler-b".to_owned()], ..of_one.clone() };
        let event = told.take(silent.clone()).expect("an autoscaler that is silent is news");
        assert_eq!((event.gone, event.revisions), (Vec::new(), Vec::new()));
        assert_eq!(event.unanswered, ["autoscaler-b"]);
        assert_eq!(told.take(silent), None);
        let event = told.take(both).expect("it answers again");
        assert_eq!((event.gone, event.revisions, event.unanswered), (Vec::new(), Vec::new(), Vec::new()));
        let event = told.take(of_one).expect("all answer, and one revision is gone");
        assert_eq!(event.gone, [two.name]);
    }

    #[test]
    fn a_reader_that_comes_back_is_told_what_there_is_and_not_that_averages_begin_anew() {
        let one = revision("default/deployment/one");
        let name = one.name.clone();
        let list = RevisionList { revisions: vec![one], ..answered(&[]) };
        let event = Told::default().first(list.clone(), true);
        assert_eq!((event.whole, event.snapshot, event.names), (false, 7, Some(vec![name])));
        assert_eq!(Told::default().first(answered(&[]), true).names, Some(Vec::new()), "all are gone");
        let silent = RevisionList { unanswered: vec!["autoscaler-b".to_owned()], ..list };
        let event = Told::default().first(silent, true);
        assert_eq!((event.whole, event.names), (false, None), "there may be more");
    }

    #[test]
    fn an_event_goes_on_after_one_of_the_same_autoscalers() {
        let of = |autoscaler: &str, snapshot: u64, unanswered: &[&str]| {
            let none = LinkTallyView { expected: 0, up: 0, down: Vec::new() };
            let (to_activators, to_pods) = (none.clone(), none);
            let links = vec![LinksView { autoscaler: autoscaler.to_owned(), to_activators, to_pods }];
            let unanswered = unanswered.iter().map(|&name| name.to_owned()).collect();
            AnswerId::of(&RevisionList { snapshot, unanswered, links, ..answered(&[]) })
        };
        let before = of("autoscaler-a", 7, &[]).expect("all have answered");
        let event = encoded(&ChangeEvent::default(), Some(&before));
        assert!(event.starts_with(b"id: autoscaler-a-7\nevent: change\ndata: {"), "{event:?}");
        let mut headers = HeaderMap::new();
        headers.insert("last-event-id", HeaderValue::from_static("autoscaler-a-7"));
        assert_eq!(last_told(&headers), Some(before.clone()));
        assert!(may_go_on(&before, of("autoscaler-a", 8, &[]).as_ref()));
        assert!(may_go_on(&before, of("autoscaler-a", 0, &["autoscaler-b"]).as_ref()), "one is silent");
        assert!(!may_go_on(&before, of("autoscaler-a", 3, &[]).as_ref()), "it began anew");
        assert!(!may_go_on(&before, of("autoscaler-b", 8, &[]).as_ref()), "another one decides");
    }
}
