//! `ebb rollback`: lets pods of the template before the last edit take over from those of a Service.

use std::process::ExitCode;

use http::Method;

use crate::cli::RollbackOptions;
use crate::client::UpClient;
use crate::restart::order;

/// Returns when the first pod of that template is on its way.
pub(crate) fn run(options: &RollbackOptions) -> anyhow::Result<ExitCode> {
    order(&UpClient::new(&options.api), &options.revision, Method::POST, "/rollback")
}
