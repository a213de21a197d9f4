//! The certificate of a program, in files that another program renews: a Secret that Kubernetes mounts as a
//! folder. They are read again while the program runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use vocabulary::{TLS_CHAIN, TLS_KEY, TLS_ROOTS};

/// How often the files are looked at. Kubernetes itself takes about a minute to change them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The files of such a folder, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct MountedCertificates {
    /// The program's own certificate, and those that lead to a root (`tls.crt`).
    pub chain: Vec<u8>,
    /// The private key of the certificate, in PEM (`tls.key`).
    pub key: Vec<u8>,
    /// The certificates of the authorities, in PEM (`ca.crt`).
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

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    /// Longer than until the folder is looked at again.
    const SOON: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_renewed_certificate_is_loaded_once_and_half_a_pair_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("it can be written");
        };
        for name in [TLS_CHAIN, TLS_KEY, TLS_ROOTS] {
            write(name, "1");
        }
        let known = MountedCertificates::read(folder.path()).expect("it is whole");
        let (shown_in, mut shown) = mpsc::channel(9);
        let following = known.follow(folder.path().to_owned(), "a test", move |files| {
            anyhow::ensure!(files.chain == files.key, "the key is another's");
            Ok(shown_in.try_send(files.chain.clone())?)
        });
        let watching = async {
            tokio::time::sleep(SOON).await;
            assert!(shown.try_recv().is_err(), "nothing is new");
            write(TLS_CHAIN, "2");
            tokio::time::sleep(SOON).await;
            assert!(shown.try_recv().is_err(), "its key is still to come");
            std::fs::remove_file(folder.path().join(TLS_ROOTS)).expect("it was there");
            write(TLS_KEY, "2");
            tokio::time::sleep(SOON).await;
            assert!(shown.try_recv().is_err(), "a file is missing");
            write(TLS_ROOTS, "1");
            assert_eq!(shown.recv().await.as_deref(), Some(b"2".as_slice()));
            tokio::time::sleep(SOON).await;
            assert!(shown.try_recv().is_err(), "once is enough");
        };
        // Following never ends, and is dropped between two looks.
        tokio::select! {
            () = following => unreachable!("it goes on"),
            () = watching => {}
        }
    }
}
