//! Single fields: our value to the wire's and back, checked.

use std::collections::BTreeSet;
use std::time::Duration;

use vocabulary::{
    BootId, Bucket, Epoch, HeadSizeLimit, HopKey, IgnoredUserAgents, LateTimeout, LinkVersion, Ownership,
    PodName, PodState, QuantityError, ReplicaName, RequestTimeouts, RevisionName, Routing, Slice, Standing,
    Version,
};

use super::{DETAIL_BYTES_MAX, WireError, proto};

/// No name that Kubernetes or a manifest allows is longer (three parts of at most 253 and two slashes).
const NAME_BYTES_MAX: usize = 761;
/// Long enough for any key we make, short enough for a header.
const HOP_KEY_BYTES_MAX: usize = 256;
/// More requests at once, or in a second, than any one proxy can see; a greater number is a lie or a bug.
const QUANTITY_MAX: f64 = 1e9;

/// A reporter that has run for 35,000 years. Receivers add to second numbers, so they must be far from the
/// end of 64 bits.
const SECOND_MAX: u64 = 1 << 40;

pub(crate) fn bad(field: &'static str, problem: impl Into<String>) -> WireError {
    WireError::BadValue { field, problem: problem.into() }
}

pub(super) fn present<Value>(field: &'static str, value: Option<Value>) -> Result<Value, WireError> {
    value.ok_or(WireError::Missing { field })
}

pub(crate) fn quantity<Quantity>(
    field: &'static str,
    value: f64,
    new: fn(f64) -> Result<Quantity, QuantityError>,
) -> Result<Quantity, WireError> {
    // Finite and yet too large would pass the constructor, and one pod's nonsense would be summed up with the
    // truth of all others.
    if value > QUANTITY_MAX {
        return Err(bad(field, format!("is {value}, more than {QUANTITY_MAX}")));
    }
    new(value).map_err(|error| bad(field, format!("is not a quantity: {error}")))
}

fn name(field: &'static str, text: String) -> Result<String, WireError> {
    if text.is_empty() {
        return Err(WireError::Missing { field });
    }
    // Names end in logs, metrics and messages for people, where a line break would write lines of its own.
    if text.len() > NAME_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(bad(field, "is not a name"));
    }
    Ok(text)
}

pub(super) fn pod(field: &'static str, text: String) -> Result<PodName, WireError> {
    name(field, text).map(PodName::from)
}

pub(super) fn replica(field: &'static str, text: String) -> Result<ReplicaName, WireError> {
    name(field, text).map(ReplicaName::from)
}

pub(super) fn revision(field: &'static str, text: String) -> Result<RevisionName, WireError> {
    RevisionName::parse(&name(field, text)?).map_err(|error| bad(field, error.to_string()))
}

/// The number of a reporter's second.
pub(super) fn second(field: &'static str, number: u64) -> Result<u64, WireError> {
    if number > SECOND_MAX {
        return Err(bad(field, format!("is {number}, more than {SECOND_MAX}")));
    }
    Ok(number)
}

pub(super) fn boot(id: u64) -> BootId {
    BootId(id)
}

/// The longest prefix for people that fits, cut between characters.
pub(super) fn cut_detail(text: &str) -> String {
    text[..text.floor_char_boundary(DETAIL_BYTES_MAX)].to_owned()
}

pub(super) fn detail(field: &'static str, text: String) -> Result<String, WireError> {
    if text.len() > DETAIL_BYTES_MAX {
        return Err(bad(field, format!("has {} bytes, more than {DETAIL_BYTES_MAX}", text.len())));
    }
    Ok(text)
}

pub(super) fn state_number(state: PodState) -> u32 {
    match state {
        PodState::Unheard => 1,
        PodState::Starting => 2,
        PodState::Ready => 3,
        PodState::Unready => 4,
        PodState::Draining => 5,
    }
}

pub(super) fn state(field: &'static str, number: u32) -> Result<PodState, WireError> {
    Ok(match number {
        1 => PodState::Unheard,
        2 => PodState::Starting,
        3 => PodState::Ready,
        4 => PodState::Unready,
        5 => PodState::Draining,
        unknown => return Err(bad(field, format!("is {unknown}, which is no pod state"))),
    })
}

pub(super) fn slice_number(slice: Slice) -> u32 {
    match slice {
        Slice::Undivided => 0,
        Slice::Inside => 1,
        Slice::Outside => 2,
    }
}

pub(super) fn slice(field: &'static str, number: u32) -> Result<Slice, WireError> {
    Ok(match number {
        0 => Slice::Undivided,
        1 => Slice::Inside,
        2 => Slice::Outside,
        unknown => return Err(bad(field, format!("is {unknown}, which is no slice"))),
    })
}

pub(super) fn routing_number(routing: Routing) -> u32 {
    match routing {
        Routing::Direct => 1,
        Routing::ThroughActivator => 2,
    }
}

pub(super) fn routing(field: &'static str, number: u32) -> Result<Routing, WireError> {
    Ok(match number {
        1 => Routing::Direct,
        2 => Routing::ThroughActivator,
        unknown => return Err(bad(field, format!("is {unknown}, which is no routing"))),
    })
}

pub(super) fn hop_keys_out(keys: &[HopKey]) -> Vec<String> {
    keys.iter().map(|key| key.expose().to_owned()).collect()
}

