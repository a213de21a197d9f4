//! Single fields: our value to the record's and back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use vocabulary::{LateTimeout, PodName, ReplicaName, RequestTimeouts, RevisionName, Routing};

use super::facts_proto::TimeoutsMessage;
use crate::frame_fault::FrameFault;

pub(super) fn bad(field: &'static str, problem: impl Into<String>) -> FrameFault {
    FrameFault::BadValue { field, problem: problem.into() }
}

/// The fault of a number that stands for nothing, or for something that only a later program knows.
pub(super) fn unknown(field: &'static str, number: u32) -> FrameFault {
    bad(field, format!("is {number}, which this program does not know"))
}

pub(super) fn present<Value>(field: &'static str, value: Option<Value>) -> Result<Value, FrameFault> {
    value.ok_or(FrameFault::Missing { field })
}

pub(crate) fn revision(text: &str) -> Result<RevisionName, FrameFault> {
    RevisionName::parse(text).map_err(|error| bad("the name of a revision", format!("is none: {error}")))
}

pub(super) fn pod(text: &str) -> PodName {
    PodName::new(text)
}

pub(super) fn replica(text: &str) -> ReplicaName {
    ReplicaName::new(text)
}

/// 584 years and more are cut to that.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn socket(field: &'static str, text: &str) -> Result<SocketAddr, FrameFault> {
    text.parse().map_err(|_| bad(field, "is not ip:port"))
}

pub(super) fn port(field: &'static str, number: u32) -> Result<u16, FrameFault> {
    u16::try_from(number).map_err(|_| bad(field, format!("is {number}, which is no port")))
}

pub(super) fn ports_out(ports: &BTreeMap<u16, u16>) -> BTreeMap<u32, u32> {
    ports.iter().map(|(&from, &to)| (from.into(), to.into())).collect()
}

pub(super) fn ports_in(
    field: &'static str,
    ports: BTreeMap<u32, u32>,
) -> Result<BTreeMap<u16, u16>, FrameFault> {
    ports.into_iter().map(|(from, to)| Ok((port(field, from)?, port(field, to)?))).collect()
}

pub(super) fn timeouts_out(timeouts: &RequestTimeouts) -> TimeoutsMessage {
    TimeoutsMessage {
        request: timeouts.request.map(nanoseconds),
        response_start: timeouts.response_start.map(nanoseconds),
        idle: timeouts.idle.map(nanoseconds),
        appends_late: timeouts.late.appends(),
    }
}

pub(super) fn timeouts_in(timeouts: Option<TimeoutsMessage>) -> RequestTimeouts {
    let timeouts = timeouts.unwrap_or_default();
    RequestTimeouts {
        request: timeouts.request.map(Duration::from_nanos),
        response_start: timeouts.response_start.map(Duration::from_nanos),
        idle: timeouts.idle.map(Duration::from_nanos),
        late: LateTimeout::of_append(timeouts.appends_late),
    }
}

pub(super) fn routing_out(routing: Routing) -> u32 {
    match routing {
        Routing::Direct => 1,
        Routing::ThroughActivator => 2,
    }
}

pub(super) fn routing_in(field: &'static str, number: u32) -> Result<Routing, FrameFault> {
    match number {
        1 => Ok(Routing::Direct),
        2 => Ok(Routing::ThroughActivator),
        other => Err(unknown(field, other)),
    }
}
