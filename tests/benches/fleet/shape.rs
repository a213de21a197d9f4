//! How many revisions, pods and loads there are, and how they are called: what both processes must agree on.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use vocabulary::{Concurrency, Load, MilliValue, PodName, RequestRate, ResourceUsage, RevisionName};

/// The load of a busy pod wobbles around this: of 7 that are aimed at, so that as many pods are needed as
/// there are.
pub(crate) const BUSY: f64 = 6.5;

/// The size and the traffic of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) revisions: u32,
    pub(crate) pods_each: u32,
    /// Every how many revisions one has traffic.
    pub(crate) busy_each: u32,
    pub(crate) class: FleetClass,
    pub(crate) links: FleetLinks,
}

/// The channel of the links: plain TCP or TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FleetLinks {
    /// TCP, as on one machine.
    Plain,
    /// TLS 1.3 with roles, as on a cluster.
    Tls,
}

/// By which algorithm all revisions are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FleetClass {
    /// Class kpa, which counts requests.
    Kpa,
    /// By requests and by what pods use, which they then say every second.
    Hpa,
    /// Class kpa with prediction, which knows fifteen days of each revision.
    Ahpa,
}

impl FleetClass {
    /// The class that revisions name whose settings are annotations.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kpa | Self::Hpa => "kpa.autoscaling.knative.dev",
            Self::Ahpa => "ahpa.autoscaling.knative.dev",
        }
    }
}

/// Follows a shape of class hpa.
const HPA_SUFFIX: &str = ", class hpa";
/// Follows a shape of class ahpa.
const AHPA_SUFFIX: &str = ", class ahpa";
/// Follows a shape whose links are TLS.
const TLS_SUFFIX: &str = ", over TLS";

impl Shape {
    pub(crate) fn pods(self) -> u32 {
        self.revisions * self.pods_each
    }

    /// How many revisions get a full history, where histories are restored.
    pub(crate) fn full_histories(self) -> u32 {
        self.revisions / 10
    }

    pub(crate) fn revision(index: u32) -> RevisionName {
        RevisionName::new("default", "service", &format!("revision-{index:05}")).expect("a well-formed name")
    }

    pub(crate) fn pod(index: u32) -> PodName {
        PodName::new(&format!("pod-{index:05}"))
    }

    /// What the app of a pod used: 60 % of what is aimed at.
    pub(crate) fn usage(self) -> Option<ResourceUsage> {
        match self.class {
            FleetClass::Kpa | FleetClass::Ahpa => None,
            FleetClass::Hpa => Some(ResourceUsage {
                cpu: MilliValue::new(48),
                memory: MilliValue::new(20_000_000_000),
                window: Duration::from_secs(15),
            }),
        }
    }

    /// The pod's own address: 127.1.0.1 and up.
    pub(crate) fn address(pod: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 1)) + pod)
    }

    pub(crate) fn pod_at(address: Ipv4Addr) -> u32 {
        u32::from(address) - u32::from(Self::address(0))
    }

    /// What a pod measured in one of its seconds.
    pub(crate) fn load(self, pod: u32, second: u64) -> Load {
        if !(pod / self.pods_each).is_multiple_of(self.busy_each) {
            return Load::default();
        }
        let wobble = [-0.2, -0.1, 0.0, 0.1, 0.2][usize::try_from((u64::from(pod) + second) % 5).unwrap_or(0)];
        Load {
            concurrency: Concurrency::clamped(BUSY + wobble),
            request_rate: RequestRate::clamped(10.0 * (BUSY + wobble)),
            ..Load::default()
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} revisions x {} pods, 1 of {} busy{}{}",
            self.revisions,
            self.pods_each,
            self.busy_each,
            match self.class {
                FleetClass::Kpa => "",
                FleetClass::Hpa => HPA_SUFFIX,
                FleetClass::Ahpa => AHPA_SUFFIX,
            },
            match self.links {
                FleetLinks::Plain => "",
                FleetLinks::Tls => TLS_SUFFIX,
            }
        )
    }
}

impl FromStr for Shape {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let words: Vec<&str> = text.split([' ', ',']).collect();
        let number = |index: usize| words.get(index)?.parse().ok();
        let named = [(HPA_SUFFIX, FleetClass::Hpa), (AHPA_SUFFIX, FleetClass::Ahpa)];
        let class = named.into_iter().find(|(suffix, _)| text.contains(suffix));
        let class = class.map_or(FleetClass::Kpa, |(_, class)| class);
        let links = if text.ends_with(TLS_SUFFIX) { FleetLinks::Tls } else { FleetLinks::Plain };
        let shape = || {
            Some(Self { revisions: number(0)?, pods_each: number(3)?, busy_each: number(8)?, class, links })
        };
        shape().with_context(|| format!("{text:?} is no shape"))
    }
}
