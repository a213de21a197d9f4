//! What a queue-proxy is told that a test or a benchmark starts: free ports on loopback, no limits, and a
//! drain that waits for no client.
//!
//! Crates on which this library depends cannot depend on it: their tests take this file in by its path.

use std::collections::BTreeMap;

/// The environment of a queue-proxy before the app on this port. Callers change what their test is about.
pub(crate) fn environment(app_port: u16) -> BTreeMap<String, String> {
    let variables = [
        ("SERVING_POD", "hello-1"),
        ("CONTAINER_CONCURRENCY", "0"),
        ("QUEUE_SERVING_PORT", "0"),
        ("EBB_ADMIN_PORT", "0"),
        ("EBB_LINK_PORT", "0"),
        ("EBB_STAT_PORT", "0"),
        ("EBB_METRICS_PORT", "0"),
        ("EBB_BIND", "127.0.0.1"),
        ("EBB_DRAIN_LINGER", "0"),
        ("REVISION_TIMEOUT_SECONDS", "300"),
        ("USER_PORT", &app_port.to_string()),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}
