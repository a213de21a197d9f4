//! How much of everything readers of pages may have.

use std::time::Duration;

/// The purpose of a request for a page, which decides which places it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Kubelet's question, or that of a load balancer.
    Probe,
    /// A page that is answered as soon as it is known.
    Ordinary,
    /// A page that lasts until its reader has enough, or until something happens: a stream, a wait.
    LongRead,
    /// A long read by the program's own side (a hook of its pod), for which no stranger can pass.
    OwnLongRead,
}

impl PageKind {
    /// The kind of a page that a program has without further ones: probes have the same paths everywhere.
    pub fn of_path(path: &str) -> Self {
        if ["/healthz", "/ready"].contains(&path) { Self::Probe } else { Self::Ordinary }
    }
}

/// The places and times that a program has for readers of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// Connections that rest or wait for an ordinary page.
    pub connections: usize,
    /// Probes that are answered at once, beside them.
    pub probes: usize,
    /// Long reads, beside ordinary connections and probes.
    pub long_reads: usize,
    /// Long reads by the program's own side, beside those of strangers.
    pub own_long_reads: usize,
    /// How large the head of a request may be.
    pub head_bytes: usize,
    /// How long the head of a request may take, from its first byte on.
    pub head_time: Duration,
    /// How long a connection may rest.
    pub idle_time: Duration,
    /// How long a connection may take nothing of what is written to it.
    pub stall_time: Duration,
}

impl PageLimits {
    /// Kubelet asks one question at a time and Prometheus two or three; people look with a browser, which
    /// keeps six connections. Heads of browsers with cookies of other servers have some kilobytes.
    pub const STANDARD: Self = Self {
        connections: 64,
        probes: 4,
        long_reads: 32,
        own_long_reads: 0,
        head_bytes: 16 * 1024,
        head_time: Duration::from_secs(5),
        idle_time: Duration::from_secs(60),
        stall_time: Duration::from_secs(30),
    };

    /// How many requests of this kind are answered at once.
    pub(super) const fn places_of(self, kind: PageKind) -> usize {
        match kind {
            PageKind::Probe => self.probes,
            PageKind::Ordinary => self.connections,
            PageKind::LongRead => self.long_reads,
            PageKind::OwnLongRead => self.own_long_reads,
        }
    }

    /// How many descriptors they take at most, not counting the one that each listener holds while it waits
    /// for a place.
    pub const fn descriptors(self) -> usize {
        self.connections + self.probes + self.long_reads + self.own_long_reads
    }
}

impl Default for PageLimits {
    fn default() -> Self {
        Self::STANDARD
    }
}
