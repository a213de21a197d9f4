//! The two tables of HPACK: the static one (RFC 7541 appendix A) and the dynamic one (§2.3.2), whose numbers
//! follow it.

use std::collections::VecDeque;

use http::header::{self, HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Scheme};
use http::{Method, StatusCode};

use super::Field;

/// What an entry costs beside its letters (RFC 7541 §4.1).
pub(super) const ENTRY_OVERHEAD: usize = 32;

/// The default size of a dynamic table (RFC 9113 §6.5.2), which is also the largest one here.
pub(super) const TABLE_BYTES: usize = 4096;

/// How many entries the static table has.
pub(super) const STATIC_ENTRIES: usize = 61;

/// Where its entries with ordinary names begin.
const FIRST_HEADER: usize = 15;

/// The ordinary names of the static table, in its order. No constant, of which each use is a copy of its own.
static HEADERS: [HeaderName; STATIC_ENTRIES - FIRST_HEADER + 1] = [
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::ACCEPT_RANGES,
    header::ACCEPT,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
    header::AGE,
    header::ALLOW,
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::DATE,
    header::ETAG,
    header::EXPECT,
    header::EXPIRES,
    header::FROM,
    header::HOST,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::LAST_MODIFIED,
    header::LINK,
    header::LOCATION,
    header::MAX_FORWARDS,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::RANGE,
    header::REFERER,
    header::REFRESH,
    header::RETRY_AFTER,
    header::SERVER,
    header::SET_COOKIE,
    header::STRICT_TRANSPORT_SECURITY,
    header::TRANSFER_ENCODING,
    header::USER_AGENT,
    header::VARY,
    header::VIA,
    header::WWW_AUTHENTICATE,
];

/// The name of an entry: what follows may be a value of its own.
#[derive(Clone, Debug)]
pub(super) enum Name {
    Method,
    Scheme,
    Authority,
    Path,
    Status,
    Header(HeaderName),
    /// Of so many letters: what it stands in counts for them all the same.
    Malformed(usize),
}

impl Name {
    /// How many letters it has.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Method | Self::Scheme | Self::Status => 7,
            Self::Authority => 10,
            Self::Path => 5,
            Self::Header(name) => name.as_str().len(),
            Self::Malformed(length) => *length,
        }
    }
}

/// An entry of the static table with its value; `None` beyond it.
pub(super) fn static_field(index: usize) -> Option<Field> {
    let status = |status| Field::Status(status);
    Some(match index {
        // A name that stands alone has an empty value, which no authority may be.
        1 => Field::Malformed,
        2 => Field::Method(Method::GET),
        3 => Field::Method(Method::POST),
        4 => Field::Path(PathAndQuery::from_static("/")),
        5 => Field::Path(PathAndQuery::from_static("/index.html")),
        6 => Field::Scheme(Scheme::HTTP),
        7 => Field::Scheme(Scheme::HTTPS),
        8 => status(StatusCode::OK),
        9 => status(StatusCode::NO_CONTENT),
        10 => status(StatusCode::PARTIAL_CONTENT),
        11 => status(StatusCode::NOT_MODIFIED),
        12 => status(StatusCode::BAD_REQUEST),
        13 => status(StatusCode::NOT_FOUND),
        14 => status(StatusCode::INTERNAL_SERVER_ERROR),
        16 => Field::Header(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate")),
        FIRST_HEADER..=STATIC_ENTRIES => {
            Field::Header(HEADERS[index - FIRST_HEADER].clone(), HeaderValue::from_static(""))
        }
        _ => return None,
    })
}

fn static_name(index: usize) -> Option<Name> {
    Some(match index {
        1 => Name::Authority,
        2 | 3 => Name::Method,
        4 | 5 => Name::Path,
        6 | 7 => Name::Scheme,
        8..FIRST_HEADER => Name::Status,
        FIRST_HEADER..=STATIC_ENTRIES => Name::Header(HEADERS[index - FIRST_HEADER].clone()),
        _ => return None,
    })
}

/// What an entry of the static table counts for.
fn static_bytes(index: usize) -> usize {
    let letters = match index {
        1 => ":authority".len(),
        2 => ":method".len() + "GET".len(),
        3 => ":method".len() + "POST".len(),
        4 => ":path".len() + "/".len(),
        5 => ":path".len() + "/index.html".len(),
        6 => ":scheme".len() + "http".len(),
        7 => ":scheme".len() + "https".len(),
        8..=14 => ":status".len() + 3,
        16 => "accept-encoding".len() + "gzip, deflate".len(),
        other => HEADERS.get(other - FIRST_HEADER).map_or(0, |name| name.as_str().len()),
    };
    letters + ENTRY_OVERHEAD
}

/// Where a header's name stands in the static table.
pub(super) fn static_index(name: &HeaderName) -> Option<usize> {
    // The names that nearly every message has are told apart by length and letters, which the compiler turns
    // into few comparisons.
    let index = match name.as_str() {
        "date" => 33,
        "content-length" => 28,
        "content-type" => 31,
        "user-agent" => 58,
        "accept" => 19,
        "accept-encoding" => 16,
        "server" => 54,
        text if text.starts_with("x-")
            || text.starts_with("grpc-")
            || text.starts_with("ebb-")
            || text == "te" =>
        {
            return None;
        }
        _ => FIRST_HEADER + HEADERS.iter().position(|known| known == name)?,
    };
    Some(index)
}

/// What a peer has said before, newest first.
#[derive(Debug)]
pub(super) struct DynamicTable {
    entries: VecDeque<TableEntry>,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct TableEntry {
    name: Name,
    field: Field,
    bytes: usize,
}

impl Default for DynamicTable {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0, bytes_max: TABLE_BYTES }
    }
}

impl DynamicTable {
    /// The entry with this number, of either table, and what it counts for.
    pub(super) fn field(&self, index: usize) -> Option<(Field, usize)> {
        if index <= STATIC_ENTRIES {
            return static_field(index).map(|field| (field, static_bytes(index)));
        }
        self.entries.get(index - STATIC_ENTRIES - 1).map(|entry| (entry.field.clone(), entry.bytes))
    }

    /// Whether there is an entry with this number, in either table.
    pub(super) fn has(&self, index: usize) -> bool {
        (1..=STATIC_ENTRIES + self.entries.len()).contains(&index)
    }

    pub(super) fn name(&self, index: usize) -> Option<Name> {
        if index <= STATIC_ENTRIES {
            return static_name(index);
        }
        self.entries.get(index - STATIC_ENTRIES - 1).map(|entry| entry.name.clone())
    }

    /// Adds an entry that counts for so many bytes.
    pub(super) fn insert(&mut self, name: Name, field: Field, bytes: usize) {
        self.evict(self.bytes_max.saturating_sub(bytes));
        // One that is larger than the whole table empties it and is not kept (RFC 7541 §4.4).
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.entries.push_front(TableEntry { name, field, bytes });
        }
    }

    /// Forgets all entries, as one that is larger than the whole table does.
    pub(super) fn clear(&mut self) {
        self.evict(0);
    }

    pub(super) fn resize(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
    }

    fn evict(&mut self, until: usize) {
        while self.bytes > until
            && let Some(oldest) = self.entries.pop_back()
        {
            self.bytes -= oldest.bytes;
        }
    }
}
