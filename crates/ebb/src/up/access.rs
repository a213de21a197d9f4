//! Which requests to the API of `ebb up` need its token?
//!
//! Every process of a machine reaches its loopback addresses, those of pods and of other users too. So there
//! is a token, and a file that holds it (`token_file.rs`).
//!
//! ```text
//!                              API on loopback            API on any other address
//! GET /healthz                 open                       open
//! files of the dashboard       open                       open
//! counts, problems, metrics    open, without what apps    token
//!                              printed
//! logs, orders, all the rest   token                      token
//! ```
//!
//! The last line is the rule and the others are exceptions: a page that is added later is closed until it is
//! named here. A token comes in the header `Authorization` and nowhere else: URLs stand in logs, histories
//! and lists of processes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use autoscaler::api_types::API_VERSION;
use axum::extract::{Request, State};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use orchestration::AppOutput;
use parking_lot::Mutex;
use tracing::{info, warn};

use super::token_file::{TokenFile, TokenLife};
use crate::api_token::{ApiToken, TokenAnswer, bearer};
use crate::cli::UpOptions;

/// Pages that every user of this machine may read, besides those below [`REVISIONS`] and the files of the
/// dashboard.
const OPEN_PAGES: [&str; 10] = [
    HEALTH,
    "/ready",
    "/metrics",
    "/v1",
    "/v1/stream",
    "/v1/token",
    "/v1/problems",
    "/v1/http-sd",
    "/v1/revisions",
    "/v1/ledger",
];
const REVISIONS: &str = "/v1/revisions/";
/// Open wherever the API is.
const HEALTH: &str = "/healthz";

/// From where the address of the API is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ApiReach {
    ThisMachine,
    /// Other machines reach it, too.
    Network,
}

impl ApiReach {
    fn of(api: SocketAddr) -> Self {
        if api.ip().to_canonical().is_loopback() { Self::ThisMachine } else { Self::Network }
    }
}

/// The token, and the requests that need it.
#[derive(Clone)]
pub(super) struct ApiAccess(Arc<AccessRule>);

struct AccessRule {
    token: ArcSwap<ApiToken>,
    /// Held while another token is put in force: two at once would leave one in the file and the other here.
    rotation: Mutex<()>,
    /// `None` where no file can be written.
    file: Option<TokenFile>,
    reach: ApiReach,
}

impl ApiAccess {
    /// That of the API at this address, with the token of the `ebb up` that was taken over, if one was.
    /// Without a file everything works but what needs the token, so what goes wrong is only logged.
    pub(super) fn prepare(api: SocketAddr, options: &UpOptions, handed: Option<ApiToken>) -> Self {
        let life = if options.api.port() == 0 { TokenLife::OneRun } else { TokenLife::OverRestarts };
        let (group, named) = (options.token_group.clone(), options.operation.state_dir.clone());
        let established =
            TokenFile::of(api, group, life, named).and_then(|file| Ok((file.establish(handed)?, Some(file))));
        let (token, file) = established.unwrap_or_else(|error| {
            let error = format!("{error:#}");
            warn!(
                error,
                "the API's token is in no file, so each request that needs it is refused; set XDG_STATE_HOME"
            );
            (handed.unwrap_or_else(ApiToken::random), None)
        });
        let reach = ApiReach::of(api);
        if reach == ApiReach::Network {
            warn!(%api, "other machines reach the API, which wants its token for all but /healthz and the files of the dashboard, and speaks no TLS: the token can be read on the way");
        }
        Self::with(token, file, reach)
    }

    fn with(token: ApiToken, file: Option<TokenFile>, reach: ApiReach) -> Self {
        let rotation = Mutex::default();
        Self(Arc::new(AccessRule { token: ArcSwap::from_pointee(token), rotation, file, reach }))
    }

    /// With a token of its own in no file.
    #[cfg(test)]
    pub(super) fn of_this_machine() -> Self {
        Self::with(ApiToken::random(), None, ApiReach::ThisMachine)
    }

    /// What is to be handed over.
    pub(super) fn token(&self) -> ApiToken {
        **self.0.token.load()
    }

    /// To be called at the end of `ebb up`, when no other one has taken over.
    pub(super) fn leave(&self) {
        self.0.file.iter().for_each(TokenFile::leave);
    }

    /// What the API has to say of its token.
    pub(super) fn pages(&self) -> Router {
        Router::new()
            .route("/v1/token", get(token_location))
            .route("/v1/token/rotate", post(rotate))
            .with_state(self.clone())
    }

