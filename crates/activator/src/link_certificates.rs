//! The certificate of this activator on links, in files that another program renews: a renewed one is shown
//! from the next link on.

use std::path::PathBuf;

use anyhow::Context;
use link::{Identity, LinkTlsAcceptor};
use runtime::{MountedCertificates, vital};

/// A door that shows what lies in the folder, as long as this runs.
pub(crate) fn keep(folder: PathBuf) -> anyhow::Result<LinkTlsAcceptor> {
    let known = MountedCertificates::read(&folder)?;
    let door = LinkTlsAcceptor::new(&identity(&known)?)
        .with_context(|| format!("certificates in {}", folder.display()))?;
    let shown = door.clone();
    let following =
        known.follow(folder, "the activator's link", move |files| Ok(shown.show(&identity(files)?)?));
    tokio::task::spawn_local(vital("the certificates of the activator's link", following));
    Ok(door)
}

fn identity(files: &MountedCertificates) -> anyhow::Result<Identity> {
    Ok(Identity::from_pem(&files.chain, &files.key, &files.roots)?)
}
