//! What commands take that ask an API: where that is, by what it knows the user, and how answers are shown.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Which `ebb up` is meant.
#[derive(Debug, Args)]
pub(crate) struct ApiOptions {
    /// The API of the running `ebb up`.
    #[arg(long = "api", value_name = "URL", env = "EBB_API", default_value = "http://127.0.0.1:9000")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) credentials: CredentialOptions,
}

/// By what an API knows the user of a command.
#[derive(Debug, Args)]
pub(crate) struct CredentialOptions {
    /// The file with the token of the API, where that is on another machine. Without this, the one that the
    /// API of this machine names.
    #[arg(long, value_name = "FILE", env = "EBB_TOKEN_FILE", hide_short_help = true)]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people; what does not fit the terminal's width is left out.
    Table,
    /// For people with room: every column, nothing cut.
    Wide,
    /// For programs: every field, as the API has it.
    Json,
}