    /// The same pages, of which those that need the token are refused without it with 401.
    pub(super) fn guard(&self, router: Router) -> Router {
        let access = self.clone();
        router.layer(from_fn(move |mut request: Request, next: Next| {
            let output = access.admit(&request);
            async move {
                match output {
                    Ok(output) => {
                        request.extensions_mut().insert(output);
                        next.run(request).await
                    }
                    Err(refusal) => *refusal,
                }
            }
        }))
    }

    /// How much a request is told; refused where it is nothing.
    fn admit(&self, request: &Request) -> Result<AppOutput, Box<Response>> {
        let offered = bearer(request.headers());
        if offered.is_some_and(|offered| self.token().is(offered)) {
            return Ok(AppOutput::Shown);
        }
        if self.is_open(request.method(), request.uri().path()) {
            return Ok(AppOutput::Withheld);
        }
        let problem = offered.map(|_| "this is not its token, which may be another one by now; ");
        Err(Box::new(self.refusal(problem)))
    }

    fn is_open(&self, method: &Method, path: &str) -> bool {
        let is_read = [Method::GET, Method::HEAD].contains(method);
        // They carry no data: a page asks for that with the token of its reader.
        let is_file = dashboard::paths().any(|file| file == path);
        is_read
            && match self.0.reach {
                ApiReach::ThisMachine => OPEN_PAGES.contains(&path) || path.starts_with(REVISIONS) || is_file,
                ApiReach::Network => path == HEALTH || is_file,
            }
    }

    fn refusal(&self, problem: Option<&str>) -> Response {
        let place = match &self.0.file {
            Some(file) => format!(
                "the token in {}: run this ebb or a newer one as the user of `ebb up`, or with sudo; it reads that file itself",
                file.path().display()
            ),
            None => "a token, and `ebb up` could write none to a file, as its log says".to_owned(),
        };
        let open = match self.0.reach {
            ApiReach::ThisMachine => "`ebb get`, `ebb explain` and /metrics need none",
            ApiReach::Network => {
                "on an address that other machines reach only /healthz and the files of the dashboard need none"
            }
        };
        let error = format!("{}this needs {place}; {open}", problem.unwrap_or_default());
        let scheme = [(WWW_AUTHENTICATE, "Bearer realm=\"ebb\"")];
        (StatusCode::UNAUTHORIZED, scheme, Json(self.answer(Some(error)))).into_response()
    }

    fn answer(&self, error: Option<String>) -> TokenAnswer {
        let token_file = self.0.file.as_ref().map(|file| PathBuf::from(file.path()));
        TokenAnswer { version: API_VERSION, error, token_file }
    }

    /// Puts another token in force, in the file first: a reader of the file is never behind.
    fn rotate(&self) -> Result<(), String> {
        let file = self.0.file.as_ref().ok_or("no file could be written, as the log says")?;
        let _turn = self.0.rotation.lock();
        let new = ApiToken::random();
        file.write(new).map_err(|error| format!("{error:#}; the token stays as it is"))?;
        self.0.token.store(Arc::new(new));
        info!(file = %file.path().display(), "the API has another token from now on");
        Ok(())
    }
}

/// `GET /v1/token`: where it is, never what it is.
async fn token_location(State(access): State<ApiAccess>) -> Response {
    Json(access.answer(None)).into_response()
}

