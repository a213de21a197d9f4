//! An activator's messages, to the wire and back.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{
    ActivatorHello, ActivatorWord, Assignment, Ownership, PodAssignment, PodExits, ReplicaName, RevisionName,
    Standing, Version, WaitingPage,
};

use super::loads::{loads, second_out};
use super::{WireError, fields, measures, proto};
use crate::ActivatorOrder;
use crate::history::History;

impl From<&ActivatorWord> for proto::ActivatorReport {
    fn from(report: &ActivatorWord) -> Self {
        let body = match report {
            ActivatorWord::Hello(hello) => proto::ActivatorReportBody::Hello(hello.into()),
            ActivatorWord::Loads { second, loads } => {
                proto::ActivatorReportBody::Loads(second_out(*second, loads))
            }
            ActivatorWord::Present { revision, count, oldest_wait } => {
                proto::ActivatorReportBody::Present(proto::RevisionPresent {
                    revision: revision.as_str().to_owned(),
                    count: Some(measures::count_out(*count)),
                    oldest_wait: fields::nanoseconds(*oldest_wait),
                })
            }
            ActivatorWord::Acknowledged { revision, version } => {
                proto::ActivatorReportBody::Acknowledged(versioned(revision, *version))
            }
            ActivatorWord::Emptied { revision } => {
                proto::ActivatorReportBody::Emptied(revision.as_str().to_owned())
            }
            ActivatorWord::Draining => proto::ActivatorReportBody::Draining(proto::EmptyMessage {}),
        };
        Self { body: Some(body) }
    }
}

impl TryFrom<proto::ActivatorReport> for ActivatorWord {
    type Error = WireError;
    fn try_from(report: proto::ActivatorReport) -> Result<Self, WireError> {
        Ok(match fields::present("activator_report.body", report.body)? {
            proto::ActivatorReportBody::Hello(hello) => Self::Hello(hello.try_into()?),
            proto::ActivatorReportBody::Loads(second) => Self::Loads {
                second: fields::second("loads.second", second.second)?,
                loads: loads(second.loads)?,
            },
            proto::ActivatorReportBody::Present(present) => Self::Present {
                revision: fields::revision("present.revision", present.revision)?,
                count: measures::count(fields::present("present.count", present.count)?),
                oldest_wait: Duration::from_nanos(present.oldest_wait),
            },
            proto::ActivatorReportBody::Acknowledged(acknowledged) => Self::Acknowledged {
                revision: fields::revision("acknowledged.revision", acknowledged.revision)?,
                version: fields::version("acknowledged.version", acknowledged.version)?,
            },
            proto::ActivatorReportBody::Emptied(revision) => {
                Self::Emptied { revision: fields::revision("emptied", revision)? }
            }
            proto::ActivatorReportBody::Draining(proto::EmptyMessage {}) => Self::Draining,
        })
    }
}

impl From<&ActivatorHello> for proto::ActivatorHello {
    fn from(hello: &ActivatorHello) -> Self {
        Self {
            activator: hello.activator.as_str().to_owned(),
            boot: hello.boot.0,
            current_second: hello.current_second,
            history: hello.history.iter().map(|(second, loads)| second_out(*second, loads)).collect(),
            present: (hello.present.iter())
                .map(|(revision, count)| proto::RevisionPresent {
                    revision: revision.as_str().to_owned(),
                    count: Some(measures::count_out(*count)),
                    oldest_wait: 0,
                })
                .collect(),
            routings: (hello.routings.iter())
                .map(|(revision, routing)| proto::RevisionRouting {
                    revision: revision.as_str().to_owned(),
                    routing: fields::routing_number(*routing),
                })
                .collect(),
            speaks: hello.speaks.0,
        }
    }
}

