//! The target of a request, as it came for as long as no caller asks for its parts.

use std::cell::OnceCell;

use bytes::Bytes;
use http::Uri;
use http::uri::Authority;

/// The target of a request: a path that stays the text that it came in, or whatever a [`Uri`] holds.
#[derive(Clone, Debug)]
pub struct RequestTarget(TargetForm);

#[derive(Clone, Debug)]
enum TargetForm {
    /// A path, perhaps with a query, by the letter of RFC 3986; and its parts, once they were asked for.
    Path(Bytes, OnceCell<Box<Uri>>),
    Uri(Uri),
}

impl Default for RequestTarget {
    fn default() -> Self {
        Self::of_path(Bytes::from_static(b"/"))
    }
}

impl From<Uri> for RequestTarget {
    fn from(uri: Uri) -> Self {
        Self(TargetForm::Uri(uri))
    }
}

impl RequestTarget {
    /// A path, perhaps with a query, each of whose bytes may stand there by the letter of RFC 3986 (§3.3,
    /// §3.4).
    pub(crate) fn of_path(text: Bytes) -> Self {
        Self(TargetForm::Path(text, OnceCell::new()))
    }

    /// The parts of the target.
    pub fn uri(&self) -> &Uri {
        match &self.0 {
            TargetForm::Path(text, uri) => uri.get_or_init(|| Box::new(uri_of(text))),
            TargetForm::Uri(uri) => uri,
        }
    }

    /// The parts of the target, to be changed.
    pub(crate) fn uri_mut(&mut self) -> &mut Uri {
        if let TargetForm::Path(text, uri) = &mut self.0 {
            let uri = uri.take().map_or_else(|| uri_of(text), |uri| *uri);
            self.0 = TargetForm::Uri(uri);
        }
        match &mut self.0 {
            TargetForm::Uri(uri) => uri,
            TargetForm::Path(..) => unreachable!("a path became a URI above"),
        }
    }

    /// The host that the target names, perhaps with a port; `None` of a path alone.
    pub fn authority(&self) -> Option<&Authority> {
        match &self.0 {
            TargetForm::Path(..) => None,
            TargetForm::Uri(uri) => uri.authority(),
        }
    }

    /// The path with its query, as the target has it.
    pub(crate) fn path_and_query(&self) -> &[u8] {
        match &self.0 {
            TargetForm::Path(text, _) => text,
            TargetForm::Uri(uri) => uri.path_and_query().map_or("/", |path| path.as_str()).as_bytes(),
        }
    }
}

fn uri_of(path: &Bytes) -> Uri {
    Uri::from_maybe_shared(path.clone()).expect("a path by the letter of RFC 3986 is a URI")
}