/// `POST /v1/token/rotate`: puts another token in force.
async fn rotate(State(access): State<ApiAccess>) -> Response {
    let rotating = access.clone();
    // It waits for a disk. After a panic in it the answer below says that it did not end well.
    let done = tokio::task::spawn_blocking(move || rotating.rotate()).await;
    match done.unwrap_or_else(|_| Err("the token could not be replaced".to_owned())) {
        Ok(()) => Json(access.answer(None)).into_response(),
        Err(problem) => {
            (StatusCode::INTERNAL_SERVER_ERROR, Json(access.answer(Some(problem)))).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::header::AUTHORIZATION;
    use tower::ServiceExt as _;

    use super::*;

    fn access(reach: ApiReach) -> ApiAccess {
        ApiAccess::with(ApiToken::random(), None, reach)
    }

    /// Status, and whether what apps printed would be shown.
    async fn asked(
        access: &ApiAccess,
        question: &str,
        offered: &[String],
    ) -> (StatusCode, Option<AppOutput>) {
        let (method, path) = question.split_once(' ').expect("a method and a path");
        let mut request = Request::builder().method(method).uri(path);
        for value in offered {
            request = request.header(AUTHORIZATION, value);
        }
        let behind = Router::new().fallback(|request: Request| async move {
            request
                .extensions()
                .get::<AppOutput>()
                .copied()
                .map_or_else(String::new, |output| format!("{output:?}"))
        });
        let request = request.body(Body::empty()).expect("a request");
        let response = access.guard(behind).oneshot(request).await.expect("it answers");
        let status = response.status();
        assert_eq!(response.headers().contains_key(WWW_AUTHENTICATE), status == StatusCode::UNAUTHORIZED);
        let body = axum::body::to_bytes(response.into_body(), 4096).await.expect("short");
        let output = match &*body {
            b"Shown" => Some(AppOutput::Shown),
            b"Withheld" => Some(AppOutput::Withheld),
            _ => None,
        };
        (status, output)
    }

    const ORDERS: [&str; 12] = [
        "POST /v1/restart/autoscaler",
        "DELETE /v1/revisions/default/service/hello",
        "POST /v1/token/rotate",
        "GET /v1/logs/default/service/hello?follow=true",
        "HEAD /v1/logs/default/service/hello",
        "GET /v1/logs",
        "PUT /v1/revisions",
        "OPTIONS /v1/revisions",
        "GET /v1/revisions-of-tomorrow",
        "GET /V1/revisions",
        "GET //v1/revisions",
        "GET /v1/%6Cogs/default/service/hello",
    ];
    const COUNTS: [&str; 13] = [
        "GET /",
        "GET /dashboard/fleet.js",
        "GET /v1",
        "GET /v1/stream",
        "GET /ready",
        "GET /metrics",
        "HEAD /metrics",
        "GET /v1/revisions",
        "GET /v1/revisions/default/service/hello",
        "GET /v1/problems",
        "GET /v1/ledger?since=1d",
        "GET /v1/http-sd",
        "GET /v1/token",
    ];

    #[tokio::test]
    async fn orders_and_logs_need_the_token_and_counts_need_it_only_on_a_network() {
        for reach in [ApiReach::ThisMachine, ApiReach::Network] {
            let access = access(reach);
            let right = [format!("Bearer {}", access.token().expose())];
            let open = (StatusCode::OK, Some(AppOutput::Withheld));
            let closed = (StatusCode::UNAUTHORIZED, None);
            for question in ORDERS {
                assert_eq!(asked(&access, question, &[]).await, closed, "{reach:?} {question}");
            }
            for question in COUNTS.into_iter().filter(|question| !question.starts_with("HEAD")) {
                let is_file = dashboard::paths().any(|file| question == format!("GET {file}"));
                let expected = if reach == ApiReach::Network && !is_file { closed } else { open };
                assert_eq!(asked(&access, question, &[]).await, expected, "{reach:?} {question}");
            }
            assert_eq!(asked(&access, "GET /healthz", &[]).await, open, "{reach:?}");
            for question in ORDERS.into_iter().chain(COUNTS) {
                let (status, _) = asked(&access, question, &right).await;
                assert_eq!(status, StatusCode::OK, "{reach:?} {question}");
            }
            let shown = (StatusCode::OK, Some(AppOutput::Shown));
            assert_eq!(asked(&access, "GET /v1/revisions", &right).await, shown);
        }
    }

    #[tokio::test]
    async fn only_one_header_with_the_right_token_counts() {
        let access = access(ApiReach::ThisMachine);
        let token = access.token().expose();
        let order = "POST /v1/restart/autoscaler";
        for (offered, expected) in [
            (vec![format!("Bearer {token}")], StatusCode::OK),
            (vec![format!("bearer {token}")], StatusCode::OK),
            (vec![format!("Basic {token}")], StatusCode::UNAUTHORIZED),
            (vec![token.clone()], StatusCode::UNAUTHORIZED),
            (vec![format!("Bearer {}", ApiToken::random().expose())], StatusCode::UNAUTHORIZED),
            (vec![format!("Bearer {token}"); 2], StatusCode::UNAUTHORIZED),
            (vec!["Bearer ".to_owned()], StatusCode::UNAUTHORIZED),
        ] {
            assert_eq!(asked(&access, order, &offered).await.0, expected, "{}", offered.len());
        }
        let in_url = format!("POST /v1/restart/autoscaler?token={token}&access_token={token}");
        assert_eq!(asked(&access, &in_url, &[]).await.0, StatusCode::UNAUTHORIZED);
    }

    #[test]
    fn only_loopback_is_reached_by_this_machine_alone() {
        for (address, expected) in [
            ("127.0.0.1:9000", ApiReach::ThisMachine),
            ("127.5.5.5:9000", ApiReach::ThisMachine),
            ("[::1]:9000", ApiReach::ThisMachine),
            ("[::ffff:127.0.0.1]:9000", ApiReach::ThisMachine),
            ("0.0.0.0:9000", ApiReach::Network),
            ("[::]:9000", ApiReach::Network),
            ("192.0.2.1:9000", ApiReach::Network),
            ("[fe80::1]:9000", ApiReach::Network),
        ] {
            assert_eq!(ApiReach::of(address.parse().expect("an address")), expected, "{address}");
        }
    }
}
