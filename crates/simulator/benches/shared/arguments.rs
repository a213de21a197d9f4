//! What is written behind the name of a benchmark.

use std::str::FromStr;

/// The number behind an option, if it stands there.
pub(crate) fn number_after<Number: FromStr>(option: &str) -> Option<Number> {
    let mut arguments = std::env::args().skip_while(|argument| argument != option).skip(1);
    arguments.next()?.parse().ok()
}
