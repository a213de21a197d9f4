//! What people see, live: the pages that show a running autoscaler.
//!
//! The pages are files in the executable, with no build step and nothing from elsewhere. They carry no data:
//! a page asks the API for that, beside which it is served, so what a reader may see is decided there alone.
//! Names and texts of others reach a page as text and never as markup: the policy that comes with each file
//! lets no script run but these files. A report that is one file has the same charts ([`ChartReport`]).

mod report;

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

pub use report::ChartReport;

/// What a page may load and do: these files, and questions to the API beside them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'";

/// A file of the pages.
#[derive(Clone, Copy)]
struct PageFile {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

/// A script of the pages, by its name.
macro_rules! script {
    ($name:literal) => {
        PageFile {
            path: concat!("/dashboard/", $name),
            kind: "text/javascript; charset=utf-8",
            text: include_str!(concat!("pages/", $name)),
        }
    };
}

const FILES: [PageFile; 11] = [
    PageFile { path: "/", kind: "text/html; charset=utf-8", text: include_str!("pages/index.html") },
    PageFile {
        path: "/dashboard/style.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("pages/style.css"),
    },
    script!("api.js"),
    script!("app.js"),
    script!("charts.js"),
    script!("dom.js"),
    script!("fleet.js"),
    script!("reports.js"),
    script!("revision.js"),
    script!("stream.js"),
    script!("timeline.js"),
];

/// The paths of all files. None of them carries data.
pub fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.path)
}

/// The pages, for the router of an API.
pub fn pages<State: Clone + Send + Sync + 'static>() -> Router<State> {
    FILES.into_iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(move |headers: HeaderMap| std::future::ready(file.answer(&headers))))
    })
}

impl PageFile {
    /// The file, or that the reader has it already.
    fn answer(self, headers: &HeaderMap) -> Response {
        let tag = self.tag();
        let known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
        let described = [
            (CONTENT_TYPE, self.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            // Asked for each time: a newer executable has newer files.
            (CACHE_CONTROL, "no-cache"),
        ];
        if known {
            (StatusCode::NOT_MODIFIED, described, [(ETAG, tag)]).into_response()
        } else {
            (described, [(ETAG, tag)], self.text).into_response()
        }
    }

    /// A number of the content in quotes, by the hash FNV-1a: other files of one path have another one.
    fn tag(self) -> String {
        let hash = self.text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        format!("\"{hash:016x}\"")
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::{HeaderValue, Request};
    use tower::ServiceExt;

    use super::*;

    /// All files together may be as large.
    const BYTES_MAX: usize = 120 * 1024;

    async fn asked(path: &str, known: Option<&HeaderValue>) -> (StatusCode, HeaderMap, usize) {
        let mut request = Request::builder().uri(path);
        if let Some(known) = known {
            request = request.header(IF_NONE_MATCH, known);
        }
        let request = request.body(Body::empty()).expect("a request");
        let response = match pages::<()>().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (head, body) = response.into_parts();
        let body = to_bytes(body, BYTES_MAX).await.expect("a short file");
        (head.status, head.headers, body.len())
    }

    #[tokio::test]
    async fn each_file_comes_with_its_policy_and_once() {
        for file in FILES {
            let (status, headers, length) = asked(file.path, None).await;
            assert_eq!((status, length), (StatusCode::OK, file.text.len()), "{}", file.path);
            assert_eq!(headers[CONTENT_TYPE], file.kind);
            assert_eq!(headers[CONTENT_SECURITY_POLICY], POLICY);
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(headers[REFERRER_POLICY], "no-referrer");
            let (status, _, length) = asked(file.path, Some(&headers[ETAG])).await;
            assert_eq!((status, length), (StatusCode::NOT_MODIFIED, 0), "{}", file.path);
        }
    }

    #[test]
    fn the_files_are_small_and_name_nothing_from_elsewhere() {
        let report = include_str!("pages/report.js").len();
        assert!(report + FILES.iter().map(|file| file.text.len()).sum::<usize>() <= BYTES_MAX);
        for file in FILES {
            // The name of a space of SVG is an address that no browser asks.
            let text = file.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("://"), "{} names another place", file.path);
            for markup in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", " style="] {
                assert!(!text.contains(markup), "{} has {markup}", file.path);
            }
        }
    }

    #[test]
    fn pages_load_files_that_there_are() {
        let all: Vec<&str> = paths().collect();
        for file in FILES {
            for quoted in file.text.split('"').filter(|text| text.starts_with("/dashboard/")) {
                assert!(all.contains(&quoted), "{} asks for {quoted}", file.path);
            }
        }
    }
}
