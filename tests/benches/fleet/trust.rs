//! An authority for links that are TLS, and what it gives the processes: files in the benchmark's folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use link::Identity;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use vocabulary::LinkRole;

const ROOTS: &str = "ca.crt";

/// The folder and the files of the certificates.
#[derive(Clone, Debug)]
pub(crate) struct TrustFolder(PathBuf);

impl TrustFolder {
    /// Makes an authority, and a certificate for each role.
    pub(crate) fn make(folder: &Path) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::new(Vec::<String>::new())?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        fs::write(folder.join(ROOTS), parameters.self_signed(&key)?.pem())?;
        let issuer = Issuer::new(parameters, &key);
        for role in [LinkRole::Autoscaler, LinkRole::Activator] {
            let key = KeyPair::generate()?;
            let mut parameters = CertificateParams::new(vec![role.name().to_owned()])?;
            parameters.extended_key_usages =
                vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
            fs::write(chain_of(folder, role), parameters.signed_by(&key, &issuer)?.pem())?;
            fs::write(key_of(folder, role), key.serialize_pem())?;
        }
        Ok(Self::at(folder))
    }

    /// One that was made before.
    pub(crate) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// By what pods know an autoscaler.
    pub(crate) fn roots(&self) -> anyhow::Result<Vec<u8>> {
        fs::read(self.0.join(ROOTS)).context("reading the authority's certificate")
    }

    pub(crate) fn identity(&self, role: LinkRole) -> anyhow::Result<Identity> {
        let read = |path: PathBuf| fs::read(&path).with_context(|| format!("reading {}", path.display()));
        Ok(Identity::from_pem(
            &read(chain_of(&self.0, role))?,
            &read(key_of(&self.0, role))?,
            &self.roots()?,
        )?)
    }
}

fn chain_of(folder: &Path, role: LinkRole) -> PathBuf {
    folder.join(format!("{}.crt", role.name()))
}

fn key_of(folder: &Path, role: LinkRole) -> PathBuf {
    folder.join(format!("{}.key", role.name()))
}
