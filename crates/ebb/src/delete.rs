//! `ebb delete`: removes a Service from a running `ebb up`, without touching its file.

use std::process::ExitCode;

use autoscaler::api_types::RevisionList;
use http::Method;

use crate::cli::DeleteOptions;
use crate::client::UpClient;
use crate::get::choose;
use crate::output;

/// Returns when the Service answers no more; its pods finish what they hold.
pub(crate) fn run(options: &DeleteOptions) -> anyhow::Result<ExitCode> {
    let api = UpClient::new(&options.api);
    let said = crate::up::runtime()?.block_on(async {
        let list: RevisionList = api.get("/v1/revisions").await?;
        let name = &choose(&list, &options.revision)?.name;
        api.ask(Method::DELETE, &format!("/v1/revisions/{name}")).await
    })?;
    output::print_line(String::from_utf8_lossy(&said).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
