//! The revision that the path of a request names, in three parts.

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use vocabulary::RevisionName;

use super::refusal::refusal;

/// The revision of a path with `{namespace}/{kind}/{name}` in it.
#[derive(Debug)]
pub(super) struct PathRevision(pub(super) RevisionName);

/// Why a path names no revision; the client is told so.
#[derive(Debug)]
pub(super) struct PathRevisionFault(String);

impl<Shared: Send + Sync> FromRequestParts<Shared> for PathRevision {
    type Rejection = PathRevisionFault;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, PathRevisionFault> {
        let Path((namespace, kind, name)) =
            Path::<(String, String, String)>::from_request_parts(parts, shared)
                .await
                .map_err(|fault| PathRevisionFault(fault.body_text()))?;
        let name = RevisionName::new(&namespace, &kind, &name);
        name.map(Self).map_err(|fault| PathRevisionFault(fault.to_string()))
    }
}

impl IntoResponse for PathRevisionFault {
    fn into_response(self) -> Response {
        refusal(StatusCode::BAD_REQUEST, self.0)
    }
}
