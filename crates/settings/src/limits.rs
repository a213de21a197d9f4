//! The allowed values of each setting. One limit serves the annotation and the ConfigMap's key of the same
//! meaning; Knative checks some of them in one place only (a panic threshold of 0 in its ConfigMap means
//! panic for ever).

use std::ops::RangeInclusive;
use std::time::Duration;

use vocabulary::{HeadSizeLimit, MilliValue};

/// A range, in words for people and as a test.
pub(super) struct Limit<Value> {
    /// Follows "write", as in "write a whole number from 0 to 10".
    pub(super) words: &'static str,
    pub(super) allows: fn(&Value) -> bool,
}

/// The largest replica count that Kubernetes can say.
const COUNT_MAX: i64 = i32::MAX as i64;
const HOUR: Duration = Duration::from_hours(1);
/// The ranges of [`WINDOW`], [`SYNC_PERIOD`] and [`UP_TO_AN_HOUR`].
pub(super) const WINDOW_RANGE: RangeInclusive<Duration> = Duration::from_secs(6)..=HOUR;
pub(super) const SYNC_PERIOD_RANGE: RangeInclusive<Duration> = Duration::from_secs(1)..=HOUR;
pub(super) const HOUR_RANGE: RangeInclusive<Duration> = Duration::ZERO..=HOUR;

fn thousandths(limit: HeadSizeLimit) -> i64 {
    i64::from(limit.bytes()) * 1000
}

fn is_whole(duration: Duration) -> bool {
    duration.subsec_nanos() == 0
}

pub(super) const COUNT: Limit<i64> =
    Limit { words: "a whole number from 0 to 2147483647", allows: |count| (0..=COUNT_MAX).contains(count) };
pub(super) const COUNT_OR_NO_LIMIT: Limit<i64> = Limit {
    words: "a whole number from 0 to 2147483647, where 0 means no limit",
    allows: |count| (0..=COUNT_MAX).contains(count),
};
/// The most that Knative takes, too.
pub(super) const CONTAINER_CONCURRENCY: Limit<i64> = Limit {
    words: "a whole number from 0 to 1000, where 0 means no limit",
    allows: |count| (0..=1000).contains(count),
};
pub(super) const COUNT_FROM_ONE: Limit<i64> = Limit {
    words: "a whole number from 1 to 2147483647 (0 needs allow-zero-initial-scale: \"true\" in ConfigMap config-autoscaler)",
    allows: |count| (1..=COUNT_MAX).contains(count),
};
pub(super) const COUNT_FROM_TWO: Limit<i64> = Limit {
    words: "a whole number from 2 to 2147483647, or remove it: without it there is no activation scale",
    allows: |count| (2..=COUNT_MAX).contains(count),
};
/// Below 0.01 a load of one request would ask for more than a hundred pods.
pub(super) const TARGET: Limit<f64> =
    Limit { words: "a number of at least 0.01", allows: |target| *target >= 0.01 };
pub(super) const PERCENTAGE: Limit<f64> =
    Limit { words: "a percentage from 1 to 100", allows: |percentage| (1.0..=100.0).contains(percentage) };
pub(super) const PERCENTAGE_OR_FRACTION: Limit<f64> = Limit {
    words: "a percentage above 1 up to 100, or a fraction above 0 up to 1 (1 means 100 %)",
    allows: |percentage| *percentage > 0.0 && *percentage <= 100.0,
};
pub(super) const PANIC_THRESHOLD: Limit<f64> = Limit {
    words: "a percentage from 110 to 1000",
    allows: |percentage| (110.0..=1000.0).contains(percentage),
};
pub(super) const BURST_CAPACITY: Limit<f64> = Limit {
    words: "-1 (the activator always stays in the path) or a number of at least 0",
    allows: |room| *room >= 0.0 || room.total_cmp(&-1.0).is_eq(),
};
pub(super) const RATE: Limit<f64> = Limit { words: "a number above 1", allows: |rate| *rate > 1.0 };
pub(super) const ACTIVATOR_CAPACITY: Limit<f64> =
    Limit { words: "a number of at least 1", allows: |capacity| *capacity >= 1.0 };

/// A window shorter than 6 s holds too few seconds to average; one longer than an hour never forgets.
pub(super) const WINDOW: Limit<Duration> = Limit {
    words: "a duration from 6s to 1h, in whole seconds",
    allows: |window| WINDOW_RANGE.contains(window) && is_whole(*window),
};
/// Kubernetes' autoscaler looks every 15 s; oftener than once a second nothing new is known.
pub(super) const SYNC_PERIOD: Limit<Duration> =
    Limit { words: "a duration from 1s to 1h", allows: |period| SYNC_PERIOD_RANGE.contains(period) };
