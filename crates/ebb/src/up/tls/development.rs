//! A certificate made on this machine, for this machine.
//!
//! It signs itself, so clients have to be told to trust it (`curl --cacert FILE`). It is kept, so that they
//! have to be told once: it is made anew when it is about to expire or does not cover a name.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use dataplane::{CertificateFiles, Certificates};
use platform_local::LoadedManifest;
use rcgen::{CertificateParams, DnType, KeyPair};
use time::OffsetDateTime;

use crate::up::state_folder;

/// How long it is valid: browsers refuse what they are shown for longer than 398 days.
const VALID: Duration = Duration::from_hours(397 * 24);

/// How long before its end it is made anew.
const RENEWED_BEFORE: Duration = Duration::from_hours(30 * 24);

/// Clocks of clients may be behind ours.
const CLOCK_RESERVE: Duration = Duration::from_hours(24);

/// Every name under which requests may come.
pub(super) fn names(listen: SocketAddr, loaded: &LoadedManifest) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    if !listen.ip().is_loopback() && !listen.ip().is_unspecified() {
        names.push(listen.ip().to_string());
    }
    names.extend(loaded.all_hosts());
    names
}

/// The files of a certificate for these names, made if need be.
pub(super) fn certificate(names: &[String]) -> anyhow::Result<CertificateFiles> {
    let folder = folder()?;
    let files =
        CertificateFiles { certificate: folder.join("dev-certificate.pem"), key: folder.join("dev-key.pem") };
    let now = runtime::wall_time();
    let is_good = Certificates::read(std::slice::from_ref(&files), now)
        .is_ok_and(|kept| kept.expires() > now + RENEWED_BEFORE && names.iter().all(|name| kept.cover(name)));
    if !is_good {
        make(names, &files, now).with_context(|| {
            format!(
                "cannot make a development certificate in {}; choose another place with XDG_STATE_HOME",
                folder.display()
            )
        })?;
    }
    Ok(files)
}

fn folder() -> anyhow::Result<PathBuf> {
    state_folder::of_user().ok_or_else(|| {
        anyhow!("--tls dev needs a place for its certificate; set HOME or XDG_STATE_HOME to an absolute path")
    })
}

fn make(names: &[String], files: &CertificateFiles, now: SystemTime) -> anyhow::Result<()> {
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name.push(DnType::CommonName, "ebb development certificate");
    parameters.not_before = OffsetDateTime::from(now - CLOCK_RESERVE);
    parameters.not_after = OffsetDateTime::from(now + VALID - CLOCK_RESERVE);
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    if let Some(folder) = files.key.parent() {
        fs::create_dir_all(folder)?;
    }
    write(&files.key, &key.serialize_pem(), 0o600)?;
    write(&files.certificate, &certificate.pem(), 0o644)
}

/// Writes a file in one step, so that no reader sees a half of it.
fn write(file: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let new = file.with_extension("new");
    let _ = fs::remove_file(&new);
    // Always made anew: a file that exists would keep its own mode, and this may be the key.
    let mut written = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    written.write_all(text.as_bytes())?;
    fs::rename(&new, file)?;
    Ok(())
}
