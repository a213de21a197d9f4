//! How tables and explanations show a value.

use vocabulary::Routing;

/// What takes a revision's requests first, as the column SERVES has it.
pub(crate) fn first_hop(routing: Routing) -> &'static str {
    match routing {
        Routing::Direct => "pods",
        Routing::ThroughActivator => "activator",
    }
}

/// At most two decimals, or a dash for "no data".
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or_else(
        || "-".to_owned(),
        |value| format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lose_what_nobody_reads() {
        for (value, text) in [(7.0, "7"), (0.0, "0"), (1.5, "1.5"), (333.333_333, "333.33"), (100.0, "100")] {
            assert_eq!(number(Some(value)), text);
        }
        assert_eq!(number(None), "-");
    }
}
