//! Who a program is, as files that somebody else renews: a Secret that Kubernetes mounts as a folder. They
//! are read again while the program runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use vocabulary::{TLS_CHAIN, TLS_KEY, TLS_ROOTS};

/// How often the files are looked at. Kubernetes itself takes about a minute to change them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What lies in such a folder, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct MountedCertificates {
    /// The program's own certificate, and those that lead to a root (`tls.crt`).
    pub chain: Vec<u8>,
    /// Its key (`tls.key`).
    pub key: Vec<u8>,
    /// The roots (`ca.crt`).
    pub roots: Vec<u8>,
}

impl MountedCertificates {
    /// Reads the three files. Fails with the name of one that cannot be read.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |name| {
            let path = folder.join(name);
            fs::read(&path).with_context(|| format!("reading {}", path.display()))
        };
        Ok(Self { chain: read(TLS_CHAIN)?, key: read(TLS_KEY)?, roots: read(TLS_ROOTS)? })
    }

    /// Looks again and again, and calls `show` with what is there once it is another thing than before. What
    /// cannot be read or shown is a warning and looked at again: half of a pair may be written yet.
    pub async fn follow(
        mut self,
        folder: PathBuf,
        whose: &'static str,
        mut show: impl FnMut(&Self) -> anyhow::Result<()>,
    ) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let looked = Self::read(&folder).and_then(|found| {
                if found != self {
                    show(&found)?;
                    tracing::info!("the certificates of {whose} were renewed");
                    self = found;
                }
                Ok(())
            });
            if let Err(error) = looked {
                tracing::warn!(
                    "the certificates of {whose} are of no use, the former ones are shown: {error:#}"
                );
            }
        }
    }
}
