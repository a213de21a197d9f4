//! Which names of fields does a proxy look at?

mod usual;

/// The part that a field plays for a proxy, by its name. Names are told apart by their length first, so that
/// a name in a head is compared with few of those that count, and mostly with none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldName {
    /// No proxy looks at it: the field passes.
    Passing,
    /// The field `Host`, which passes.
    Host,
    /// The field `Content-Length`, which passes.
    ContentLength,
    /// The field `Date`, which passes.
    Date,
    /// The field `User-Agent`, which passes.
    UserAgent,
    /// The field `Content-Type`, which passes.
    ContentType,
    /// `Transfer-Encoding`, which ends at each hop.
    TransferEncoding,
    /// `Connection`, which ends at each hop, with all that it names.
    Connection,
    /// `Keep-Alive` or `Proxy-Connection`, which end at each hop and say nothing to a proxy.
    Dropped,
    /// `Expect`, which means something else on each hop.
    Expect,
    /// Any other that a proxy reads, changes or removes: one that ends at each hop, that tells of the way, or
    /// that only our own hops may say, also as CGI would spell it.
    OfHops,
}

impl FieldName {
    /// The part of the field with this name, in whatever case it is written.
    pub(crate) fn of(name: &[u8]) -> Self {
        // Names of HTTP/2 are in lower case: to compare them as they are takes a word or two.
        let is = |known: &str| name == known.as_bytes() || name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            2 if is("te") => Self::OfHops,
            4 if is("host") => Self::Host,
            4 if is("date") => Self::Date,
            6 if is("expect") => Self::Expect,
            7 if is("upgrade") => Self::OfHops,
            9 if is("forwarded") => Self::OfHops,
            10 if is("user-agent") => Self::UserAgent,
            10 if is("connection") => Self::Connection,
            10 if is("keep-alive") => Self::Dropped,
            12 if is("content-type") => Self::ContentType,
            14 if is("content-length") => Self::ContentLength,
            14 if is("http2-settings") => Self::OfHops,
            16 if is("proxy-connection") => Self::Dropped,
            17 if is("transfer-encoding") => Self::TransferEncoding,
            18 if is("proxy-authenticate") => Self::OfHops,
            19 if is("proxy-authorization") => Self::OfHops,
            _ if may_be_ours(name) => Self::OfHops,
            _ => Self::Passing,
        }
    }

    /// The part of the field at the beginning of a line, and how long its name is with `: ` behind it; `None`
    /// if the name is none that nearly every head has, or something else stands behind it. A look at a few
    /// words is cheaper than one at each byte of a name, and most lines have such a name.
    pub(super) fn of_usual_line(line: &[u8]) -> Option<(Self, usize)> {
        match line.first()? | 0x20 {
            b'h' => Some((Self::Host, usual::HOST.length_in(line)?)),
            b'd' => Some((Self::Date, usual::DATE.length_in(line)?)),
            b'a' => Some((Self::Passing, usual::ACCEPT.length_in(line)?)),
            b'u' => Some((Self::UserAgent, usual::USER_AGENT.length_in(line)?)),
            b'c' => match usual::CONTENT_TYPE.length_in(line) {
                Some(length) => Some((Self::ContentType, length)),
                None => Some((Self::ContentLength, usual::CONTENT_LENGTH.length_in(line)?)),
            },
            _ => None,
        }
    }

    /// Whether a field with this name goes on to the next hop as it came.
    pub(crate) fn passes(self) -> bool {
        match self {
            Self::Passing
            | Self::Host
            | Self::ContentLength
            | Self::Date
            | Self::UserAgent
            | Self::ContentType => true,
            Self::TransferEncoding | Self::Connection | Self::Dropped | Self::Expect | Self::OfHops => false,
        }
    }
}

/// Whether a field may be one that only our hops say, or that tells of the way, or be taken for one by an app
/// that sees names as CGI writes them. Some are counted in that are not.
fn may_be_ours(name: &[u8]) -> bool {
    // Nearly every name is told apart by its first letter.
    let prefixes: &[&str] = match name.first() {
        Some(b'e' | b'E') => &["ebb-"],
        Some(b'k' | b'K') => &["k-", "knative-"],
        Some(b'x' | b'X') => &["x-forwarded-"],
        Some(_) | None => return false,
    };
    let begins_with = |prefix: &&str| {
        name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    prefixes.iter().any(begins_with) || name.contains(&b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_in_any_case_and_others_pass() {
        for (name, expected) in [
            ("Host", FieldName::Host),
            ("hosT", FieldName::Host),
            ("DATE", FieldName::Date),
            ("Content-Length", FieldName::ContentLength),
            ("transfer-ENCODING", FieldName::TransferEncoding),
            ("Te", FieldName::OfHops),
            ("Keep-Alive", FieldName::Dropped),
            ("proxy-connection", FieldName::Dropped),
            ("Ebb-Pod", FieldName::OfHops),
            ("ebb_pod", FieldName::OfHops),
            ("K-Anything", FieldName::OfHops),
            ("X-Forwarded-Port", FieldName::OfHops),
            ("x_forwarded_for", FieldName::OfHops),
            ("X-Request-Id", FieldName::Passing),
            ("Accept", FieldName::Passing),
            ("Etag", FieldName::Passing),
            ("Key", FieldName::Passing),
            ("Trailer", FieldName::Passing),
            ("hos", FieldName::Passing),
            ("hosts", FieldName::Passing),
        ] {
            assert_eq!(FieldName::of(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn a_usual_line_has_the_field_that_its_name_says() {
        for name in ["host", "date", "accept", "user-agent", "content-type", "content-length"] {
            let line = format!("{name}: v").into_bytes();
            let expected = Some((FieldName::of(name.as_bytes()), name.len() + 2));
            assert_eq!(FieldName::of_usual_line(&line), expected, "{name}");
            assert_eq!(FieldName::of_usual_line(&line.to_ascii_uppercase()), expected, "{name}");
            for length in 0..name.len() + 2 {
                assert_eq!(FieldName::of_usual_line(&line[..length]), None, "{name} cut at {length}");
            }
            // Each byte in each place is the one that is meant, or the same letter in the other case.
            for at in 0..name.len() + 2 {
                for byte in 0..=u8::MAX {
                    let mut other = line.clone();
                    other[at] = byte;
                    let is_meant = byte.eq_ignore_ascii_case(&line[at]);
                    let found = FieldName::of_usual_line(&other);
                    assert_eq!(found, expected.filter(|_| is_meant), "{}", other.escape_ascii());
                }
            }
        }
    }
}
