//! Which domain has the cluster? By Knative's rule (contract §5.2), so that ebb and Knative's programs name
//! the same hosts.

/// The file by which a pod's names are resolved.
const RESOLVER: &str = "/etc/resolv.conf";
const DEFAULT: &str = "cluster.local";

/// The domain that the environment says, else that by which this pod's names are resolved.
pub fn cluster_domain(written: Option<&str>) -> String {
    match written {
        Some(domain) => domain.to_owned(),
        None => of_resolver(&std::fs::read_to_string(RESOLVER).unwrap_or_default()),
    }
}

/// The domain of the search entry that begins with `svc.`, else the usual one.
fn of_resolver(text: &str) -> String {
    let searches = text.lines().filter_map(|line| line.trim().strip_prefix("search"));
    let mut entries = searches.flat_map(str::split_whitespace);
    let domain = entries.find_map(|entry| entry.strip_prefix("svc."));
    domain
        .map(|domain| domain.trim_end_matches('.'))
        .filter(|domain| !domain.is_empty())
        .unwrap_or(DEFAULT)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_the_environments_else_the_resolvers_else_the_usual_one() {
        assert_eq!(cluster_domain(Some("example.internal")), "example.internal");
        let file =
            "nameserver 10.96.0.10\nsearch knative-serving.svc.corp.example svc.corp.example corp.example\n";
        assert_eq!(of_resolver(file), "corp.example");
        assert_eq!(of_resolver("search svc.corp.example.\noptions ndots:5\n"), "corp.example");
        assert_eq!(of_resolver("nameserver 8.8.8.8\n"), "cluster.local");
    }
}
