//! `ebb token`: where the token of a running `ebb up`'s API is, and another one in its place.

use std::process::ExitCode;

use anyhow::Context as _;
use http::Method;

use crate::api_token::TokenAnswer;
use crate::cli::TokenOptions;
use crate::client::UpClient;
use crate::output;

/// Shows the file and never the token: what is shown stands on screens and in logs.
pub(crate) fn run(options: &TokenOptions) -> anyhow::Result<ExitCode> {
    let api = UpClient::new(&options.api);
    let question =
        if options.rotate { (Method::POST, "/v1/token/rotate") } else { (Method::GET, "/v1/token") };
    let body = crate::up::runtime()?.block_on(api.ask(question.0, question.1))?;
    let answer: TokenAnswer = serde_json::from_slice(&body)
        .context("this `ebb up` answered something else than this version of ebb expects")?;
    let file = answer.token_file.context("`ebb up` could write its token to no file, as its log says")?;
    output::print_line(&file.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
