//! `ebb delete`: removes a Service from a running `ebb up`, without touching its file.

use std::process::ExitCode;

use autoscaler::api_types::RevisionList;
use http::Method;

use crate::cli::DeleteOptions;
use crate::get::choose;
use crate::{client, output};

/// Returns when the Service answers no more; its pods finish what they hold.
pub(crate) fn run(options: &DeleteOptions) -> anyhow::Result<ExitCode> {
    let api = &options.api.url;
    let said = crate::up::runtime()?.block_on(async {
        let list: RevisionList = client::get(api, "/v1/revisions").await?;
        let name = &choose(&list, &options.revision)?.name;
        client::ask(api, Method::DELETE, &format!("/v1/revisions/{name}")).await
    })?;
    output::print_line(String::from_utf8_lossy(&said).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
