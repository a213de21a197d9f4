//! The token of an `ebb up`'s API: how it is written, and how a command on the same machine reads it.
//!
//! `ebb up` keeps it in a file of its user's (`up/token_file.rs`), and its API names that file. So a command
//! finds it wherever it is, also with `sudo`. The name is believed no further than this: the file must belong
//! to the user whose process has answered. Else a process of another user that listens at the address could
//! have the token of an `ebb up` sent to itself, or any file of root's.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use vocabulary::LinkToken;

/// With this the text of each begins, so that it is known for what it is wherever it is found.
const PREFIX: &str = "ebb_";
/// More than any file with a token holds.
const FILE_BYTES_MAX: u64 = 256;

/// Shows that the sender of a request is the user of `ebb up`, or may read that user's file.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ApiToken(LinkToken);

impl ApiToken {
    /// A new one, which no file holds yet.
    pub(crate) fn random() -> Self {
        Self(runtime::new_link_token())
    }

    /// Reads the text of a file or of a header; `None` if it is no token.
    pub(crate) fn read(text: &str) -> Option<Self> {
        text.trim_ascii_end().strip_prefix(PREFIX)?.parse().ok().map(Self)
    }

    /// Whether this was offered. How long that takes says nothing about how much of it was right.
    pub(crate) fn is(self, offered: &str) -> bool {
        Self::read(offered).is_some_and(|offered| self.0.is(offered.0.expose()))
    }

    /// As it stands in its file and in a request.
    pub(crate) fn expose(self) -> String {
        format!("{PREFIX}{}", String::from(self.0))
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiToken(…)")
    }
}

impl TryFrom<String> for ApiToken {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::read(&text).ok_or("is not the token of an API")
    }
}

impl From<ApiToken> for String {
    fn from(token: ApiToken) -> Self {
        token.expose()
    }
}

/// What the API says of its token: as the answer to `GET /v1/token`, and in a refusal for want of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TokenAnswer {
    pub(crate) version: u32,
    /// Why a request is refused; absent where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The file that holds the token; absent where `ebb up` could write none.
    pub(crate) token_file: Option<PathBuf>,
}

/// Why the file that an API names gives no token.
#[derive(Debug)]
pub(crate) enum TokenFileProblem {
    /// This user may not read it.
    Forbidden,
    /// The file cannot be used, for this reason.
    Unusable(String),
}

/// Reads the file that an API has named, if it belongs to `owner`, as which that API runs.
pub(crate) fn read_named_file(path: &Path, owner: u32) -> Result<ApiToken, TokenFileProblem> {
    // Only found, not opened: to open a device is to use it, and the name comes from a stranger.
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
    let found = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    let found = found.map_err(|error| problem(path, &error))?;
    let facts = found.metadata().map_err(|error| problem(path, &error))?;
    if !facts.is_file() || facts.uid() != owner {
        let text = format!(
            "the token was not sent: {} is no file of user {owner}, as which the API runs",
            path.display()
        );
        return Err(TokenFileProblem::Unusable(text));
    }
    // The very file that was looked at: its name may mean another one by now.
    let opened = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()));
    let text = opened.and_then(read_text).map_err(|error| problem(path, &error))?;
    ApiToken::read(&text).ok_or_else(|| TokenFileProblem::Unusable(damaged(path)))
}

/// Reads a file that a person has named.
pub(crate) fn read_chosen_file(path: &Path) -> anyhow::Result<ApiToken> {
    use anyhow::Context as _;
    let text = File::open(path).and_then(read_text);
    let text = text.with_context(|| format!("reading the token in {}", path.display()))?;
    ApiToken::read(&text).with_context(|| damaged(path))
}

fn problem(path: &Path, error: &io::Error) -> TokenFileProblem {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return TokenFileProblem::Forbidden;
    }
    TokenFileProblem::Unusable(format!("reading {}: {error}", path.display()))
}

fn damaged(path: &Path) -> String {
    format!("{} holds no token; `ebb up` writes it again when it starts or is taken over", path.display())
}

/// The text of a file with a token. What is longer is none, and the end of it is not looked at.
pub(crate) fn read_text(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The token that a request offers. Of two, one reader would take the first and another the last.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, second) = (values.next()?, values.next());
    let (scheme, token) = value.to_str().ok().filter(|_| second.is_none())?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::unistd::geteuid;

    use super::*;

    #[test]
    fn a_token_is_what_was_written_and_nothing_else() {
        let token = ApiToken::random();
        assert_eq!(ApiToken::read(&format!("{}\n", token.expose())), Some(token));
        assert!(token.is(&token.expose()) && !token.is(&ApiToken::random().expose()));
        let other =
            [token.expose() + "0", token.expose().replace("ebb_", ""), String::new(), "ebb_".to_owned()];
        for text in other {
            assert!(!token.is(&text), "{text:?}");
        }
        assert!(!format!("{token:?}").contains(&token.expose()[4..]), "a log line shows nothing of it");
    }

    #[test]
    fn a_named_file_is_read_only_if_it_is_a_plain_file_of_the_apis_user() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let (token, own) = (ApiToken::random(), geteuid().as_raw());
        std::fs::write(path("token"), token.expose()).expect("it is ours");
        assert_eq!(read_named_file(&path("token"), own).ok(), Some(token));
        symlink(path("token"), path("link")).expect("a link");
        for (name, owner) in [("token", own + 1), ("link", own), (".", own), ("none", own)] {
            let refused = read_named_file(&path(name), owner);
            assert!(matches!(refused, Err(TokenFileProblem::Unusable(_))), "{name}: {refused:?}");
        }
        for text in ["", "ebb_", &token.expose()[..20], "root:x:0:0"] {
            std::fs::write(path("token"), text).expect("it is ours");
            let Err(TokenFileProblem::Unusable(said)) = read_named_file(&path("token"), own) else {
                panic!("{text:?} was taken")
            };
            assert!(said.contains("holds no token"), "{said}");
        }
    }
}
