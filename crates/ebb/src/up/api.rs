//! The API's front: it belongs to the process, so it answers while the autoscaler behind it is rebuilt.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use anyhow::Context;
use arc_swap::ArcSwap;
use autoscaler::PageServer;
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use platform_local::{Deletion, LocalPlatform, RolloutAnswer};
use runtime::{Clock, MetricsFormat, PageKind, PageLimits, PagePlaces, TrustedHosts, vital};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tower::ServiceExt as _;
use vocabulary::RevisionName;

use super::access::ApiAccess;
use super::{logs, scraping};
use crate::cli::Part;

/// A person wants a part rebuilt.
pub(super) struct RestartOrder {
    pub(super) part: Part,
    pub(super) done: oneshot::Sender<Result<(), String>>,
}

/// The orders that a person may give, and the proof of being that person.
pub(super) struct PersonalOrders {
    pub(super) restarts: mpsc::Sender<RestartOrder>,
    pub(super) platform: Arc<LocalPlatform>,
    pub(super) access: ApiAccess,
}

/// The router of the autoscaler that is at work now.
#[derive(Clone)]
pub(super) struct CurrentRouter(Arc<ArcSwap<Router>>);

impl CurrentRouter {
    pub(super) fn new(router: Router) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(router)))
    }

    pub(super) fn router(&self) -> Router {
        Router::clone(&self.0.load())
    }

    pub(super) fn replace(&self, router: Router) {
        self.0.store(Arc::new(router));
    }
}

/// The API at work, and what is handed over of it.
pub(super) struct ApiServer {
    pub(super) task: JoinHandle<()>,
    /// A copy of the listening socket, for a successor in a take-over.
    pub(super) socket: OwnedFd,
    pub(super) access: ApiAccess,
}

/// Serves the API until aborted.
pub(super) fn serve(
    listener: TcpListener,
    current: CurrentRouter,
    orders: PersonalOrders,
    trusted: TrustedHosts,
) -> anyhow::Result<JoinHandle<()>> {
    let places = PagePlaces::new(PageLimits::STANDARD, Clock::start());
    let server = PageServer::new(router(current, orders, trusted))
        .with_kinds(kind_of)
        .with_refusals(autoscaler::refusal);
    let serving = server.serve(listener, &places).context("listening for the API")?;
    Ok(tokio::spawn(vital("the API", async move {
        // It ends only by abort.
        let never = serving.await;
        match never {}
    })))
}

/// Reads that last until their reader has enough have places of their own.
fn kind_of(uri: &Uri) -> PageKind {
    if uri.path().starts_with("/v1/logs/") && logs::is_followed(uri) {
        PageKind::LongRead
    } else {
        autoscaler::page_kind(uri)
    }
}

/// Requests of browsers and then those without a token are refused here, in front of everything, so that no
/// page can be forgotten.
fn router(current: CurrentRouter, orders: PersonalOrders, trusted: TrustedHosts) -> Router {
    let store = orders.platform.logs();
    let front = FallbackPages { current, platform: orders.platform };
    let router = Router::new()
        .route("/v1", get(|| async { Html(include_str!("first_page.html")) }))
        .route(
            "/v1/logs/{namespace}/{kind}/{name}",
            get(move |name, wanted| std::future::ready(logs::read(name, wanted, store))),
        )
        .route("/v1/restart/{part}", post(restart))
        .with_state(orders.restarts)
        .route("/metrics", get(metrics))
        .route("/v1/http-sd", get(http_sd))
        .fallback(forward)
        .with_state(front)
        .merge(dashboard::pages())
        .merge(orders.access.pages());
    autoscaler::refuse_foreign(orders.access.guard(router), trusted, autoscaler::refusal)
}

/// What answers everything that has no route here.
#[derive(Clone)]
struct FallbackPages {
    current: CurrentRouter,
    platform: Arc<LocalPlatform>,
}

/// What this process and all its pods count.
async fn metrics(State(front): State<FallbackPages>, headers: HeaderMap) -> Response {
    let router = front.current.router();
    let Some(own) = scraping::text(&router, "/metrics").await else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the autoscaler is being rebuilt\n").into_response();
    };
    let page = scraping::page(own, scraping::pods(&router).await).await;
    let format = MetricsFormat::asked_for(headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()));
    ([(CONTENT_TYPE, format.content_type())], format.of_page(page)).into_response()
}

/// Where each pod's own page is, as Prometheus wants to be told.
async fn http_sd(State(front): State<FallbackPages>) -> Response {
    Json(scraping::targets(&scraping::pods(&front.current.router()).await)).into_response()
}

