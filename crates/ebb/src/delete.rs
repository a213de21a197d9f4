//! `ebb delete`: removes a Service from a running `ebb up`, without touching its file.

use std::process::ExitCode;

use http::Method;

use crate::cli::DeleteOptions;
use crate::client::UpClient;
use crate::restart::order;

/// Returns when the Service answers no more; its pods finish what they hold.
pub(crate) fn run(options: &DeleteOptions) -> anyhow::Result<ExitCode> {
    order(&UpClient::new(&options.api), &options.revision, Method::DELETE, "")
}