pub(super) fn hop_keys(field: &'static str, keys: Vec<String>) -> Result<Vec<HopKey>, WireError> {
    // It becomes the value of a header, at a place where a value that is none could not be refused any more.
    let is_key = |key: &String| {
        (1..=HOP_KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if !keys.iter().all(is_key) {
        // The value is a secret, even a bad one.
        return Err(bad(field, "holds a key that is not 1 … 256 visible ASCII characters"));
    }
    Ok(keys.into_iter().map(HopKey::new).collect())
}

/// 584 years and more are cut to that.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn timeouts_out(timeouts: &RequestTimeouts) -> proto::Timeouts {
    proto::Timeouts {
        request: timeouts.request.map(nanoseconds),
        response_start: timeouts.response_start.map(nanoseconds),
        idle: timeouts.idle.map(nanoseconds),
        appends_late: timeouts.late.appends(),
    }
}

/// Absent as a whole: no limits.
pub(super) fn timeouts(timeouts: Option<proto::Timeouts>) -> RequestTimeouts {
    let timeouts = timeouts.unwrap_or_default();
    RequestTimeouts {
        request: timeouts.request.map(Duration::from_nanos),
        response_start: timeouts.response_start.map(Duration::from_nanos),
        idle: timeouts.idle.map(Duration::from_nanos),
        late: LateTimeout::of_append(timeouts.appends_late),
    }
}

pub(super) fn version_out(version: Version) -> proto::Version {
    proto::Version { epoch: version.epoch.0, counter: version.counter }
}

pub(super) fn version(field: &'static str, version: Option<proto::Version>) -> Result<Version, WireError> {
    present(field, version).map(version_in)
}

pub(super) fn version_in(version: proto::Version) -> Version {
    Version { epoch: Epoch(version.epoch), counter: version.counter }
}

/// Absent: from before there were numbers.
pub(super) fn speaks(number: u32) -> LinkVersion {
    LinkVersion(number).max(LinkVersion::FIRST)
}

pub(super) fn standing(is_retired: bool) -> Standing {
    if is_retired { Standing::Retired } else { Standing::Assigned }
}

/// The limit of heads in a message without that field.
const HEAD_SIZE_UNSAID: HeadSizeLimit = HeadSizeLimit::DEFAULT;

pub(super) fn head_size_out(limit: HeadSizeLimit) -> Option<u32> {
    (limit != HEAD_SIZE_UNSAID).then(|| limit.bytes())
}

pub(super) fn head_size(field: &'static str, bytes: Option<u32>) -> Result<HeadSizeLimit, WireError> {
    let Some(bytes) = bytes else { return Ok(HEAD_SIZE_UNSAID) };
    HeadSizeLimit::try_from(bytes).map_err(|error| bad(field, error))
}

pub(super) fn user_agents_out(agents: &IgnoredUserAgents) -> proto::UserAgents {
    proto::UserAgents { prefixes: agents.prefixes().map(str::to_owned).collect() }
}

/// Absent as a whole: an owner from before they could be said, under which the default is in force.
pub(super) fn user_agents(
    field: &'static str,
    agents: Option<proto::UserAgents>,
) -> Result<IgnoredUserAgents, WireError> {
    let Some(agents) = agents else { return Ok(IgnoredUserAgents::default()) };
    IgnoredUserAgents::new(agents.prefixes).map_err(|error| bad(field, error.to_string()))
}

/// A port number; 0 and numbers above 65,535 are refused.
pub(super) fn port(field: &'static str, number: u32) -> Result<u16, WireError> {
    let port = u16::try_from(number).ok().filter(|port| *port > 0);
    port.ok_or_else(|| bad(field, format!("is {number}, which is no port")))
}

pub(super) fn ports(field: &'static str, numbers: Vec<u32>) -> Result<BTreeSet<u16>, WireError> {
    numbers.into_iter().map(|number| port(field, number)).collect()
}

pub(super) fn bucket(field: &'static str, number: u32) -> Result<Bucket, WireError> {
    let number = u16::try_from(number).map_err(|_| bad(field, format!("is {number}, which is no bucket")))?;
    Ok(Bucket(number))
}

/// Absent as a whole: an owner from before there were buckets, whose one bucket is everything.
pub(super) fn ownership(sync: &proto::SyncBegin) -> Result<Ownership, WireError> {
    if sync.buckets == 0 {
        return Ok(Ownership::of_everything(Epoch::default()));
    }
    let buckets = u16::try_from(sync.buckets)
        .map_err(|_| bad("sync_begin.buckets", format!("is {}, more than {}", sync.buckets, u16::MAX)))?;
    let epochs = sync.owned.iter().map(|owned| {
        let bucket = bucket("sync_begin.owned.bucket", owned.bucket)?;
        if bucket.0 >= buckets {
            return Err(bad("sync_begin.owned.bucket", format!("is {}, of {buckets}", bucket.0)));
        }
        Ok((bucket, Epoch(owned.epoch)))
    });
    Ok(Ownership { epochs: epochs.collect::<Result<_, WireError>>()?, buckets })
}

/// An owner from before owners had names.
pub(super) fn owner(field: &'static str, text: String) -> Result<ReplicaName, WireError> {
    if text.is_empty() { Ok(ReplicaName::new("autoscaler")) } else { replica(field, text) }
}