/// For the autoscaler, but orders about what it tells of. (Not routes with parameters: they would add up with
/// those of its own routes.)
async fn forward(State(front): State<FallbackPages>, request: Request) -> Response {
    let name = request.uri().path().strip_prefix("/v1/revisions/");
    if let Some(name) = name.filter(|_| request.method() == Method::DELETE) {
        return delete_service(name, &front.platform).await.into_response();
    }
    if let Some(path) = name.filter(|_| request.method() == Method::POST) {
        if let Some(name) = path.strip_suffix("/restart") {
            return restart_service(name, &front.platform).await.into_response();
        }
        if let Some(name) = path.strip_suffix("/rollback") {
            return roll_back_service(name, &front.platform).await.into_response();
        }
    }
    front.current.router().oneshot(request).await.into_response()
}

/// The answer to an order about a Service; `Err` where the order names none.
type OrderAnswer = Result<(StatusCode, String), (StatusCode, String)>;

fn named(text: &str) -> Result<RevisionName, (StatusCode, String)> {
    RevisionName::parse(text).map_err(|error| (StatusCode::BAD_REQUEST, format!("{error}\n")))
}

async fn delete_service(name: &str, platform: &LocalPlatform) -> OrderAnswer {
    let name = named(name)?;
    Ok(match platform.delete(name.clone()).await {
        Deletion::Begun { file } => (
            StatusCode::OK,
            format!(
                "{name} is removed: its pods drain; it comes back when {} is written again\n",
                file.display()
            ),
        ),
        Deletion::Unknown => unknown_service(&name),
    })
}

async fn restart_service(name: &str, platform: &LocalPlatform) -> OrderAnswer {
    let name = named(name)?;
    Ok(match platform.restart_pods(name.clone()).await {
        RolloutAnswer::Begun { .. } => {
            (StatusCode::OK, format!("{name} is restarted: new pods take over one by one\n"))
        }
        RolloutAnswer::NothingBefore | RolloutAnswer::Unknown => unknown_service(&name),
    })
}

async fn roll_back_service(name: &str, platform: &LocalPlatform) -> OrderAnswer {
    let name = named(name)?;
    Ok(match platform.roll_back(name.clone()).await {
        RolloutAnswer::Begun { file } => (
            StatusCode::OK,
            format!(
                "{name} is rolled back: pods of the template before take over one by one; the template of {} comes back when that file is written again\n",
                file.display()
            ),
        ),
        RolloutAnswer::NothingBefore => (
            StatusCode::CONFLICT,
            format!(
                "the template of {name} was not edited since `ebb up` began, so there is none before it\n"
            ),
        ),
        RolloutAnswer::Unknown => unknown_service(&name),
    })
}

fn unknown_service(name: &RevisionName) -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, format!("there is no Service {name}, or everything ends already\n"))
}

