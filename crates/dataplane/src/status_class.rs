//! Statuses by their first digit, for metrics: what there is of them is bounded whatever apps answer.

use http::StatusCode;

/// The classes of statuses, in their order.
pub const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Where the class of a status stands among [`STATUS_CLASSES`]. What none of them is counts as the last:
/// no server may send it.
pub fn status_class(status: StatusCode) -> usize {
    let first = usize::from(status.as_u16() / 100);
    first.saturating_sub(1).min(STATUS_CLASSES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class() {
        for (status, expected) in
            [(101, "1xx"), (200, "2xx"), (304, "3xx"), (499, "4xx"), (503, "5xx"), (999, "5xx")]
        {
            let status = StatusCode::from_u16(status).expect("three digits");
            assert_eq!(STATUS_CLASSES[status_class(status)], expected, "{status}");
        }
    }
}
