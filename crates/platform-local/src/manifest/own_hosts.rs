//! Own hosts of Services: the annotation `ebb.dev/hosts`, and documents of kind `DomainMapping`.
//!
//! A host is a name, or `*.` before one, which means all names below it that no longer host means. It belongs
//! to one Service: a claim to a host that another Service has is refused, with both places.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use settings::HOSTS_ANNOTATION;
use vocabulary::{RevisionName, shown};

use crate::manifest::Trouble;
use crate::manifest::data::DEFAULT_NAMESPACE;
use crate::manifest::document::SERVICES;
use crate::manifest::fields::{ManifestFields, Report, WRITTEN_BY_SERVERS};
use crate::manifest::yaml::{TextPlace, YamlNode};

/// The only kind that a `DomainMapping` can name here.
const TARGET_KIND: &str = "Service";

/// A host that a manifest gives to a Service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedHost {
    pub(crate) host: String,
    /// The file, as the user named it.
    pub(crate) file: PathBuf,
    /// Line and column at which the host, or its document, begins.
    pub(crate) place: TextPlace,
}

/// All documents of kind `DomainMapping`, by the Service that each names.
#[derive(Debug, Default)]
pub(crate) struct DomainMappings {
    sound: BTreeMap<RevisionName, Vec<PlacedHost>>,
    /// Services whose document was refused: they stay as they were.
    refused: BTreeSet<RevisionName>,
}

impl DomainMappings {
    /// Reads a document of kind `DomainMapping`.
    pub(crate) fn read(&mut self, node: &YamlNode, report: &mut Report) {
        let refused_before = report.refusals();
        let Some(mut fields) = ManifestFields::of(node, "", report) else { return };
        fields.ignore(&["apiVersion", "kind", "status"]);
        let (host, namespace) = metadata(&mut fields, report);
        let service = if let Some(spec) = fields.mapping("spec", report) {
            read_spec(spec, namespace, report)
        } else {
            report.refuse(fields.place, "spec.ref is missing: nothing says which Service has the host");
            None
        };
        fields.finish(&[], report);
        let Some(service) = service else { return };
        match host.filter(|_| report.refusals() == refused_before) {
            Some(host) => {
                let placed = PlacedHost { host, file: report.file().to_owned(), place: node.place };
                self.sound.entry(service).or_default().push(placed);
            }
            None => {
                self.refused.insert(service);
            }
        }
    }

    /// The hosts of a Service.
    pub(crate) fn of(&self, service: &RevisionName) -> &[PlacedHost] {
        self.sound.get(service).map(Vec::as_slice).unwrap_or_default()
    }

    /// Services that lack a host because its document was refused.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &RevisionName> {
        self.refused.iter()
    }

    /// Refuses documents whose Service stands nowhere.
    pub(crate) fn refuse_strays(&self, is_known: impl Fn(&RevisionName) -> bool) -> Vec<Report> {
        let strays = self.sound.iter().filter(|(service, _)| !is_known(service));
        let strays = strays.flat_map(|(service, hosts)| hosts.iter().map(move |placed| (service, placed)));
        let report = |(service, placed): (&RevisionName, &PlacedHost)| {
            let mut report = Report::about(&placed.file);
            let (name, namespace) = (service.name(), service.namespace());
            let message = format!(
                "spec.ref is the Service {name} of namespace {namespace}, which stands in no file; write its \
                 name, or remove this document"
            );
            report.refuse(placed.place, message);
            report
        };
        strays.map(report).collect()
    }
}

