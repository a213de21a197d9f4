//! The page that a browser is shown while a pod starts, and the request that waits for the pod meanwhile.
//!
//! A person who opens a page that sleeps would look at an empty one. So the navigation of a browser is
//! answered after a second, with a page that reloads by itself. Its request is over then, and no other may be
//! there: without any, the start would be given up. So one place in the queue is kept until a pod is ready,
//! and one is enough, however many browsers reload.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dataplane::{Body, Fields, Refusal, RefusalReason, RequestKind, Response};
use http::Method;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, REFRESH};
use vocabulary::{RevisionName, WaitingPage};

/// How long a navigation waits as programs do, before the page is shown.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// How a browser says for what it asks (Fetch Metadata Request Headers).
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const NAVIGATION: &[u8] = b"navigate";
/// How soon a browser is to ask again, in seconds.
const RELOAD_AFTER: &str = "1";

/// Whether a request is a browser's, for a page that a person looks at.
pub(crate) fn is_navigation(method: &Method, fields: &Fields) -> bool {
    *method == Method::GET && fields.first(&FETCH_MODE).is_some_and(|mode| mode == NAVIGATION)
}

/// Whether a place in the queue of a revision is kept for those who are shown the page.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptPlace(Arc<AtomicBool>);

/// The place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct TakenPlace(Arc<AtomicBool>);

impl KeptPlace {
    /// Takes the place; `None` if another request keeps it.
    pub(crate) fn take(&self) -> Option<TakenPlace> {
        let was_taken = self.0.swap(true, Ordering::AcqRel);
        (!was_taken).then(|| TakenPlace(Arc::clone(&self.0)))
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The answer to a navigation; `None` where no page is to be shown.
pub(crate) fn answer(page: &WaitingPage, name: &RevisionName, waits_for: &str) -> Option<Response<Body>> {
    let html: Cow<'static, str> = match page {
        WaitingPage::Off => return None,
        WaitingPage::Auto => usual_page(name, waits_for).into(),
        WaitingPage::Text(text) => text.to_string().into(),
    };
    let detail = format!("{name} is starting; the page reloads by itself");
    let refusal = Refusal::new(RefusalReason::Starting, detail).with_body(html);
    let mut response = refusal.into_response(RequestKind::Plain);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFRESH, HeaderValue::from_static(RELOAD_AFTER));
    Some(response)
}

fn usual_page(name: &RevisionName, waits_for: &str) -> String {
    let (name, waits_for) = (escaped(name.name()), escaped(waits_for));
    let detail = if waits_for.is_empty() { String::new() } else { format!("<p>It waits for {waits_for}.") };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{name} is starting</title>\n\
         <style>body {{ font: 16px/1.5 system-ui, sans-serif; margin: 20vh auto; max-width: 32em; padding: 0 1em }}</style>\n\
         <h1>{name} is starting</h1>\n<p>This page reloads by itself.\n{detail}\n</html>\n"
    )
}

/// A text as HTML shows it: what a pod says of itself is no markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn name() -> RevisionName {
        RevisionName::new("default", "service", "hello").expect("a name")
    }

    #[test]
    fn a_navigation_is_told_by_what_browsers_say() {
        let with = |mode: &'static str| {
            Fields::from(HeaderMap::from_iter([(FETCH_MODE, HeaderValue::from_static(mode))]))
        };
        assert!(is_navigation(&Method::GET, &with("navigate")));
        assert!(
            !is_navigation(&Method::POST, &with("navigate")) && !is_navigation(&Method::GET, &with("cors"))
        );
        assert!(!is_navigation(&Method::GET, &Fields::default()), "programs wait");
    }

    #[test]
    fn the_page_says_what_starts_and_reloads_by_itself() {
        assert!(answer(&WaitingPage::Off, &name(), "").is_none());
        for page in [WaitingPage::Auto, WaitingPage::Text("<p>soon".into())] {
            let response = answer(&page, &name(), "its pod <1> to get ready").expect("a page");
            assert_eq!(response.status().as_u16(), 503);
            let header = |name: &str| response.headers().get(name).map(|value| value.to_str().expect("text"));
            assert_eq!((header("retry-after"), header("refresh")), (Some("1"), Some("1")));
            assert_eq!(header("cache-control"), Some("no-store"));
            assert!(header("ebb-error").is_some_and(|error| error.starts_with("starting; ")));
            assert!(header("content-type").is_some_and(|kind| kind.starts_with("text/html")));
        }
        let page = usual_page(&name(), "its pod <1> to get ready");
        assert!(
            page.contains("<h1>hello is starting</h1>") && page.contains("its pod &lt;1&gt; to get ready"),
            "{page}"
        );
    }

    #[test]
    fn one_place_is_kept_at_a_time() {
        let place = KeptPlace::default();
        let taken = place.take();
        assert!(taken.is_some() && place.take().is_none());
        drop(taken);
        assert!(place.take().is_some());
    }
}
