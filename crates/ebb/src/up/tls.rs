//! TLS where requests are taken: where, with which certificates, and what becomes of them while they are used.

mod development;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use activator::TlsListener;
use anyhow::anyhow;
use dataplane::{CertificateFiles, Certificates};
use platform_local::Loaded;
use tokio::time::MissedTickBehavior;
use tracing::{info, warn};

use crate::cli::{TlsMode, UpOptions};

/// How often the files are looked at, as the manifests are.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Where TLS is spoken if nobody says otherwise: the port that stands to 8080 as 443 to 80.
const PORT_DEFAULT: u16 = 8443;

/// The option that says otherwise.
pub(super) const LISTEN_OPTION: &str = "--tls-listen";

/// Where TLS is to be spoken, if it is to be at all.
pub(super) fn address(options: &UpOptions) -> Option<SocketAddr> {
    let is_wanted = options.tls.tls.is_some() || !options.tls.tls_cert.is_empty();
    is_wanted
        .then(|| options.tls.tls_listen.unwrap_or_else(|| SocketAddr::new(options.listen.ip(), PORT_DEFAULT)))
}

/// The certificates, and where they come from.
pub(super) struct FrontTls {
    files: Vec<CertificateFiles>,
    certificates: Arc<Certificates>,
}

impl FrontTls {
    /// What was asked for, if anything was. Every problem is told.
    pub(super) fn prepare(options: &UpOptions, loaded: &Loaded) -> Result<Option<Self>, Vec<anyhow::Error>> {
        let Some(address) = address(options) else {
            return match options.tls.tls_listen {
                None => Ok(None),
                Some(_) => Err(vec![anyhow!(
                    "{LISTEN_OPTION} needs a certificate; add --tls-cert and --tls-key, or --tls dev"
                )]),
            };
        };
        let files = match options.tls.tls {
            Some(TlsMode::Dev) => {
                let names = development::names(address, loaded);
                vec![development::certificate(&names).map_err(|error| vec![error])?]
            }
            None => pairs(&options.tls.tls_cert, &options.tls.tls_key).map_err(|error| vec![error])?,
        };
        let certificates = Certificates::read(&files, runtime::wall_time())
            .map_err(|problems| problems.into_iter().map(anyhow::Error::from).collect::<Vec<_>>())?;
        Ok(Some(Self { files, certificates: Arc::new(certificates) }))
    }

    /// For whoever accepts connections there.
    pub(super) fn at(&self, socket: TcpListener) -> TlsListener {
        TlsListener { socket, certificates: Arc::clone(&self.certificates) }
    }

    /// Presents what the files say, whenever they change. Connections that stand keep what they were shown.
    pub(super) async fn watch(self) {
        self.tell_expiry();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut presented = marks(&self.files);
        // What was refused last, and at how many looks.
        let mut refused: Option<(Vec<Mark>, u32)> = None;
        loop {
            looks.tick().await;
            let found = marks(&self.files);
            if found == presented {
                continue;
            }
            match self.certificates.read_again(&self.files, runtime::wall_time()) {
                Ok(()) => {
                    self.tell_expiry();
                    (presented, refused) = (found, None);
                }
                Err(problems) => {
                    let looks = match refused.take() {
                        Some((marks, looks)) if marks == found => looks + 1,
                        _ => 1,
                    };
                    // A certificate and its key are seldom written in the same instant, so what is wrong is told once it has been so for two looks.
                    if looks == 2 {
                        for problem in problems {
                            warn!("{:#}; what was presented before still is", anyhow::Error::from(problem));
                        }
                    }
                    refused = Some((found, looks));
                }
            }
        }
    }

    fn tell_expiry(&self) {
        let until = self.certificates.expires_as_text();
        info!(until, certificates = self.files.len(), "requests are taken over TLS");
    }
}

/// By what a file that was written again differs.
type Mark = Option<(i64, i64, u64, u64)>;

fn marks(files: &[CertificateFiles]) -> Vec<Mark> {
    let mark = |file: &PathBuf| {
        let found = fs::metadata(file).ok()?;
        Some((found.mtime(), found.mtime_nsec(), found.size(), found.ino()))
    };
    files.iter().flat_map(|pair| [mark(&pair.certificate), mark(&pair.key)]).collect()
}

/// Each certificate with its key.
fn pairs(certificates: &[PathBuf], keys: &[PathBuf]) -> anyhow::Result<Vec<CertificateFiles>> {
    if certificates.len() != keys.len() {
        return Err(anyhow!(
            "--tls-cert is given {} times and --tls-key {} times; give each certificate its key, in the same order",
            certificates.len(),
            keys.len()
        ));
    }
    let pair = |(certificate, key): (&PathBuf, &PathBuf)| CertificateFiles {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    Ok(certificates.iter().zip(keys).map(pair).collect())
}
