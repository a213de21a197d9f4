//! What the spec of a revision asks for, with Knative's defaults, as controller and activator read it.

use serde_json::Value;

use super::keys;
use super::objects::{number, text};

/// `timeoutSeconds` where a revision does not say it.
const TIMEOUT_SECONDS: u64 = 300;

/// Whether the app takes requests over HTTP/2 without TLS.
pub(super) fn is_h2c(revision: &Value) -> bool {
    text(revision, "/spec/containers/0/ports/0/name") == "h2c"
}

/// The port of the queue-proxy for requests of a protocol.
pub(super) fn request_port(is_h2c: bool) -> u16 {
    if is_h2c { keys::H2C_PORT } else { keys::HTTP1_PORT }
}

/// How many seconds a request may take until its answer begins.
pub(super) fn timeout_seconds(revision: &Value) -> u64 {
    let seconds = u64::try_from(number(revision, "/spec/timeoutSeconds")).ok();
    seconds.filter(|seconds| *seconds > 0).unwrap_or(TIMEOUT_SECONDS)
}
