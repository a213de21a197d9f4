//! Who this activator is on links, as files that somebody else renews: they are read again, and what changed is shown from the next link on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use link::{Identity, TlsDoor};
use runtime::vital;

/// How often the files are looked at. Kubernetes itself takes about a minute to change them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// As Kubernetes names what is in a Secret of this kind.
const CHAIN: &str = "tls.crt";
const KEY: &str = "tls.key";
const ROOTS: &str = "ca.crt";

/// A door that shows what lies in the folder, as long as this runs.
pub(crate) fn keep(folder: PathBuf) -> anyhow::Result<TlsDoor> {
    let mut known = Files::read(&folder)?;
    let door =
        TlsDoor::new(&known.identity()?).with_context(|| format!("certificates in {}", folder.display()))?;
    let shown = door.clone();
    tokio::task::spawn_local(vital("the certificates of the activator's link", async move {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match Files::read(&folder) {
                Ok(files) if files != known => {
                    // What was shown before still is, if this is of no use; a half-written pair is looked at again.
                    match files.identity().and_then(|identity| Ok(shown.show(&identity)?)) {
                        Ok(()) => {
                            tracing::info!("the link's certificates were renewed");
                            known = files;
                        }
                        Err(error) => tracing::warn!("the link's certificates are of no use: {error:#}"),
                    }
                }
                Ok(_) => {}
                Err(error) => tracing::warn!("{error:#}"),
            }
        }
    }));
    Ok(door)
}

#[derive(PartialEq, Eq)]
struct Files {
    chain: Vec<u8>,
    key: Vec<u8>,
    roots: Vec<u8>,
}

impl Files {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |name| {
            let path = folder.join(name);
            fs::read(&path).with_context(|| format!("reading {}", path.display()))
        };
        Ok(Self { chain: read(CHAIN)?, key: read(KEY)?, roots: read(ROOTS)? })
    }

    fn identity(&self) -> anyhow::Result<Identity> {
        Ok(Identity::from_pem(&self.chain, &self.key, &self.roots)?)
    }
}
