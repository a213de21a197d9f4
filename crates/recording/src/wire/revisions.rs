//! Facts of revisions, to the record and back. Settings stand as texts.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::{Entrance, RevisionFacts};
use scaling::RevisionOrigin;
use settings::hpa::reading::DOCUMENT_ANNOTATION;
use settings::hpa::{ContainerRequests, PodRequests, ResourceRequests, UsageSource, spec_of, yaml_of};
use settings::{FloorCause, RevisionSettings};
use vocabulary::{MilliValue, PodCount};

use super::facts_proto::{EntranceBody, EntranceMessage, RevisionFactsMessage, TextsMessage};
use super::fields;
use super::shared_proto::{AmountMessage, AmountsMessage, ContainerMessage, PodRequestsMessage};
use crate::frame_fault::FrameFault;
use crate::rereading::SettingsRereader;
use crate::secrets::{SecretHasher, stand_in_key};

pub(super) fn revision_out(facts: &RevisionFacts, secrets: &SecretHasher) -> RevisionFactsMessage {
    let settings = &facts.settings;
    RevisionFactsMessage {
        name: facts.name.as_str().to_owned(),
        annotations: Some(TextsMessage { texts: annotations_out(settings) }),
        requests: Some(requests_out(&settings.requests)),
        is_usage_asked_for: settings.usage == UsageSource::Questions,
        container_concurrency: facts.container_concurrency,
        timeouts: Some(fields::timeouts_out(&facts.timeouts)),
        progress_deadline: fields::nanoseconds(facts.progress_deadline),
        entrances: facts.entrances.iter().map(entrance_out).collect(),
        hop_keys: facts.hop_keys.iter().map(|key| secrets.hash(key.expose().as_bytes())).collect(),
        wanted: facts.wanted.value(),
        may_write: facts.may_write,
        reachable: facts.reachable,
        floor: facts.floor.value(),
        hold: facts.hold.clone(),
        origin: match facts.origin {
            RevisionOrigin::New => 1,
            RevisionOrigin::Found => 2,
        },
        template: facts.template.clone(),
        floor_cause: match facts.floor_cause {
            FloorCause::GivenBack => 0,
            FloorCause::Abandoned => 1,
            FloorCause::Bypass => 2,
            FloorCause::InvalidAnnotations => 3,
        },
    }
}

/// The texts of the annotations. A document that stands by itself becomes the annotation that says the same:
/// where there is one, no annotation may.
fn annotations_out(settings: &RevisionSettings) -> BTreeMap<String, String> {
    let texts = settings.texts.iter().map(|(key, text)| (key.to_owned(), text.to_owned()));
    let mut texts: BTreeMap<String, String> = texts.collect();
    if let Some(document) = &settings.document {
        let text = || yaml_of(&spec_of(document));
        texts.entry(DOCUMENT_ANNOTATION.to_owned()).or_insert_with(text);
    }
    texts
}

pub(super) fn revision_in(
    facts: RevisionFactsMessage,
    settings: &SettingsRereader,
) -> Result<RevisionFacts, FrameFault> {
    let name = fields::revision(&facts.name)?;
    let texts = facts.annotations.unwrap_or_default().texts;
    let settings = RevisionSettings {
        requests: requests_in(facts.requests.unwrap_or_default()),
        usage: if facts.is_usage_asked_for { UsageSource::Questions } else { UsageSource::Reports },
        ..settings.read_annotations(&name, &texts)?
    };
    Ok(RevisionFacts {
        name,
        settings,
        container_concurrency: facts.container_concurrency,
        timeouts: fields::timeouts_in(facts.timeouts),
        progress_deadline: Duration::from_nanos(facts.progress_deadline),
        entrances: facts.entrances.into_iter().map(entrance_in).collect::<Result<_, _>>()?,
        url: None,
        hop_keys: facts.hop_keys.iter().copied().map(stand_in_key).collect(),
        wanted: PodCount::new(facts.wanted),
        may_write: facts.may_write,
        reachable: facts.reachable,
        floor: PodCount::new(facts.floor),
        floor_cause: match facts.floor_cause {
            0 => FloorCause::GivenBack,
            1 => FloorCause::Abandoned,
            2 => FloorCause::Bypass,
            3 => FloorCause::InvalidAnnotations,
            other => return Err(fields::unknown("the cause of a floor", other)),
        },
        // A page decides nothing.
        waiting_page: vocabulary::WaitingPage::Off,
        hold: facts.hold,
        origin: match facts.origin {
            1 => RevisionOrigin::New,
            2 => RevisionOrigin::Found,
            other => return Err(fields::unknown("the origin of a revision", other)),
        },
        template: facts.template,
        other_autoscaler: None,
    })
}

fn entrance_out(entrance: &Entrance) -> EntranceMessage {
    let entrance = match entrance {
        Entrance::Host(host) => EntranceBody::Host(host.clone()),
        Entrance::Port(port) => EntranceBody::Port((*port).into()),
    };
    EntranceMessage { entrance: Some(entrance) }
}

fn entrance_in(entrance: EntranceMessage) -> Result<Entrance, FrameFault> {
    Ok(match fields::present("an entrance", entrance.entrance)? {
        EntranceBody::Host(host) => Entrance::Host(host),
        EntranceBody::Port(port) => Entrance::Port(fields::port("an entrance", port)?),
    })
}

pub(super) fn requests_out(requests: &PodRequests) -> PodRequestsMessage {
    let containers = requests.containers.iter().map(|container| ContainerMessage {
        name: container.name.to_string(),
        requests: Some(amounts_out(&container.requests)),
    });
    PodRequestsMessage {
        pod_level: requests.pod_level.as_ref().map(amounts_out),
        containers: containers.collect(),
    }
}

pub(super) fn requests_in(requests: PodRequestsMessage) -> PodRequests {
    let containers = requests.containers.into_iter().map(|container| ContainerRequests {
        name: container.name.into_boxed_str(),
        requests: amounts_in(container.requests.unwrap_or_default()),
    });
    PodRequests { pod_level: requests.pod_level.map(amounts_in), containers: containers.collect() }
}

fn amounts_out(amounts: &ResourceRequests) -> AmountsMessage {
    let others = amounts
        .others
        .iter()
        .map(|(resource, amount)| AmountMessage { resource: resource.to_string(), amount: amount.value() });
    AmountsMessage {
        cpu: amounts.cpu.map(MilliValue::value),
        memory: amounts.memory.map(MilliValue::value),
        others: others.collect(),
    }
}

fn amounts_in(amounts: AmountsMessage) -> ResourceRequests {
    let others = amounts.others.into_iter();
    let others = others.map(|other| (other.resource.into_boxed_str(), MilliValue::new(other.amount)));
    ResourceRequests {
        cpu: amounts.cpu.map(MilliValue::new),
        memory: amounts.memory.map(MilliValue::new),
        others: others.collect(),
    }
}
