//! Which program writes a Service's endpoints, and is that about to change?
//!
//! ```text
//!            names a workload          selector removed
//!   Foreign ─────────────────► Prepared ─────────────► Adopted ──┬─ selector put back ──► GivingBack ─┐
//!      ▲                                                         └─ no annotation ──────► Abandoned   │ Kubernetes' own stand
//!      └──────────────────────────────── a minute later ◄── Lingering ◄───────────────────────────────┘
//! ```
//!
//! Nothing of this is remembered but what lingers: it follows from the Service and from whether slices of
//! ours stand, so the next owner goes on where the former one stopped.

use std::fmt;

use settings::FloorCause;
use vocabulary::{REVISION_ANNOTATION, RevisionName};

use crate::notice::{NO_SELECTOR, Notice, SELECTOR_PRESENT};
use crate::resources::service::{ServiceAddressing, ServiceClaim, ServiceRecord, ServiceSelection};

/// Which program writes the endpoints of one Service.
#[derive(Clone, Debug, PartialEq)]
pub enum Custody {
    /// Others, and nothing of ours is there.
    Foreign,
    /// Others, although it names a workload: this says why.
    Refused(Notice),
    /// Kubernetes, until the selector is removed; activators know it already.
    Prepared(RevisionName),
    /// We do, because the Service names this revision and has no selector.
    Adopted(RevisionName),
    /// We do, until the endpoints that Kubernetes writes name a ready pod.
    GivingBack(RevisionName),
    /// We do, although no annotation asks for it: there is no selector, so Kubernetes cannot.
    Abandoned(RevisionName),
    /// Kubernetes again. Some nodes may not have heard of it yet.
    Lingering(RevisionName),
}

impl Custody {
    /// For which workload we write, or are ready to.
    pub(crate) fn revision(&self) -> Option<&RevisionName> {
        match self {
            Self::Foreign | Self::Refused(_) => None,
            Self::Prepared(revision)
            | Self::Adopted(revision)
            | Self::GivingBack(revision)
            | Self::Abandoned(revision)
            | Self::Lingering(revision) => Some(revision),
        }
    }

    /// Whether a pod must be there for it in any case: a request may wait, and no other program would bring
    /// one.
    pub(crate) fn keeps_a_pod(&self) -> bool {
        self.floor_cause().is_some()
    }

    /// Why a pod must be there for it in any case; `None` where none must.
    pub(crate) fn floor_cause(&self) -> Option<FloorCause> {
        match self {
            Self::GivingBack(_) | Self::Lingering(_) => Some(FloorCause::GivenBack),
            Self::Abandoned(_) => Some(FloorCause::Abandoned),
            Self::Foreign | Self::Refused(_) | Self::Prepared(_) | Self::Adopted(_) => None,
        }
    }

    /// The notice for people, where there is one.
    pub(crate) fn notice(&self) -> Option<Notice> {
        match self {
            Self::Refused(notice) => Some(notice.clone()),
            Self::Prepared(revision) => Some(Notice::new(
                SELECTOR_PRESENT,
                format!("the Service is served through ebb ({revision}) once spec.selector is removed"),
            )),
            Self::Abandoned(revision) => Some(Notice::new(
                NO_SELECTOR,
                format!(
                    "ebb is not asked to serve the Service any more, and the Service has no selector, so no other program can serve it: ebb's endpoints of {revision} stay; put spec.selector back, or the annotation {REVISION_ANNOTATION}"
                ),
            )),
            Self::Foreign | Self::Adopted(_) | Self::GivingBack(_) | Self::Lingering(_) => None,
        }
    }
}

impl fmt::Display for Custody {
    /// Which program writes the endpoints, in a few words for logs.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => to.write_str("others"),
            Self::Refused(notice) => write!(to, "others, refused by ebb ({})", notice.reason),
            Self::Prepared(revision) => {
                write!(to, "Kubernetes, until the selector is removed (then ebb for {revision})")
            }
            Self::Adopted(revision) => write!(to, "ebb for {revision}"),
            Self::GivingBack(revision) => write!(to, "ebb for {revision}, until Kubernetes' own are there"),
            Self::Abandoned(revision) => write!(to, "ebb for {revision}, without being asked"),
            Self::Lingering(revision) => write!(to, "Kubernetes, a moment after ebb for {revision}"),
        }
    }
}

/// Our slices that stand for a Service, or stood a moment ago.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Traces {
    /// The revision for which our slices were written, if any stand.
    pub(crate) slices: Option<RevisionName>,
    /// The revision for which they were written until a moment ago.
    pub(crate) lingers: Option<RevisionName>,
}

