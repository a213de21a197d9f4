//! `ebb restart`: asks a running `ebb up` to rebuild one of its parts, or to let new pods take over from
//! those of a Service.

use std::process::ExitCode;

use autoscaler::api_types::RevisionList;
use http::Method;

use crate::cli::{Part, RestartOptions};
use crate::client::UpClient;
use crate::get::choose;
use crate::output;

/// Returns when the new part is at work, or when the first new pod is on its way.
pub(crate) fn run(options: &RestartOptions) -> anyhow::Result<ExitCode> {
    let api = UpClient::new(&options.api);
    if let Some(part) = Part::named(&options.target) {
        let part = part.name();
        crate::up::runtime()?.block_on(api.ask(Method::POST, &format!("/v1/restart/{part}")))?;
        output::print_line(&format!("the {part} was rebuilt"))?;
        return Ok(ExitCode::SUCCESS);
    }
    order(&api, &options.target, Method::POST, "/restart")
}

/// Gives an order about the one Service whose name is, or ends in, `/wanted`, and prints the answer.
/// `path_end` follows the name in the path of the request.
pub(crate) fn order(
    api: &UpClient,
    wanted: &str,
    method: Method,
    path_end: &str,
) -> anyhow::Result<ExitCode> {
    let said = crate::up::runtime()?.block_on(async {
        let list: RevisionList = api.get("/v1/revisions").await?;
        let name = &choose(&list, wanted)?.name;
        api.ask(method, &format!("/v1/revisions/{name}{path_end}")).await
    })?;
    output::print_line(String::from_utf8_lossy(&said).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