/// The host that a document is named after, and its namespace.
fn metadata<'n>(document: &mut ManifestFields<'n>, report: &mut Report) -> (Option<String>, &'n str) {
    let Some(mut fields) = document.mapping("metadata", report) else {
        report.refuse(document.place, "metadata is missing: the name of a DomainMapping is its host");
        return (None, DEFAULT_NAMESPACE);
    };
    fields.ignore(WRITTEN_BY_SERVERS);
    let place = fields.take("name").map_or(fields.place, |node| node.place);
    let written = fields.text("name", report);
    if fields.take("name").is_none() {
        report.refuse(place, "metadata.name is missing: the name of a DomainMapping is its host");
    }
    let host = written.and_then(|text| {
        read_host(text).or_else(|| {
            report.refuse(place, format!("metadata.name is {}; {ALLOWED}", shown(text)));
            None
        })
    });
    let namespace = fields.label("namespace", report).unwrap_or(DEFAULT_NAMESPACE);
    fields.text_map("labels", report);
    fields.text_map("annotations", report);
    fields.finish(&[], report);
    (host, namespace)
}

/// The Service that a document names.
fn read_spec(mut spec: ManifestFields<'_>, namespace: &str, report: &mut Report) -> Option<RevisionName> {
    let place = spec.take("ref").map_or(spec.place, |node| node.place);
    let target = spec.mapping("ref", report);
    if target.is_none() {
        report.refuse(place, "spec.ref is missing: it names the Service that has the host");
    }
    let service = target.and_then(|target| read_target(target, namespace, report));
    spec.finish(
        &[("tls", "certificates are those of `ebb up` (--tls-cert and --tls-key); remove spec.tls")],
        report,
    );
    service
}

fn read_target(mut target: ManifestFields<'_>, namespace: &str, report: &mut Report) -> Option<RevisionName> {
    for (field, only) in [("kind", TARGET_KIND), ("apiVersion", SERVICES)] {
        let place = target.take(field).map(|node| node.place);
        if let Some(found) = target.text(field, report).filter(|found| *found != only) {
            report.refuse(
                place,
                format!(
                    "spec.ref.{field} is {}; on one machine a host leads to a Service of {SERVICES}: write {only}",
                    shown(found)
                ),
            );
        }
    }
    let place = target.take("namespace").map(|node| node.place);
    if let Some(other) = target.label("namespace", report).filter(|other| *other != namespace) {
        report.refuse(
            place,
            format!(
                "spec.ref.namespace is {}, and the document is of namespace {namespace}; a host leads to a Service of its own namespace",
                shown(other)
            ),
        );
    }
    let name = target.label("name", report);
    if target.take("name").is_none() {
        report.refuse(target.place, "spec.ref.name is missing");
    }
    target.finish(&[], report);
    RevisionName::new(namespace, "service", name?).ok()
}

/// Reads the annotation `ebb.dev/hosts` of a Service; each host with its place.
pub(crate) fn read_annotation(text: &str, place: TextPlace, report: &mut Report) -> Vec<PlacedHost> {
    let mut hosts = Vec::new();
    for written in text.split(',').map(str::trim) {
        match read_host(written) {
            Some(host) => hosts.push(PlacedHost { host, file: report.file().to_owned(), place }),
            None => report
                .refuse(place, format!("annotation {HOSTS_ANNOTATION} has {}; {ALLOWED}", shown(written))),
        }
    }
    hosts
}

/// What a host may be, as the end of a refusal.
const ALLOWED: &str = "write names such as shop.example.org or *.shop.example.org, with commas between them and without scheme, port and path";

