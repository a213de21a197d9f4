//! What does a request say of the trace that it is part of? W3C's `traceparent`, version 00.
//!
//! The sender of one decides whether its requests have traces. One that is malformed counts as none, and its
//! `tracestate` ends with it, as the standard wants.

use http::header::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// `00-` 32 digits `-` 16 digits `-` 2 digits.
const LENGTH: usize = 55;
/// The flag of `traceparent` that says that the trace is kept.
const SAMPLED: u8 = 1;

/// A request's place in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceContext {
    /// The identifier of the trace, which is never 0.
    pub(super) trace: u128,
    /// The identifier of the sender's span, which is never 0.
    pub(super) span: u64,
    flags: u8,
}

impl TraceContext {
    /// The context of a trace that begins here.
    pub(super) fn new(trace: u128, span: u64, is_sampled: bool) -> Self {
        Self { trace, span, flags: u8::from(is_sampled) * SAMPLED }
    }

    /// The context that the header `traceparent` of a request holds; `None` without a valid one.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut written = headers.get_all(TRACEPARENT).iter();
        let (text, another) = (written.next()?.as_bytes(), written.next());
        if another.is_some() {
            return None;
        }
        // Later versions may add parts, and keep the first four.
        let is_whole = match (text.get(..2)?, text.len()) {
            (b"ff", _) => false,
            (b"00", length) => length == LENGTH,
            (_, length) => length == LENGTH || text.get(LENGTH) == Some(&b'-'),
        };
        let [b'-', b'-', b'-'] = [*text.get(2)?, *text.get(35)?, *text.get(52)?] else { return None };
        digits(text.get(..2)?)?;
        let trace = digits(text.get(3..35)?)?;
        let span = u64::try_from(digits(text.get(36..52)?)?).ok()?;
        let flags = u8::try_from(digits(text.get(53..LENGTH)?)?).ok()?;
        (is_whole && trace != 0 && span != 0).then_some(Self { trace, span, flags })
    }

    /// Whether the trace is kept.
    pub(super) fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The context of the same trace, one hop on.
    pub(super) fn behind(self, span: u64) -> Self {
        Self { span, ..self }
    }

    /// Writes the context into `traceparent` for the next hop.
    pub(super) fn write(self, headers: &mut HeaderMap) {
        let Self { trace, span, flags } = self;
        let text = format!("00-{trace:032x}-{span:016x}-{:02x}", flags & SAMPLED);
        let value = HeaderValue::try_from(text).expect("digits and dashes are a value");
        headers.insert(TRACEPARENT, value);
    }
}

/// What a request says of other tools' own, for the span. Several lines are one list.
pub(super) fn state(headers: &HeaderMap) -> String {
    let lines = headers.get_all(TRACESTATE).iter().filter_map(|line| line.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// A trace that begins has none.
pub(super) fn forget_state(headers: &mut HeaderMap) {
    headers.remove(TRACESTATE);
}

/// Lower case alone, as the standard wants.
fn digits(text: &[u8]) -> Option<u128> {
    text.iter().try_fold(0_u128, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(lines: &[&str]) -> Option<TraceContext> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(TRACEPARENT, HeaderValue::from_str(line).expect("legal"));
        }
        TraceContext::read(&headers)
    }

    #[test]
    fn a_context_that_is_read_is_written_again() {
        let context = read(&[EXAMPLE]).expect("the standard's example");
        assert_eq!(context.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert!(context.is_sampled());
        let mut headers = HeaderMap::new();
        context.write(&mut headers);
        assert_eq!(headers[TRACEPARENT], EXAMPLE);
    }

    /// The cases that W3C's own test suite tries.
    #[test]
    fn a_malformed_context_counts_as_none() {
        for (is_read, text) in [
            (true, EXAMPLE.to_owned()),
            (true, EXAMPLE.replacen("00", "cc", 1)),
            (true, EXAMPLE.replacen("00", "cc", 1) + "-what-the-future-will-be-like"),
            (true, EXAMPLE[..53].to_owned() + "00"),
            (true, EXAMPLE[..53].to_owned() + "ff"),
            (false, EXAMPLE.replacen("00", "ff", 1)),
            (false, EXAMPLE.to_owned() + "-what"),
            (false, EXAMPLE.replacen("00", "cc", 1) + ".what"),
            (false, EXAMPLE.to_uppercase()),
            (false, EXAMPLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32))),
            (false, EXAMPLE.replace("00f067aa0ba902b7", &"0".repeat(16))),
            (false, EXAMPLE.replace('-', ".")),
            (false, EXAMPLE[1..].to_owned()),
            (false, EXAMPLE[..54].to_owned()),
            (false, EXAMPLE.replacen("00", "0x", 1)),
            (false, String::new()),
        ] {
            assert_eq!(read(&[&text]).is_some(), is_read, "{text:?}");
        }
        assert_eq!(read(&[EXAMPLE, EXAMPLE]), None);
        assert_eq!(read(&[]), None);
    }
}