async fn restart(
    Path(part): Path<String>,
    State(orders): State<mpsc::Sender<RestartOrder>>,
) -> (StatusCode, String) {
    let Some(part) = Part::named(&part) else {
        return (
            StatusCode::NOT_FOUND,
            format!("{part:?} cannot be restarted; autoscaler and activator can\n"),
        );
    };
    let (done, outcome) = oneshot::channel();
    if orders.try_send(RestartOrder { part, done }).is_err() {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "other restarts are under way, or everything is stopping\n".to_owned(),
        );
    }
    match outcome.await {
        Ok(Ok(())) => (StatusCode::OK, "rebuilt\n".to_owned()),
        Ok(Err(problem)) => (StatusCode::INTERNAL_SERVER_ERROR, problem),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "everything is stopping\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use autoscaler::api_types::{API_VERSION, ApiError};
    use axum::body::{Body, to_bytes};
    use axum::http::Method;
    use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
    use axum::routing::get;

    use super::*;

    /// What the API answers, and whether that made something happen.
    async fn asked(
        method: Method,
        path: &str,
        host: &str,
        origin: Option<&str>,
    ) -> (StatusCode, String, bool) {
        let behind = Router::new().route("/v1/revisions", get(|| async { "all" }));
        let current = CurrentRouter::new(behind.route("/metrics", get(|| async { "numbers" })));
        let (orders, mut ordered) = mpsc::channel(1);
        let trusted = "ebb.example.com".parse().expect("a name");
        let access = ApiAccess::of_this_machine();
        let token = format!("Bearer {}", access.token().expose());
        let mut request =
            Request::builder().method(method).uri(path).header(HOST, host).header(AUTHORIZATION, token);
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        let request = request.body(Body::empty()).expect("a request");
        let orders = PersonalOrders { restarts: orders, platform: nothing_to_run(), access };
        let asking = tokio::spawn(router(current, orders, trusted).oneshot(request));
        let is_ordered = match ordered.recv().await {
            Some(RestartOrder { done, .. }) => done.send(Ok(())).is_ok(),
            None => false,
        };
        let response = asking.await.expect("no panic").expect("it answers");
        let status = response.status();
        let body = to_bytes(response.into_body(), 4096).await.expect("short");
        (status, String::from_utf8_lossy(&body).into_owned(), is_ordered)
    }

    fn nothing_to_run() -> Arc<LocalPlatform> {
        let config = platform_local::LocalConfig {
            manifests: platform_local::ManifestSource::default(),
            autoscalers: vec![vocabulary::ReplicaName::new("autoscaler-1")],
            front_door: platform_local::FrontDoor::without_tls(([127, 0, 0, 1], 8080).into()),
            logs: platform_local::LogOptions::default(),
            max_pods: 1,
            ebb: "ebb".into(),
            handover: None,
            app_descriptors: None,
            standing_problems: Vec::new(),
            certified: None,
            clock: runtime::Clock::start(),
        };
        LocalPlatform::start(config, platform_local::LoadedManifest::default())
            .expect("nothing was handed over")
    }

    #[tokio::test]
    async fn pages_of_strangers_neither_read_nor_restart() {
        let (own, evil) = ("127.0.0.1:9000", "http://evil.example");
        for (host, origin, expected) in [
            (own, None, StatusCode::OK),
            (own, Some("http://127.0.0.1:9000"), StatusCode::OK),
            ("[::1]:9000", None, StatusCode::OK),
            ("localhost:9000", Some("http://localhost:9000"), StatusCode::OK),
            ("ebb.example.com", Some("https://ebb.example.com"), StatusCode::OK),
            (own, Some(evil), StatusCode::FORBIDDEN),
            (own, Some("null"), StatusCode::FORBIDDEN),
            ("evil.example:9000", None, StatusCode::FORBIDDEN),
            ("evil.example:9000", Some("http://evil.example:9000"), StatusCode::FORBIDDEN),
        ] {
            let (status, text, _) = asked(Method::GET, "/v1/revisions", host, origin).await;
            assert_eq!(status, expected, "{host} {origin:?}: {text}");
            assert_eq!(text == "all", expected == StatusCode::OK, "{text}");
            let (status, text, is_restarted) =
                asked(Method::POST, "/v1/restart/autoscaler", host, origin).await;
            assert_eq!(status, expected, "{host} {origin:?}: {text}");
            assert_eq!(is_restarted, expected == StatusCode::OK, "{host} {origin:?}");
            let (status, text, _) = asked(Method::GET, "/metrics", host, origin).await;
            assert_eq!(status, expected, "{host} {origin:?}: {text}");
            assert_eq!(text == "numbers", expected == StatusCode::OK, "{text}");
        }
    }

    #[test]
    fn the_first_page_says_what_is_where_as_the_documentation_does() {
        let page = include_str!("first_page.html");
        let table = include_str!("../../../../docs/reference/api.md").lines();
        let requests: Vec<&str> = table
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
            .map(|(first, _)| first)
            .collect();
        let (mut asked, mut ordered) = (0, 0);
        for request in requests {
            let request = request
                .replace("{namespace}", "NAMESPACE")
                .replace("{kind}", "service")
                .replace("{name}", "NAME")
                .replace("{autoscaler}", "AUTOSCALER")
                .replace("{segment}", "NUMBER");
            match request.split_once(' ') {
                Some(("GET", path)) if path != "/" => {
                    asked += 1;
                    assert!(page.contains(&format!(">{path}</")), "{request}");
                }
                Some(("DELETE", _)) => {
                    ordered += 1;
                    assert!(page.contains(&format!("<code>{request}</code>")), "{request}");
                }
                // The page itself, and the tables of fields.
                _ => {}
            }
        }
        assert!(asked >= 6 && ordered == 1, "{asked} {ordered}");
    }

    #[tokio::test]
    async fn a_refusal_is_an_error_like_others() {
        let (_, text, _) = asked(Method::GET, "/v1/revisions", "evil.example", None).await;
        let error: ApiError = serde_json::from_str(&text).expect("JSON");
        assert!(error.version == API_VERSION && error.error.contains("--trusted-host"), "{text}");
    }
}
