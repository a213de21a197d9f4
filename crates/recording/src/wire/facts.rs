//! Facts of the platform, to the record and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestration::{
    ActivatorFacts, ActivatorLife, OrderId, OrderOutcome, PlatformFact, RouteInForce, Subject,
};
use vocabulary::{Bucket, Epoch, Ownership, PodCount, RevisionName};

use super::facts_proto::{
    ActivatorMessage, ActivatorsMessage, FactBody, FactMessage, OrderEndBody, OrderEndMessage,
    OwnershipMessage, ProblemsMessage, RouteMessage, SubjectBody, TextsMessage,
};
use super::shared_proto::NothingMessage;
use super::{fields, links, pods, revisions};
use crate::frame_fault::FrameFault;
use crate::rereading::SettingsRereader;
use crate::secrets::SecretHasher;

/// A fact, as a record holds it.
pub(crate) fn fact_out(fact: &PlatformFact, secrets: &SecretHasher) -> FactMessage {
    let body = match fact {
        PlatformFact::ConfigChanged(config) => {
            let texts = config.texts.iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
            FactBody::Config(TextsMessage { texts })
        }
        PlatformFact::ProblemsChanged { about, problems } => FactBody::Problems(ProblemsMessage {
            about: Some(subject_out(about)),
            problems: problems.clone(),
        }),
        PlatformFact::OwnershipChanged(ownership) => FactBody::Ownership(ownership_out(ownership)),
        PlatformFact::RevisionChanged(facts) => {
            FactBody::Revision(Box::new(revisions::revision_out(facts, secrets)))
        }
        PlatformFact::RevisionRemoved(name) => FactBody::RevisionRemoved(name.as_str().to_owned()),
        PlatformFact::RevisionGivenBack(name) => FactBody::RevisionGivenBack(name.as_str().to_owned()),
        PlatformFact::PodsChanged { revision, pods } => {
            FactBody::Pods(pods::pods_out(revision, pods, secrets))
        }
        PlatformFact::PodFailed { revision, failure } => {
            FactBody::PodFailed(pods::failure_out(revision, failure))
        }
        PlatformFact::PodKilled { revision, kill } => FactBody::PodKilled(pods::kill_out(revision, kill)),
        PlatformFact::ActivatorsChanged(activators) => {
            let activators = activators.iter().map(|activator| activator_out(activator, secrets)).collect();
            FactBody::Activators(ActivatorsMessage { activators })
        }
        PlatformFact::RouteFound { revision, route } => FactBody::RouteFound(route_out(revision, route)),
        PlatformFact::OrderEnded { order, outcome } => {
            FactBody::OrderEnded(OrderEndMessage { order: order.0, outcome: Some(outcome_out(outcome)) })
        }
        PlatformFact::Synced => FactBody::Synced(NothingMessage {}),
    };
    FactMessage { body: Some(body) }
}

/// The fact that a record holds. The reader of settings keeps the configuration for the facts behind it.
pub(crate) fn fact_in(
    fact: FactMessage,
    settings: &mut SettingsRereader,
) -> Result<PlatformFact, FrameFault> {
    let body = fields::present("the content of a fact", fact.body)?;
    Ok(match body {
        FactBody::Config(config) => PlatformFact::ConfigChanged(settings.read_config(config.texts)?),
        FactBody::Problems(problems) => {
            PlatformFact::ProblemsChanged { about: subject_in(problems.about)?, problems: problems.problems }
        }
        FactBody::Ownership(ownership) => PlatformFact::OwnershipChanged(ownership_in(&ownership)?),
        FactBody::Revision(facts) => {
            PlatformFact::RevisionChanged(Arc::new(revisions::revision_in(*facts, settings)?))
        }
        FactBody::RevisionRemoved(name) => PlatformFact::RevisionRemoved(fields::revision(&name)?),
        FactBody::RevisionGivenBack(name) => PlatformFact::RevisionGivenBack(fields::revision(&name)?),
        FactBody::Pods(pods) => PlatformFact::PodsChanged {
            revision: fields::revision(&pods.revision)?,
            pods: pods::pods_in(pods)?,
        },
        FactBody::PodFailed(end) => PlatformFact::PodFailed {
            revision: fields::revision(&end.revision)?,
            failure: pods::failure_in(end),
        },
        FactBody::PodKilled(end) => {
            PlatformFact::PodKilled { revision: fields::revision(&end.revision)?, kill: pods::kill_in(end) }
        }
        FactBody::Activators(activators) => {
            let activators = activators.activators.iter().map(activator_in);
            PlatformFact::ActivatorsChanged(activators.collect::<Result<_, _>>()?)
        }
        FactBody::RouteFound(route) => PlatformFact::RouteFound {
            revision: fields::revision(&route.revision)?,
            route: route_in(&route)?,
        },
        FactBody::OrderEnded(end) => PlatformFact::OrderEnded {
            order: OrderId(end.order),
            outcome: outcome_in(fields::present("the outcome of an order", end.outcome)?),
        },
        FactBody::Synced(NothingMessage {}) => PlatformFact::Synced,
    })
}

