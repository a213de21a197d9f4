//! `ebb names`: the revisions of a running `ebb up`, one a line, for shells that complete them.

use std::process::ExitCode;
use std::time::Duration;

use autoscaler::api_types::RevisionList;
use vocabulary::RevisionName;

use crate::cli::ApiOptions;
use crate::client::UpClient;
use crate::output;

/// A person waits for a completion, so an API that is slow completes nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints names, or nothing at all: a shell shows no error where a word is completed.
pub(crate) fn run(options: &ApiOptions) -> anyhow::Result<ExitCode> {
    let api = UpClient::new(options);
    let list = crate::up::runtime()?.block_on(async {
        let list = tokio::time::timeout(PATIENCE, api.get::<RevisionList>("/v1/revisions")).await;
        list.ok().and_then(Result::ok)
    });
    for revision in list.iter().flat_map(|list| &list.revisions) {
        output::print_line(&shortest(&revision.name))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Most Services are in the default namespace, and are known by their name alone.
fn shortest(name: &RevisionName) -> String {
    match (name.namespace(), name.kind()) {
        ("default", "service") => name.name().to_owned(),
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_the_default_namespace_has_a_short_name() {
        let of = |name| shortest(&RevisionName::parse(name).expect("a name"));
        assert_eq!(of("default/service/hello"), "hello");
        assert_eq!(of("shop/service/hello"), "shop/service/hello");
    }
}