impl TryFrom<proto::ActivatorHello> for ActivatorHello {
    type Error = WireError;
    fn try_from(hello: proto::ActivatorHello) -> Result<Self, WireError> {
        let seconds = hello.history.len();
        if seconds > History::<()>::SECONDS_MAX {
            return Err(fields::bad("hello.history", format!("has {seconds} seconds, more than 60")));
        }
        // A second that has not passed cannot have been measured, and would stand in the windows until its
        // time has come.
        if hello.history.iter().any(|second| second.second > hello.current_second) {
            return Err(fields::bad("hello.history", "has seconds after the current one"));
        }
        let history = hello.history.into_iter().map(|second| Ok((second.second, loads(second.loads)?)));
        let present = hello.present.into_iter().map(|present| {
            let count = fields::present("hello.present.count", present.count)?;
            Ok((fields::revision("hello.present.revision", present.revision)?, measures::count(count)))
        });
        let routings = hello.routings.into_iter().map(|known| {
            let routing = fields::routing("hello.routings.routing", known.routing)?;
            Ok((fields::revision("hello.routings.revision", known.revision)?, routing))
        });
        Ok(Self {
            speaks: fields::speaks(hello.speaks),
            activator: fields::replica("hello.activator", hello.activator)?,
            boot: fields::boot(hello.boot),
            current_second: fields::second("hello.current_second", hello.current_second)?,
            history: history.collect::<Result<_, WireError>>()?,
            present: present.collect::<Result<_, WireError>>()?,
            routings: routings.collect::<Result<_, WireError>>()?,
        })
    }
}

impl From<&ActivatorOrder> for proto::ActivatorOrder {
    fn from(order: &ActivatorOrder) -> Self {
        let body = match order {
            ActivatorOrder::SyncBegin { owner, ownership } => {
                proto::ActivatorOrderBody::SyncBegin(sync_begin(owner, ownership))
            }
            ActivatorOrder::Assign(assignment) => {
                proto::ActivatorOrderBody::Assign(Box::new(assignment.as_ref().into()))
            }
            ActivatorOrder::Remove { revision, version } => {
                proto::ActivatorOrderBody::Remove(versioned(revision, *version))
            }
            ActivatorOrder::Forget { revision, version } => {
                proto::ActivatorOrderBody::Forget(versioned(revision, *version))
            }
            ActivatorOrder::Released { buckets } => {
                let buckets = buckets.iter().map(|bucket| u32::from(bucket.0)).collect();
                proto::ActivatorOrderBody::Released(proto::Buckets { buckets })
            }
            ActivatorOrder::SyncEnd => proto::ActivatorOrderBody::SyncEnd(proto::EmptyMessage {}),
            ActivatorOrder::Heartbeat => proto::ActivatorOrderBody::Heartbeat(proto::EmptyMessage {}),
        };
        Self { body: Some(body) }
    }
}

impl TryFrom<proto::ActivatorOrder> for ActivatorOrder {
    type Error = WireError;
    fn try_from(order: proto::ActivatorOrder) -> Result<Self, WireError> {
        Ok(match fields::present("activator_order.body", order.body)? {
            proto::ActivatorOrderBody::SyncBegin(sync) => Self::SyncBegin {
                ownership: fields::ownership(&sync)?,
                owner: fields::owner("sync_begin.owner", sync.owner)?,
            },
            proto::ActivatorOrderBody::Assign(assignment) => {
                Self::Assign(Box::new((*assignment).try_into()?))
            }
            proto::ActivatorOrderBody::Remove(removed) => Self::Remove {
                revision: fields::revision("remove.revision", removed.revision)?,
                version: fields::version("remove.version", removed.version)?,
            },
            proto::ActivatorOrderBody::Forget(forgotten) => Self::Forget {
                revision: fields::revision("forget.revision", forgotten.revision)?,
                version: fields::version("forget.version", forgotten.version)?,
            },
            proto::ActivatorOrderBody::Released(released) => {
                let buckets =
                    released.buckets.into_iter().map(|number| fields::bucket("released.buckets", number));
                Self::Released { buckets: buckets.collect::<Result<_, WireError>>()? }
            }
            proto::ActivatorOrderBody::SyncEnd(proto::EmptyMessage {}) => Self::SyncEnd,
            proto::ActivatorOrderBody::Heartbeat(proto::EmptyMessage {}) => Self::Heartbeat,
        })
    }
}

fn versioned(revision: &RevisionName, version: Version) -> proto::RevisionVersion {
    proto::RevisionVersion {
        revision: revision.as_str().to_owned(),
        version: Some(fields::version_out(version)),
    }
}

fn sync_begin(owner: &ReplicaName, ownership: &Ownership) -> proto::SyncBegin {
    let epochs = ownership
        .epochs
        .iter()
        .map(|(bucket, epoch)| proto::OwnedBucket { bucket: u32::from(bucket.0), epoch: epoch.0 });
    proto::SyncBegin {
        owner: owner.as_str().to_owned(),
        owned: epochs.collect(),
        buckets: u32::from(ownership.buckets.max(1)),
    }
}