fn subject_out(about: &Subject) -> SubjectBody {
    match about {
        Subject::Configuration => SubjectBody::Configuration(NothingMessage {}),
        Subject::Revision(name) => SubjectBody::Revision(name.as_str().to_owned()),
        Subject::Pod(name) => SubjectBody::Pod(name.as_str().to_owned()),
        Subject::Activator(name) => SubjectBody::Activator(name.as_str().to_owned()),
    }
}

fn subject_in(about: Option<SubjectBody>) -> Result<Subject, FrameFault> {
    Ok(match fields::present("the subject of problems", about)? {
        SubjectBody::Configuration(NothingMessage {}) => Subject::Configuration,
        SubjectBody::Revision(name) => Subject::Revision(fields::revision(&name)?),
        SubjectBody::Pod(name) => Subject::Pod(fields::pod(&name)),
        SubjectBody::Activator(name) => Subject::Activator(fields::replica(&name)),
    })
}

fn ownership_out(ownership: &Ownership) -> OwnershipMessage {
    let epochs: BTreeMap<u32, u64> =
        ownership.epochs.iter().map(|(bucket, epoch)| (bucket.0.into(), epoch.0)).collect();
    OwnershipMessage { epochs, buckets: ownership.buckets.into() }
}

fn ownership_in(ownership: &OwnershipMessage) -> Result<Ownership, FrameFault> {
    let number = |field, number: u32| {
        u16::try_from(number).map_err(|_| fields::bad(field, format!("is {number}, more than 65,535")))
    };
    let epochs = ownership.epochs.iter();
    let epochs = epochs.map(|(&bucket, &epoch)| Ok((Bucket(number("a bucket", bucket)?), Epoch(epoch))));
    Ok(Ownership {
        epochs: epochs.collect::<Result<_, FrameFault>>()?,
        buckets: number("the number of buckets", ownership.buckets)?,
    })
}

fn activator_out(activator: &ActivatorFacts, secrets: &SecretHasher) -> ActivatorMessage {
    ActivatorMessage {
        name: activator.name.as_str().to_owned(),
        link: Some(links::address_out(&activator.link, secrets)),
        life: match activator.life {
            ActivatorLife::Ready => 1,
            ActivatorLife::NotReady => 2,
            ActivatorLife::Terminating => 3,
        },
    }
}

fn activator_in(activator: &ActivatorMessage) -> Result<ActivatorFacts, FrameFault> {
    Ok(ActivatorFacts {
        name: fields::replica(&activator.name),
        link: links::address_in(fields::present("the link of an activator", activator.link.as_ref())?)?,
        life: match activator.life {
            1 => ActivatorLife::Ready,
            2 => ActivatorLife::NotReady,
            3 => ActivatorLife::Terminating,
            other => return Err(fields::unknown("the life of an activator", other)),
        },
    })
}

fn route_out(revision: &RevisionName, route: &RouteInForce) -> RouteMessage {
    RouteMessage {
        revision: revision.as_str().to_owned(),
        routing: fields::routing_out(route.routing),
        activators: route.activators.iter().map(|name| name.as_str().to_owned()).collect(),
    }
}

fn route_in(route: &RouteMessage) -> Result<RouteInForce, FrameFault> {
    Ok(RouteInForce {
        routing: fields::routing_in("the routing of a route", route.routing)?,
        activators: route.activators.iter().map(|name| fields::replica(name)).collect(),
    })
}

fn outcome_out(outcome: &OrderOutcome) -> OrderEndBody {
    match outcome {
        OrderOutcome::Done => OrderEndBody::Done(NothingMessage {}),
        OrderOutcome::Superseded => OrderEndBody::Superseded(NothingMessage {}),
        OrderOutcome::Conflict { found } => OrderEndBody::Conflict(found.value()),
        OrderOutcome::Gone => OrderEndBody::Gone(NothingMessage {}),
        OrderOutcome::NotOwner => OrderEndBody::NotOwner(NothingMessage {}),
        OrderOutcome::Refused(text) => OrderEndBody::Refused(text.clone()),
        OrderOutcome::Forbidden(text) => OrderEndBody::Forbidden(text.clone()),
        OrderOutcome::Retrying(text) => OrderEndBody::Retrying(text.clone()),
    }
}

fn outcome_in(outcome: OrderEndBody) -> OrderOutcome {
    match outcome {
        OrderEndBody::Done(NothingMessage {}) => OrderOutcome::Done,
        OrderEndBody::Superseded(NothingMessage {}) => OrderOutcome::Superseded,
        OrderEndBody::Conflict(found) => OrderOutcome::Conflict { found: PodCount::new(found) },
        OrderEndBody::Gone(NothingMessage {}) => OrderOutcome::Gone,
        OrderEndBody::NotOwner(NothingMessage {}) => OrderOutcome::NotOwner,
        OrderEndBody::Refused(text) => OrderOutcome::Refused(text),
        OrderEndBody::Forbidden(text) => OrderOutcome::Forbidden(text),
        OrderEndBody::Retrying(text) => OrderOutcome::Retrying(text),
    }
}
