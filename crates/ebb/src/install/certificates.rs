//! Which certificates does the service present, and may it read them?
//!
//! They are named as the person named them and not by where links lead: programs that renew certificates
//! (certbot, for one) move the links. A service of the machine runs as a user that systemd makes up, who may
//! read what all users may and what the groups may that the unit names; what root alone may read is told
//! here, for the service could only fail to start.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use dataplane::CertificateFiles;

use super::scope::ServiceScope;
use super::units::TlsFacts;
use crate::cli::InstallOptions;
use crate::up;

/// The right of all users to read a file; a group's is the same, eight times.
const READ: u32 = 0o4;
/// The same, to enter a directory.
const ENTER: u32 = 0o1;

/// What the units say of TLS, if it is wanted. Every problem is told.
pub(super) fn of_service(
    options: &InstallOptions,
    manager: ServiceScope,
) -> Result<Option<TlsFacts>, Vec<anyhow::Error>> {
    let named = up::named_certificates(&options.tls)?;
    let Some(listen) = up::tls_address(&options.tls, options.listen) else { return Ok(None) };
    if named.is_empty() && manager == ServiceScope::System {
        return Err(vec![anyhow!(
            "--tls dev makes a certificate for one person on this machine, so it is for --user; give the machine's service --tls-cert and --tls-key"
        )]);
    }
    let absolute = |file: PathBuf| std::path::absolute(file).map_err(|error| vec![error.into()]);
    let mut certificates = Vec::new();
    for CertificateFiles { certificate, key } in named {
        certificates.push(CertificateFiles { certificate: absolute(certificate)?, key: absolute(key)? });
    }
    let mut groups = BTreeSet::new();
    if manager == ServiceScope::System {
        groups = groups_of_readers(&certificates, options.run_as.as_deref())?;
    }
    Ok(Some(TlsFacts { listen, certificates, groups }))
}

/// The groups that the service has to be in, beyond what its user may read.
fn groups_of_readers(
    certificates: &[CertificateFiles],
    run_as: Option<&str>,
) -> Result<BTreeSet<u32>, Vec<anyhow::Error>> {
    let (mut groups, mut errors) = (BTreeSet::new(), Vec::new());
    for file in certificates.iter().flat_map(|pair| [&pair.certificate, &pair.key]) {
        match groups_that_read(file) {
            Ok(found) => groups.extend(found),
            // What a user may who is named is known when the service starts.
            Err(_) if run_as.is_some() => {}
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(groups) } else { Err(errors) }
}

/// What a stranger has to be in to read a file; fails if only its owner may. Links and what they lead to are
/// walked alike.
fn groups_that_read(file: &Path) -> anyhow::Result<BTreeSet<u32>> {
    let real = fs::canonicalize(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let folders = file.ancestors().skip(1).chain(real.ancestors().skip(1));
    let needs = folders.map(|folder| (folder, ENTER)).chain([(real.as_path(), READ)]);
    let mut groups = BTreeSet::new();
    for (path, right) in needs {
        let found = fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
        // Root's group would be a right to far more than this file.
        let is_for_group = found.mode() & (right << 3) != 0 && found.gid() != 0;
        if found.mode() & right != 0 {
            continue;
        }
        if !is_for_group {
            bail!(
                "{} is for its owner alone, so the service, which runs as a user that systemd makes up, could not read {}; give a group of its own the \
                 right (chgrp ssl-cert {0}, chmod g+rX {0}), or say with --run-as who runs the service",
                path.display(),
                file.display(),
            );
        }
        groups.insert(found.gid());
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn groups_that_may_read_a_key_are_found_through_links_and_folders() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let archive = folder.path().join("archive");
        fs::create_dir(&archive).expect("a folder");
        let (key, link) = (archive.join("key-1.pem"), folder.path().join("key.pem"));
        fs::write(&key, "").expect("a file");
        symlink(&key, &link).expect("a link");
        let allow = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        allow(folder.path(), 0o755);
        allow(&archive, 0o755);
        allow(&key, 0o644);
        assert_eq!(groups_that_read(&link).expect("all users may"), BTreeSet::new());
        allow(&key, 0o600);
        let problem = groups_that_read(&link).expect_err("its owner alone may").to_string();
        assert!(problem.contains("key-1.pem is for its owner alone"), "{problem}");
        allow(&key, 0o640);
        let own = fs::metadata(&key).expect("it is there").gid();
        // Only root may give a file away; another user who runs this has a group other than root's.
        let group = if own == 0 { 4321 } else { own };
        chown(&key, None, Some(group)).expect("it is ours");
        assert_eq!(groups_that_read(&link).expect("a group may"), BTreeSet::from([group]));
        allow(&archive, 0o700);
        let problem = groups_that_read(&link).expect_err("no user may enter").to_string();
        assert!(problem.contains("archive is for its owner alone"), "{problem}");
    }
}
