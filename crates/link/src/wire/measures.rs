//! What reporters measure: our values to the wire's and back, checked.

use std::net::IpAddr;
use std::time::Duration;

use vocabulary::{
    AdoptedConnections, Concurrency, ConnectionTally, LateBytes, Load, MilliValue, PeerList, PresentCount,
    RequestRate, ResourceUsage,
};

use super::fields::{bad, nanoseconds, quantity};
use super::{WireError, proto};

/// All zero is said by absence, which makes a heartbeat a handful of bytes.
pub(super) fn load_out(load: &Load) -> Option<proto::Load> {
    (!load.is_zero()).then(|| proto::Load {
        concurrency: load.concurrency.value(),
        proxied_concurrency: load.proxied_concurrency.value(),
        request_rate: load.request_rate.value(),
        proxied_request_rate: load.proxied_request_rate.value(),
        queued: load.queued,
    })
}

pub(super) fn load(load: Option<proto::Load>) -> Result<Load, WireError> {
    let load = load.unwrap_or_default();
    Ok(Load {
        concurrency: quantity("load.concurrency", load.concurrency, Concurrency::new)?,
        proxied_concurrency: quantity(
            "load.proxied_concurrency",
            load.proxied_concurrency,
            Concurrency::new,
        )?,
        request_rate: quantity("load.request_rate", load.request_rate, RequestRate::new)?,
        proxied_request_rate: quantity(
            "load.proxied_request_rate",
            load.proxied_request_rate,
            RequestRate::new,
        )?,
        queued: load.queued,
    })
}

pub(super) fn usage_out(usage: ResourceUsage) -> proto::ResourceUsage {
    let positive = |value: MilliValue| u64::try_from(value.value()).unwrap_or_default();
    proto::ResourceUsage {
        cpu: positive(usage.cpu),
        memory: positive(usage.memory) / 1000,
        window: nanoseconds(usage.window),
    }
}

/// Reads a usage. Values above the largest `MilliValue` become the largest.
pub(super) fn usage(usage: proto::ResourceUsage) -> ResourceUsage {
    ResourceUsage {
        cpu: MilliValue::saturated_from(usage.cpu.into()),
        memory: MilliValue::saturated_from(i128::from(usage.memory) * 1000),
        window: Duration::from_nanos(usage.window),
    }
}

pub(super) fn late_bytes_out(late: LateBytes) -> proto::LateBytes {
    proto::LateBytes { connections: late.connections, reuse_in: nanoseconds(late.reuse_in) }
}

pub(super) fn late_bytes(late: proto::LateBytes) -> LateBytes {
    LateBytes { connections: late.connections, reuse_in: Duration::from_nanos(late.reuse_in) }
}

pub(super) fn adopted_connections_out(connections: &AdoptedConnections) -> proto::AdoptedConnections {
    match connections {
        AdoptedConnections::Open(ConnectionTally { count, age, peers }) => proto::AdoptedConnections {
            count: *count,
            age: nanoseconds(*age),
            peers: peers.iter().map(|peer| peer.to_string()).collect(),
            unreadable: false,
        },
        AdoptedConnections::Unreadable { age } => proto::AdoptedConnections {
            age: nanoseconds(*age),
            unreadable: true,
            ..proto::AdoptedConnections::default()
        },
    }
}

/// More addresses than a list has are as many as it has.
pub(super) fn adopted_connections(
    field: &'static str,
    connections: &proto::AdoptedConnections,
) -> Result<AdoptedConnections, WireError> {
    let age = Duration::from_nanos(connections.age);
    if connections.unreadable {
        return Ok(AdoptedConnections::Unreadable { age });
    }
    let address =
        |text: &String| text.parse::<IpAddr>().map_err(|_| bad(field, "holds a text that is no IP address"));
    let peers = connections.peers.iter().map(address).collect::<Result<Vec<_>, WireError>>()?;
    Ok(AdoptedConnections::Open(ConnectionTally {
        count: connections.count,
        age,
        peers: PeerList::of(peers),
    }))
}

pub(super) fn count_out(count: PresentCount) -> proto::Present {
    proto::Present { in_flight: count.in_flight, waiting: count.waiting }
}

pub(super) fn count(count: proto::Present) -> PresentCount {
    PresentCount { in_flight: count.in_flight, waiting: count.waiting }
}
