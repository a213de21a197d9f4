//! The small servers beside the requests' port: health and readiness, and Prometheus' page.

use std::cell::Cell;
use std::rc::Rc;

use dataplane::{Body, Connection, PageService, Request, Response, metrics_page, plain_line};
use http::{Method, StatusCode};
use runtime::{MetricsRegistry, PageKind, TrustedHosts};

/// The admin port. Health does not depend on the autoscaler: an activator without a link serves on. Readiness
/// waits for the first sync, before which it could not tell an unknown host from one it has not heard of.
pub(crate) struct ActivatorAdminPages {
    pub(crate) is_ready: Rc<Cell<bool>>,
    pub(crate) trusted: TrustedHosts,
}

impl PageService for ActivatorAdminPages {
    async fn page(self: Rc<Self>, request: Request<Body>) -> Response<Body> {
        self.answer(&request)
    }

    fn kind_of(&self, request: &Request<Body>, _: &Connection) -> PageKind {
        PageKind::of_path(request.uri().path())
    }
}

impl ActivatorAdminPages {
    fn answer(&self, request: &Request<Body>) -> Response<Body> {
        if let Err(foreign) = self.trusted.check(request.uri(), request.headers()) {
            return plain_line(StatusCode::FORBIDDEN, &foreign.to_string());
        }
        match (is_read(request), request.uri().path()) {
            (true, "/healthz") => plain_line(StatusCode::OK, "ok"),
            (true, "/ready") if self.is_ready.get() => plain_line(StatusCode::OK, "ready"),
            (true, "/ready") => plain_line(StatusCode::SERVICE_UNAVAILABLE, "not synced, or draining"),
            (false, "/healthz" | "/ready") => {
                plain_line(StatusCode::METHOD_NOT_ALLOWED, "this page is only read")
            }
            (_, _) => plain_line(StatusCode::NOT_FOUND, "no such page"),
        }
    }
}

/// The metrics port: `GET /metrics` is the page for Prometheus.
pub(crate) struct ActivatorMetricsPages {
    pub(crate) registry: MetricsRegistry,
    pub(crate) trusted: TrustedHosts,
}

impl PageService for ActivatorMetricsPages {
    async fn page(self: Rc<Self>, request: Request<Body>) -> Response<Body> {
        self.answer(&request)
    }
}

impl ActivatorMetricsPages {
    fn answer(&self, request: &Request<Body>) -> Response<Body> {
        if let Err(foreign) = self.trusted.check(request.uri(), request.headers()) {
            return plain_line(StatusCode::FORBIDDEN, &foreign.to_string());
        }
        if request.uri().path() != "/metrics" {
            return plain_line(StatusCode::NOT_FOUND, "no such page");
        }
        if !is_read(request) {
            return plain_line(StatusCode::METHOD_NOT_ALLOWED, "this page is only read");
        }
        metrics_page(request.headers(), self.registry.encode())
    }
}

fn is_read(request: &Request<Body>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, HOST, HeaderName};

    use super::*;

    async fn read(response: Response<Body>) -> (u16, String) {
        let (head, body) = response.into_parts();
        let body = http_body_util::BodyExt::collect(body).await.expect("whole").to_bytes();
        (head.status.as_u16(), String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn readiness_follows_the_sync_and_strangers_see_open_pages_only() {
        let is_ready = Rc::new(Cell::new(false));
        let pages = ActivatorAdminPages { is_ready: Rc::clone(&is_ready), trusted: TrustedHosts::default() };
        let asking =
            |request: http::request::Builder| Request::from(request.body(Body::empty()).expect("legal"));
        let get = |path| asking(http::Request::get(path).header("host", "evil.example"));
        assert_eq!(read(pages.answer(&get("/healthz"))).await, (200, "ok\n".to_owned()));
        assert_eq!(read(pages.answer(&get("/ready"))).await.0, 503);
        is_ready.set(true);
        assert_eq!(read(pages.answer(&get("/ready"))).await, (200, "ready\n".to_owned()));
        let (status, why) = read(pages.answer(&get("/elsewhere"))).await;
        assert!(status == 403 && why.contains("EBB_TRUSTED_HOSTS"), "{status} {why}");
        let own = asking(http::Request::get("/elsewhere").header("host", "10.0.0.1:8022"));
        assert_eq!(read(pages.answer(&own)).await.0, 404);
        let post = asking(http::Request::post("/ready"));
        assert_eq!(read(pages.answer(&post)).await.0, 405);
    }

    #[tokio::test]
    async fn the_page_of_metrics_has_the_form_that_is_asked_for() {
        let pages =
            ActivatorMetricsPages { registry: MetricsRegistry::default(), trusted: TrustedHosts::default() };
        let asking = |name: HeaderName, value: &str| {
            let request = http::Request::get("/metrics").header(name, value).body(Body::empty());
            Request::from(request.expect("legal"))
        };
        let get = |accept| asking(ACCEPT, accept);
        let (status, page) = read(pages.answer(&get("application/openmetrics-text"))).await;
        assert!(status == 200 && page.ends_with("# EOF\n"), "{page}");
        let (status, page) = read(pages.answer(&get("text/plain"))).await;
        assert!(status == 200 && page.contains("runtime_tasks") && !page.contains("# EOF"), "{page}");
        let (status, why) = read(pages.answer(&asking(HOST, "evil.example"))).await;
        assert!(status == 403 && why.contains("EBB_TRUSTED_HOSTS"), "{status} {why}");
    }
}
