//! The options and arguments of `ebb run`.

use clap::Args;

use super::api::ApiOptions;

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The port of 127.0.0.1 at which requests are taken. Without this, a free one.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "join")]
    pub(crate) port: Option<u16>,
    /// The name of the Service. Without this, that of the program.
    #[arg(long, value_name = "NAME", value_parser = service_name)]
    pub(crate) name: Option<String>,
    /// The least number of pods.
    #[arg(long, value_name = "PODS")]
    pub(crate) min_scale: Option<u32>,
    /// The largest number of pods.
    #[arg(long, value_name = "PODS")]
    pub(crate) max_scale: Option<u32>,
    /// The load per pod to aim at: requests in flight, or per second where --annotation says so.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) target: Option<String>,
    /// The most requests in one pod at once.
    #[arg(long, value_name = "REQUESTS")]
    pub(crate) container_concurrency: Option<u32>,
    /// A variable of the app's environment, besides those of `ebb up`, which without --join is this command.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) env: Vec<(String, String)>,
    /// An annotation of the template, such as ebb.dev/routing-dwell=5s (docs/reference/annotations.md).
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub(crate) annotation: Vec<(String, String)>,
    /// Run it in the `ebb up` that runs, for as long as this command does.
    #[arg(long)]
    pub(crate) join: bool,
    /// Print the manifest of the app, and run nothing.
    #[arg(long)]
    pub(crate) print: bool,
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The command and its arguments. It listens on $PORT; `$(PORT)` in an argument is the number.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

fn service_name(text: &str) -> Result<String, String> {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-');
    let advice = "it must be 1 to 63 of a-z, 0-9 and \"-\", not beginning or ending with \"-\"";
    if is_name { Ok(text.to_owned()) } else { Err(advice.to_owned()) }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or_else(|| "it must be a name, \"=\" and a value".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}
