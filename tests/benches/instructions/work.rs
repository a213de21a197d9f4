//! The parts that are counted, by name, and how long their two runs are.

use tests::bench::callgrind::cost::{RequestCost, RunPairs};
use tests::bench::callgrind::profile::Profile;
use tests::bench::proxies::Protocol;

use super::field::{Field, SLEEPERS};

/// How far a count may be from its committed figure.
const TOLERANCE: f64 = 0.03;
/// The same of a wake, in which polls and timers of the whole of `ebb up` have their part.
const TOLERANCE_OF_WAKES: f64 = 0.1;

/// A path, with what is sent there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestBody {
    name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) upload: usize,
}

const BODIES: [RequestBody; 3] = [
    RequestBody { name: "12B", path: "/bytes/12", upload: 0 },
    RequestBody { name: "16KB", path: "/bytes/16384", upload: 0 },
    RequestBody { name: "64KB-upload", path: "/upload", upload: 65_536 },
];

/// One load of the hop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HopCell {
    pub(crate) protocol: Protocol,
    pub(crate) connections: usize,
    pub(crate) body: RequestBody,
    /// The containerConcurrency; 0 is none.
    pub(crate) limit: u32,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Hop(HopCell),
    Activator { revisions: usize },
    Wake,
}

/// How many requests the two runs have.
#[derive(Clone, Copy, Debug)]
struct RunLengths {
    short: u32,
    long: u32,
}

impl Work {
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for protocol in [Protocol::Http1, Protocol::H2c] {
            for connections in [1, 64] {
                for body in BODIES {
                    let cell = |limit| Self::Hop(HopCell { protocol, connections, body, limit });
                    all.extend([0, 100].map(cell));
                }
            }
        }
        all.extend([1, 100].map(|revisions| Self::Activator { revisions }));
        all.push(Self::Wake);
        all
    }

    /// The name by which `--only` finds it and its figure is committed.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Hop(HopCell { protocol, connections, body, limit }) => {
                let limited = if *limit > 0 { format!(" limit {limit}") } else { String::new() };
                format!("hop {} {connections}x{}{limited}", protocol.name(), body.name)
            }
            Self::Activator { revisions } => format!("activator http1 64x12B revisions {revisions}"),
            Self::Wake => "one wake".to_owned(),
        }
    }

    /// The parts of the short form: one of each kind, those that take seconds.
    pub(crate) fn is_of_the_short_form(&self) -> bool {
        match self {
            Self::Hop(cell) => cell.connections == 64 && cell.body.name == "12B" && cell.limit == 0,
            Self::Activator { revisions } => *revisions == 1,
            Self::Wake => true,
        }
    }

    pub(crate) fn tolerance(&self) -> f64 {
        match self {
            Self::Hop(_) | Self::Activator { .. } => TOLERANCE,
            Self::Wake => TOLERANCE_OF_WAKES,
        }
    }

    /// The cost of one request, or of one wake.
    pub(crate) fn count(&self, field: &Field, rounds: usize) -> anyhow::Result<RequestCost> {
        let RunLengths { short, long } = self.lengths();
        let mut pairs = RunPairs { more: long - short, short: Vec::new(), long: Vec::new() };
        for _ in 0..rounds {
            pairs.short.push(self.run(field, short)?);
            pairs.long.push(self.run(field, long)?);
        }
        pairs.cost()
    }

    fn run(&self, field: &Field, times: u32) -> anyhow::Result<Profile> {
        let times = usize::try_from(times)?;
        match self {
            Self::Hop(cell) => field.hop(cell, times),
            Self::Activator { revisions } => field.activator(*revisions, times),
            Self::Wake => field.wakes(times),
        }
    }

    /// The short run gets past what happens once (connections to apps, room in buffers and tables); the
    /// difference is so long that a timer more or less does not count. The numbers are multiples of the
    /// connections.
    fn lengths(&self) -> RunLengths {
        match self {
            Self::Hop(cell) if cell.connections == 1 => RunLengths { short: 300, long: 2_300 },
            // Each of 64 connections has asked each revision once.
            Self::Activator { revisions: 2.. } => RunLengths { short: 6_400, long: 12_800 },
            Self::Hop(_) | Self::Activator { .. } => RunLengths { short: 640, long: 3_200 },
            // The first wakes fill caches.
            Self::Wake => RunLengths { short: 2, long: u32::try_from(SLEEPERS).unwrap_or(u32::MAX) },
        }
    }
}
