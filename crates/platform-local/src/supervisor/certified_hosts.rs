//! Does a certificate cover each host that manifests give to Services? Clients over TLS refuse a host that
//! none covers.

use std::fmt;
use std::sync::Arc;

use vocabulary::RevisionName;

use crate::manifest::LoadedManifest;
use crate::supervisor::outbox::service_problem;

/// Tells which hosts a certificate covers, as certificates are at the moment.
#[derive(Clone)]
pub struct CertifiedHosts(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl CertifiedHosts {
    /// Whether a certificate covers a name is asked of `covers`.
    pub fn new(covers: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(covers))
    }

    /// The own hosts of Services that no certificate covers, a problem each.
    pub(super) fn problems_of(&self, loaded: &LoadedManifest) -> Vec<String> {
        let services = loaded.services.values().map(|placed| &placed.service);
        let hosts = services.flat_map(|service| service.own_hosts.iter().map(move |host| (service, host)));
        let uncovered = hosts.filter(|(_, host)| !self.cover(host));
        uncovered.map(|(service, host)| problem_of(&service.name, host)).collect()
    }

    /// Whether each name that a host stands for is covered.
    fn cover(&self, host: &str) -> bool {
        // No certificate is checked against a wildcard; any name below it is as good as another.
        match host.strip_prefix('*') {
            Some(below) => (self.0)(&format!("any{below}")),
            None => (self.0)(host),
        }
    }
}

impl fmt::Debug for CertifiedHosts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("CertifiedHosts").finish_non_exhaustive()
    }
}

fn problem_of(service: &RevisionName, host: &str) -> String {
    let text = format!(
        "no certificate covers its host {host}, so clients over TLS refuse the connection; give `ebb up` one that does (--tls-cert, \
         --tls-key), or with --tls dev start it again"
    );
    service_problem(service, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_covered_where_the_names_below_it_are() {
        let certified =
            CertifiedHosts::new(|host| host == "any.shop.example.org" || host == "shop.example.org");
        assert!(certified.cover("shop.example.org") && certified.cover("*.shop.example.org"));
        assert!(!certified.cover("*.example.org") && !certified.cover("other.example.org"));
        let name = RevisionName::new("default", "service", "shop").expect("a name");
        let problem = problem_of(&name, "other.example.org");
        assert!(
            problem.starts_with("service default/shop: no certificate covers its host other.example.org"),
            "{problem}"
        );
    }
}