impl From<&Assignment> for proto::Assignment {
    fn from(assignment: &Assignment) -> Self {
        Self {
            revision: assignment.revision.as_str().to_owned(),
            version: Some(fields::version_out(assignment.version)),
            hosts: assignment.hosts.clone(),
            ports: assignment.ports.iter().copied().map(u32::from).collect(),
            routing: fields::routing_number(assignment.routing),
            container_concurrency: assignment.container_concurrency,
            timeouts: Some(fields::timeouts_out(&assignment.timeouts)),
            pods: (assignment.pods.iter())
                .map(|pod| proto::PodAssignment {
                    pod: pod.pod.as_str().to_owned(),
                    address: pod.address.to_string(),
                    state: fields::state_number(pod.state),
                    slots: pod.slots,
                    slice: fields::slice_number(pod.slice),
                    exits: pod.exits.0.iter().map(|(&from, &to)| (from.into(), to.into())).collect(),
                    is_plain: pod.is_plain,
                })
                .collect(),
            hop_keys: fields::hop_keys_out(&assignment.hop_keys),
            waiting_for: fields::cut_detail(&assignment.waiting_for),
            retired: assignment.standing == Standing::Retired,
            hold: assignment.hold.as_deref().map(fields::cut_detail),
            ignored_user_agents: Some(fields::user_agents_out(&assignment.ignored_user_agents)),
            head_size_limit: fields::head_size_out(assignment.head_size_limit),
            waiting_page: match &assignment.waiting_page {
                WaitingPage::Off => None,
                WaitingPage::Auto => Some(String::new()),
                WaitingPage::Text(text) => Some(text.to_string()),
            },
        }
    }
}

impl TryFrom<proto::Assignment> for Assignment {
    type Error = WireError;
    fn try_from(assignment: proto::Assignment) -> Result<Self, WireError> {
        let pods = assignment.pods.into_iter().map(|pod| {
            let address = pod.address.parse();
            Ok(PodAssignment {
                pod: fields::pod("assign.pods.pod", pod.pod)?,
                address: address.map_err(|_| fields::bad("assign.pods.address", "is not ip:port"))?,
                state: fields::state("assign.pods.state", pod.state)?,
                slots: pod.slots,
                slice: fields::slice("assign.pods.slice", pod.slice)?,
                exits: exits(pod.exits)?,
                is_plain: pod.is_plain,
            })
        });
        Ok(Self {
            revision: fields::revision("assign.revision", assignment.revision)?,
            version: fields::version("assign.version", assignment.version)?,
            hosts: assignment.hosts,
            ports: fields::ports("assign.ports", assignment.ports)?,
            routing: fields::routing("assign.routing", assignment.routing)?,
            container_concurrency: assignment.container_concurrency,
            timeouts: fields::timeouts(assignment.timeouts),
            pods: pods.collect::<Result<_, WireError>>()?,
            hop_keys: fields::hop_keys("assign.hop_keys", assignment.hop_keys)?,
            waiting_for: fields::detail("assign.waiting_for", assignment.waiting_for)?,
            standing: fields::standing(assignment.retired),
            hold: assignment.hold.map(|text| fields::detail("assign.hold", text)).transpose()?,
            ignored_user_agents: fields::user_agents(
                "assign.ignored_user_agents",
                assignment.ignored_user_agents,
            )?,
            head_size_limit: fields::head_size("assign.head_size_limit", assignment.head_size_limit)?,
            waiting_page: waiting_page(assignment.waiting_page)?,
        })
    }
}

fn waiting_page(page: Option<String>) -> Result<WaitingPage, WireError> {
    Ok(match page {
        None => WaitingPage::Off,
        Some(text) if text.is_empty() => WaitingPage::Auto,
        Some(text) if text.len() <= WaitingPage::BYTES_MAX => WaitingPage::Text(text.into()),
        Some(_) => return Err(fields::bad("assign.waiting_page", "is longer than a page may be")),
    })
}

fn exits(exits: BTreeMap<u32, u32>) -> Result<PodExits, WireError> {
    let port = |number| fields::port("assign.pods.exits", number);
    let exits = exits.into_iter().map(|(from, to)| Ok((port(from)?, port(to)?)));
    Ok(PodExits(exits.collect::<Result<_, WireError>>()?))
}