/// Which program writes the endpoints of a Service.
pub(crate) fn custody(service: &ServiceRecord, traces: &Traces) -> Custody {
    // A Service that is served through us and becomes one that would not be taken over is not dropped:
    // no other program would write its endpoints. Only one without endpoints leaves nothing to write.
    let goes_on = traces.slices.is_some() && service.addressing == ServiceAddressing::ClusterIp;
    let claimed = match (&service.claim, &service.refusal) {
        (ServiceClaim::None, _) => None,
        (ServiceClaim::Refused(notice), _) => Some(Err(notice)),
        (ServiceClaim::Of(_), Some(notice)) if !goes_on => Some(Err(notice)),
        (ServiceClaim::Of(revision), _) => Some(Ok(revision)),
    };
    match (claimed, &service.selection, &traces.slices, &traces.lingers) {
        (Some(Ok(revision)), ServiceSelection::None, _, _) => Custody::Adopted(revision.clone()),
        (_, ServiceSelection::Labels(_), Some(revision), _) => Custody::GivingBack(revision.clone()),
        (_, ServiceSelection::None, Some(revision), _) => Custody::Abandoned(revision.clone()),
        (_, _, None, Some(revision)) => Custody::Lingering(revision.clone()),
        (Some(Ok(revision)), ServiceSelection::Labels(_), None, None) => Custody::Prepared(revision.clone()),
        (Some(Err(notice)), _, None, None) => Custody::Refused(notice.clone()),
        (None, _, None, None) => Custody::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::resources::service;

    const HEADLESS: &str = "None";

    fn record(annotation: Option<&str>, selector: &Value, cluster_ip: &str) -> ServiceRecord {
        let annotations = annotation.map(|target| json!({REVISION_ANNOTATION: target}));
        let metadata =
            json!({"name": "hello", "namespace": "default", "uid": "s", "annotations": annotations});
        let spec = json!({"clusterIP": cluster_ip, "ports": [{"port": 80}], "selector": selector});
        service::read(
            &serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Service"),
        )
    }

    #[test]
    fn custody_follows_from_the_service_and_from_what_of_ours_stands() {
        let ours = || RevisionName::new("default", "deployment", "hello").expect("a name");
        let traces =
            |slices: bool, lingers: bool| Traces { slices: slices.then(ours), lingers: lingers.then(ours) };
        let selector = || json!({"app": "hello"});
        let (named, bad) = (Some("hello"), Some("cronjob/hello"));
        let rows = [
            ("of no owner", record(None, &selector(), "10.0.0.1"), traces(false, false), Custody::Foreign),
            (
                "annotated",
                record(named, &selector(), "10.0.0.1"),
                traces(false, false),
                Custody::Prepared(ours()),
            ),
            (
                "adopted",
                record(named, &Value::Null, "10.0.0.1"),
                traces(false, false),
                Custody::Adopted(ours()),
            ),
            (
                "written",
                record(named, &Value::Null, "10.0.0.1"),
                traces(true, false),
                Custody::Adopted(ours()),
            ),
            (
                "selector back",
                record(named, &selector(), "10.0.0.1"),
                traces(true, false),
                Custody::GivingBack(ours()),
            ),
            (
                "old file",
                record(None, &selector(), "10.0.0.1"),
                traces(true, false),
                Custody::GivingBack(ours()),
            ),
            (
                "annotation gone",
                record(None, &Value::Null, "10.0.0.1"),
                traces(true, false),
                Custody::Abandoned(ours()),
            ),
            (
                "annotation broken",
                record(bad, &Value::Null, "10.0.0.1"),
                traces(true, false),
                Custody::Abandoned(ours()),
            ),
            (
                "given back",
                record(None, &selector(), "10.0.0.1"),
                traces(false, true),
                Custody::Lingering(ours()),
            ),
            (
                "and adopted again",
                record(named, &Value::Null, "10.0.0.1"),
                traces(false, true),
                Custody::Adopted(ours()),
            ),
        ];
        for (name, service, traces, expected) in rows {
            assert_eq!(custody(&service, &traces), expected, "{name}");
        }
        for refused in [record(bad, &Value::Null, "10.0.0.1"), record(named, &Value::Null, HEADLESS)] {
            assert!(matches!(custody(&refused, &Traces::default()), Custody::Refused(_)));
        }
    }

    #[test]
    fn an_adopted_service_stays_adopted_when_it_becomes_unservable() {
        let ours = RevisionName::new("default", "deployment", "hello").expect("a name");
        let written = Traces { slices: Some(ours.clone()), lingers: None };
        let with = |spec: Value| {
            let mut service = json!({"metadata": {"name": "hello", "namespace": "default", "uid": "s", "annotations": {REVISION_ANNOTATION: "hello"}}});
            service["spec"] = spec;
            service::read(&serde_json::from_value(service).expect("a Service"))
        };
        let udp = json!([{"port": 80}, {"port": 53, "protocol": "UDP"}]);
        let local = json!({"internalTrafficPolicy": "Local", "ports": [{"port": 80}]});
        for spec in [json!({"ports": udp}), local] {
            let refused = with(spec.clone());
            assert!(matches!(custody(&refused, &Traces::default()), Custody::Refused(_)), "{spec}");
            assert_eq!(custody(&refused, &written), Custody::Adopted(ours.clone()), "{spec}");
        }
        let elsewhere = with(json!({"type": "ExternalName", "externalName": "elsewhere"}));
        assert_eq!(custody(&elsewhere, &written), Custody::Abandoned(ours.clone()));
    }
}