/// A host in lower case, if it is one.
fn read_host(text: &str) -> Option<String> {
    /// The longest name of the DNS, and the longest of its parts.
    const NAME_MAX: usize = 253;
    const LABEL_MAX: usize = 63;
    let host = text.to_ascii_lowercase();
    let name = host.strip_prefix("*.").unwrap_or(&host);
    let is_label = |label: &str| {
        (1..=LABEL_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_name = name.len() <= NAME_MAX && name.split('.').all(is_label) && name.parse::<IpAddr>().is_err();
    is_name.then_some(host)
}

/// The hosts that one Service is to have.
#[derive(Debug)]
pub(crate) struct HostClaims {
    pub(crate) service: RevisionName,
    /// Those that follow from its name.
    pub(crate) by_name: Vec<PlacedHost>,
    /// Those of its annotation and of documents.
    pub(crate) own: Vec<PlacedHost>,
}

/// The Services that claim a host of another, each with its problem. A host that follows from a Service's
/// name is that Service's; of other claims the first holds.
pub(crate) fn conflicts(claims: &[HostClaims]) -> Vec<(RevisionName, Trouble)> {
    let mut owners: BTreeMap<&str, (&RevisionName, &PlacedHost)> = BTreeMap::new();
    for claim in claims {
        for placed in &claim.by_name {
            owners.insert(&placed.host, (&claim.service, placed));
        }
    }
    let mut conflicts = Vec::new();
    for claim in claims {
        for placed in &claim.own {
            let (owner, first) = *owners.entry(&placed.host).or_insert((&claim.service, placed));
            if *owner != claim.service {
                conflicts.push((claim.service.clone(), conflict(placed, owner, first)));
            }
        }
    }
    conflicts
}

fn conflict(placed: &PlacedHost, owner: &RevisionName, first: &PlacedHost) -> Trouble {
    let PlacedHost { host, file, place } = placed;
    let ((line, column), first_file) = (first.place, first.file.display());
    let (name, namespace) = (owner.name(), owner.namespace());
    let message = format!(
        "the host {host} belongs to the Service {name} of namespace {namespace} ({first_file}:{line}:{column}); write another, or remove one"
    );
    Trouble { file: file.clone(), place: Some(*place), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_wildcards() {
        for (text, host) in [
            ("shop.example.org", Some("shop.example.org")),
            ("Shop.Example.ORG", Some("shop.example.org")),
            ("*.shop.example.org", Some("*.shop.example.org")),
            ("localhost", Some("localhost")),
            ("", None),
            ("*", None),
            ("a.*.org", None),
            ("https://shop.example.org", None),
            ("shop.example.org:8080", None),
            ("shop.example.org/path", None),
            ("-shop.example.org", None),
            ("shop..example.org", None),
            ("192.0.2.7", None),
        ] {
            assert_eq!(read_host(text).as_deref(), host, "{text:?}");
        }
        assert_eq!(read_host(&"a".repeat(64)), None);
    }

    #[test]
    fn a_host_by_name_is_stronger_than_any_claim_and_else_the_first_claim_holds() {
        let service = |name| RevisionName::new("default", "service", name).expect("a name");
        let placed = |host: &str, line| PlacedHost {
            host: host.to_owned(),
            file: PathBuf::from("hosts.yaml"),
            place: (line, 1),
        };
        let claims = |name, by_name: &str, own: &[PlacedHost]| HostClaims {
            service: service(name),
            by_name: vec![placed(by_name, 1)],
            own: own.to_vec(),
        };
        let all = [
            claims(
                "a",
                "a.example.com",
                &[placed("x.org", 2), placed("x.org", 3), placed("b.example.com", 4)],
            ),
            claims("b", "b.example.com", &[placed("x.org", 5), placed("*.x.org", 6)]),
        ];
        let found: Vec<_> = conflicts(&all)
            .into_iter()
            .map(|(service, trouble)| (service.name().to_owned(), trouble.place, trouble.message))
            .collect();
        let [(first, first_place, first_text), (second, second_place, second_text)] = &found[..] else {
            panic!("two claims are refused: {found:?}")
        };
        assert_eq!((first.as_str(), *first_place), ("a", Some((4, 1))));
        assert!(
            first_text.contains("b.example.com belongs to the Service b")
                && first_text.contains("hosts.yaml:1:1")
        );
        assert_eq!((second.as_str(), *second_place), ("b", Some((5, 1))));
        assert!(
            second_text.contains("x.org belongs to the Service a") && second_text.contains("hosts.yaml:2:1")
        );
    }
}
