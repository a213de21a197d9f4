//! What a benchmark costs: time on a processor, which other programs of the machine do not lengthen.

/// The time that this thread, the only one, has spent on a processor.
pub(crate) fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds: f64 =
        text.split_whitespace().next().and_then(|text| text.parse().ok()).expect("a number comes first");
    nanoseconds / 1e9
}