pub(super) const TOLERANCE: Limit<f64> =
    Limit { words: "a number of at least 0", allows: |tolerance| *tolerance >= 0.0 };
pub(super) const DELAY: Limit<Duration> = Limit {
    words: "a duration from 0s to 1h, in whole seconds",
    allows: |delay| *delay <= HOUR && is_whole(*delay),
};
pub(super) const UP_TO_AN_HOUR: Limit<Duration> =
    Limit { words: "a duration from 0s to 1h", allows: |duration| HOUR_RANGE.contains(duration) };
/// A day, as for request timeouts.
pub(super) const DRAIN_LIMIT_MAX: Duration = Duration::from_hours(24);
/// Whole seconds, because Kubernetes counts a pod's last time in those.
pub(super) const DRAIN_LIMIT: Limit<Duration> = Limit {
    words: "a duration from 0s to 24h, in whole seconds",
    allows: |limit| *limit <= DRAIN_LIMIT_MAX && is_whole(*limit),
};
/// A week: a client that keeps its connection for longer does not reconnect by itself.
pub(super) const ADOPTED_CONNECTIONS_HOLD: Limit<Duration> =
    Limit { words: "a duration from 0s to 168h", allows: |hold| *hold <= Duration::from_hours(7 * 24) };
/// A pod that is kept for a day costs more than any cold start is worth.
pub(super) const COLD_START_WORTH: Limit<Duration> =
    Limit { words: "a duration from 0s to 24h", allows: |worth| *worth <= Duration::from_hours(24) };
/// Tests on real processes let a minute of prediction last a second; no other length is of use.
pub(super) const PREDICTION_BIN: Limit<Duration> = Limit {
    words: "60s or, for tests, 1s",
    allows: |bin| *bin == Duration::from_secs(60) || *bin == Duration::from_secs(1),
};
/// An hour: pods that take longer to start are asked for by a schedule.
pub(super) const SCALE_UP_FORWARD: Limit<Duration> = Limit {
    words: "\"auto\" or a duration from 1s to 1h",
    allows: |start| (Duration::from_secs(1)..=HOUR).contains(start),
};
/// Kubernetes knows no finer amount of CPU than 1m.
pub(super) const CPU: Limit<MilliValue> = Limit {
    words: "an amount of CPU of at least 1m, such as \"50m\" or \"1\"",
    allows: |amount| *amount >= MilliValue::new(1),
};
/// No program starts with less, and a person who writes `64` means `64Mi`.
pub(super) const MEMORY: Limit<MilliValue> = Limit {
    words: "an amount of memory of at least 1Mi, such as \"64Mi\"",
    allows: |amount| *amount >= MilliValue::new(1000 << 20),
};
/// The range is that of [`HeadSizeLimit`], in whole bytes.
pub(super) const HEAD_SIZE: Limit<MilliValue> = Limit {
    words: "an amount of memory from 8Ki to 512Ki, such as \"128Ki\"",
    allows: |amount| {
        let allowed = thousandths(HeadSizeLimit::MIN)..=thousandths(HeadSizeLimit::MAX);
        allowed.contains(&amount.value()) && amount.value() % 1000 == 0
    },
};
pub(super) const POSITIVE: Limit<Duration> =
    Limit { words: "a duration above 0s", allows: |duration| !duration.is_zero() };
pub(super) const HTTP_URL: Limit<String> = Limit {
    words: "a URL such as \"http://127.0.0.1:9090\" or \"https://prometheus.example.com\", or nothing",
    allows: |url| {
        let host = url
            .strip_prefix("http://")
            .or_else(|| url.strip_prefix("https://"))
            .map(|rest| rest.split('/').next().unwrap_or_default());
        url.is_empty()
            || (host.is_some_and(|host| !host.is_empty()) && url.chars().all(|one| one.is_ascii_graphic()))
    },
};
pub(super) const FILE: Limit<String> =
    Limit { words: "an absolute path, or nothing", allows: |path| path.is_empty() || path.starts_with('/') };
pub(super) const LABEL: Limit<String> = Limit {
    words: "a label of a-z, A-Z, 0-9 and _, or nothing",
    allows: |label| {
        label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !label.starts_with(|first: char| first.is_ascii_digit())
    },
};
pub(super) const WHOLE_SECONDS: Limit<Duration> =
    Limit { words: "a duration of at least 0s, in whole seconds", allows: |duration| is_whole(*duration) };
