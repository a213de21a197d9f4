//! What do Knative's activators and queue-proxies say of load, and in which bytes?
//!
//! An activator pushes frames of [`StatReport`]s over a WebSocket; a queue-proxy answers a scrape with one
//! bare stat. Both are protobuf; field numbers are Knative's (vectors N6 to N8 of its autoscaler). Only
//! reading is here: ebb's own programs speak on links.

use prost::Message;
use vocabulary::{Concurrency, KNATIVE_REVISION_KIND, Load, RequestRate, RevisionName};

use crate::wire::WireError;
use crate::wire::fields::{bad, quantity};

/// The longest frame of an activator that is read: a second of 10,000 revisions.
pub const STAT_FRAME_BYTES_MAX: usize = 1 << 20;
/// The longest answer to a scrape.
pub const SCRAPE_BYTES_MAX: usize = 336;

/// The load that one reporter, an activator or a queue-proxy, measured of one revision.
#[derive(Clone, PartialEq, Message)]
struct WireStat {
    #[prost(string, tag = "1")]
    pod_name: String,
    #[prost(double, tag = "2")]
    average_concurrent_requests: f64,
    #[prost(double, tag = "3")]
    average_proxied_concurrent_requests: f64,
    #[prost(double, tag = "4")]
    request_count: f64,
    #[prost(double, tag = "5")]
    proxied_request_count: f64,
    #[prost(double, tag = "6")]
    process_uptime: f64,
    #[prost(int64, tag = "7")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct WireStatMessage {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, optional, tag = "3")]
    stat: Option<WireStat>,
}

#[derive(Clone, PartialEq, Message)]
struct WireStatMessages {
    #[prost(message, repeated, tag = "1")]
    messages: Vec<WireStatMessage>,
}

/// The load of one revision at one of Knative's activators, over the last second or of this instant.
#[derive(Clone, Debug, PartialEq)]
pub struct StatReport {
    /// The name of the revision, `namespace/revision/name`.
    pub revision: RevisionName,
    /// The pod of the activator.
    pub reporter: String,
    /// What the activator holds. Nothing of it is a part that came through another activator.
    pub load: Load,
}

/// The answer of a Knative queue-proxy to a scrape.
#[derive(Clone, Debug, PartialEq)]
pub struct ScrapedLoad {
    /// The pod of the queue-proxy.
    pub reporter: String,
    /// What the pod holds, and the part of it that came through activators.
    pub load: Load,
    /// Seconds since the queue-proxy started: a smaller number than before tells a restart.
    pub process_uptime: f64,
}

/// Reads one frame of an activator. Entries without a stat are skipped. The time that a stat names is not
/// read: it would be of a clock other than ours.
pub fn read_stat_frame(frame: &[u8]) -> Result<Vec<StatReport>, WireError> {
    if frame.len() > STAT_FRAME_BYTES_MAX {
        return Err(too_long("messages", frame.len(), STAT_FRAME_BYTES_MAX));
    }
    let entries = decode::<WireStatMessages>(frame)?.messages.into_iter();
    let reports = entries.filter_map(|entry| Some(report_of(&entry.namespace, &entry.name, entry.stat?)));
    reports.collect()
}

fn report_of(namespace: &str, name: &str, stat: WireStat) -> Result<StatReport, WireError> {
    let revision = RevisionName::new(namespace, KNATIVE_REVISION_KIND, name);
    let revision = revision.map_err(|error| bad("name", error.to_string()))?;
    let load = load_of(&stat)?;
    Ok(StatReport { revision, reporter: stat.pod_name, load })
}

/// Reads the answer to a scrape.
pub fn read_scrape(answer: &[u8]) -> Result<ScrapedLoad, WireError> {
    if answer.len() > SCRAPE_BYTES_MAX {
        return Err(too_long("stat", answer.len(), SCRAPE_BYTES_MAX));
    }
    let stat: WireStat = decode(answer)?;
    let load = load_of(&stat)?;
    if !stat.process_uptime.is_finite() || stat.process_uptime < 0.0 {
        return Err(bad("process_uptime", format!("is {}, which is no time", stat.process_uptime)));
    }
    Ok(ScrapedLoad { reporter: stat.pod_name, load, process_uptime: stat.process_uptime })
}

fn load_of(stat: &WireStat) -> Result<Load, WireError> {
    let (held, proxied) = (stat.average_concurrent_requests, stat.average_proxied_concurrent_requests);
    Ok(Load {
        concurrency: quantity("average_concurrent_requests", held, Concurrency::new)?,
        proxied_concurrency: quantity("average_proxied_concurrent_requests", proxied, Concurrency::new)?,
        request_rate: quantity("request_count", stat.request_count, RequestRate::new)?,
        proxied_request_rate: quantity(
            "proxied_request_count",
            stat.proxied_request_count,
            RequestRate::new,
        )?,
        queued: 0,
    })
}

fn decode<Stats: Message + Default>(bytes: &[u8]) -> Result<Stats, WireError> {
    Stats::decode(bytes).map_err(|error| WireError::Malformed(error.to_string()))
}

fn too_long(field: &'static str, bytes: usize, most: usize) -> WireError {
    bad(field, format!("takes {bytes} bytes, which is more than {most}"))
}

#[cfg(test)]
mod tests;
