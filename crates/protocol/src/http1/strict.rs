//! HTTP/1.1 as RFC 9112 and RFC 9110 write it, read slowly and to the letter: the oracle for what we accept.
//!
//! It shares nothing with the readers that it judges, not even a helper. It looks at whole texts, again and
//! again, and names what is wrong with one; what we accept although the RFC does not stands in
//! [`DIFFERENCES`], each with its reason.

/// What we accept on purpose although the grammar does not.
pub(crate) const DIFFERENCES: &[(&str, &str)] = &[
    (
        BAD_TARGET_CHARACTER,
        "browsers and tools send such characters; they pass to the letter, and no reader divides a request at them",
    ),
    (
        BAD_HOST_ORDER,
        "each of its characters may stand in a host, and no server is found under such a name; it is passed on as it is",
    ),
    (
        BLANKS_BEHIND_SIZE,
        "old servers pad the sizes of their chunks, and every reader past the blanks reads the same size",
    ),
];

pub(crate) const BAD_TARGET_CHARACTER: &str = "a character that a target has encoded only";
pub(crate) const BAD_HOST_ORDER: &str = "the characters of a host, but no host";
pub(crate) const BLANKS_BEHIND_SIZE: &str = "blanks behind the size of a chunk";

/// What the strict reader makes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StrictVerdict<Message> {
    /// So many bytes of it are this.
    Whole(Message, usize),
    /// The text is the beginning of a message, as far as it goes.
    Partial,
    /// It is nothing, and why.
    Refused(&'static str),
}

pub(crate) type HeaderFields = Vec<(String, Vec<u8>)>;

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrictRequestHead {
    pub(crate) method: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) version: Vec<u8>,
    pub(crate) fields: HeaderFields,
    pub(crate) body: BodyLength,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    Bytes(u64),
    Chunked,
}

/// The content of a body in chunks, with its trailers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkedBody {
    pub(crate) data: Vec<u8>,
    pub(crate) trailers: HeaderFields,
}

/// Reads the head of a request; empty lines before it are nothing (RFC 9112 §2.2).
pub(crate) fn request_head(text: &[u8]) -> StrictVerdict<StrictRequestHead> {
    let mut begin = 0;
    while text[begin..].starts_with(b"\r\n") {
        begin += 2;
    }
    let Some(end) = find(&text[begin..], b"\r\n\r\n") else { return StrictVerdict::Partial };
    let lines = split(&text[begin..begin + end], b"\r\n");
    match head_of(&lines) {
        Ok(head) => StrictVerdict::Whole(head, begin + end + 4),
        Err(why) => StrictVerdict::Refused(why),
    }
}

fn head_of(lines: &[&[u8]]) -> Result<StrictRequestHead, &'static str> {
    let words = split(lines[0], b" ");
    let [method, target, version] = words[..] else { return Err("not three words with one space between") };
    if !is_token(method) {
        return Err("the method is no token");
    }
    if version != b"HTTP/1.0" && version != b"HTTP/1.1" {
        return Err("another version");
    }
    let fields = fields_of(&lines[1..])?;
    check_target(method, target)?;
    check_host(version, &fields)?;
    let body = length_of(version, &fields)?;
    Ok(StrictRequestHead {
        method: method.to_vec(),
        target: target.to_vec(),
        version: version.to_vec(),
        fields,
        body,
    })
}

/// Checks the form of a target (RFC 9112 §3.2).
fn check_target(method: &[u8], target: &[u8]) -> Result<(), &'static str> {
    if method == b"CONNECT" {
        return Err("CONNECT, which no program here does");
    }
    if target == b"*" {
        return if method == b"OPTIONS" { Ok(()) } else { Err("an asterisk without OPTIONS") };
    }
    if target.starts_with(b"/") {
        return check_path_and_query(target);
    }
    let Some(colon) = find(target, b"://") else { return Err("neither a path nor with a scheme") };
    let (scheme, rest) = (&target[..colon], &target[colon + 3..]);
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    if !is_scheme {
        return Err("a scheme that is none");
    }
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains(&b'@') {
        return Err("a target that names a user");
    }
    if authority.is_empty() {
        return Err("a target without a host");
    }
    check_host_and_port(authority)?;
    check_path_and_query(path)
}

/// `[ path-abempty ] [ "?" query ]`.
fn check_path_and_query(text: &[u8]) -> Result<(), &'static str> {
    if text.contains(&b'#') {
        return Err("a target with a fragment");
    }
    if text.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return Err("a control character in a target");
    }
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        let is_plain = is_unreserved(byte) || is_sub_delimiter(byte) || b":@/?".contains(&byte);
        if !is_plain && !is_percent_encoded(&text[at..]) {
            return Err(BAD_TARGET_CHARACTER);
        }
        at += 1;
    }
    Ok(())
}

fn check_host(version: &[u8], fields: &HeaderFields) -> Result<(), &'static str> {
    let hosts: Vec<&Vec<u8>> =
        fields.iter().filter(|(name, _)| name == "host").map(|(_, value)| value).collect();
    match hosts[..] {
        [] if version == b"HTTP/1.1" => Err("no Host"),
        [] => Ok(()),
        [host] if host.is_empty() => Ok(()),
        [host] => check_host_and_port(host),
        _ => Err("more than one Host"),
    }
}

/// `uri-host [ ":" port ]` (RFC 3986 §3.2.2).
fn check_host_and_port(text: &[u8]) -> Result<(), &'static str> {
    let is_known = |byte: &u8| {
        is_unreserved(*byte) || is_sub_delimiter(*byte) && *byte != b',' || b":%[]".contains(byte)
    };
    if !text.iter().all(is_known) {
        return Err("a character that no host has");
    }
    let (host, port) = if text.starts_with(b"[") {
        let Some(end) = find(text, b"]") else { return Err(BAD_HOST_ORDER) };
        let (host, rest) = text.split_at(end + 1);
        let inside = &host[1..end];
        if inside.is_empty() || !inside.iter().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte)) {
            return Err(BAD_HOST_ORDER);
        }
        match rest {
            [] => (host, None),
            [b':', port @ ..] => (host, Some(port)),
            _ => return Err(BAD_HOST_ORDER),
        }
    } else {
        match find(text, b":") {
            None => (text, None),
            Some(at) => (&text[..at], Some(&text[at + 1..])),
        }
    };
    let is_name = host.starts_with(b"[")
        || (0..host.len())
            .all(|at| !b":[]".contains(&host[at]) && (host[at] != b'%' || is_percent_encoded(&host[at..])));
    let is_port = port.is_none_or(|port| port.iter().all(u8::is_ascii_digit));
    if is_name && is_port { Ok(()) } else { Err(BAD_HOST_ORDER) }
}

/// RFC 9112 §6.3, without what it allows to repair.
fn length_of(version: &[u8], fields: &HeaderFields) -> Result<BodyLength, &'static str> {
    let values = |wanted: &str| -> Vec<&[u8]> {
        fields.iter().filter(|(name, _)| name == wanted).map(|(_, value)| &value[..]).collect()
    };
    match (&values("transfer-encoding")[..], &values("content-length")[..]) {
        ([], []) => Ok(BodyLength::Bytes(0)),
        ([], [length]) => {
            let is_number = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(length).unwrap_or_default();
            let number = text.parse().ok().filter(|_| is_number);
            number.map(BodyLength::Bytes).ok_or("a length that is no number")
        }
        ([], _) => Err("more than one length"),
        ([_], []) if version == b"HTTP/1.0" => Err("a transfer encoding in HTTP/1.0"),
        ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") => Ok(BodyLength::Chunked),
        (_, []) => Err("another transfer encoding than chunked"),
        (_, _) => Err("both a length and a transfer encoding"),
    }
}

/// Reads a body in chunks with its trailers (RFC 9112 §7.1).
pub(crate) fn chunked_body(text: &[u8]) -> StrictVerdict<ChunkedBody> {
    let mut data = Vec::new();
    let mut at = 0;
    loop {
        let Some(line_end) = find(&text[at..], b"\r\n") else {
            return StrictVerdict::Partial;
        };
        let size = match chunk_size(&text[at..at + line_end]) {
            Ok(size) => size,
            Err(why) => return StrictVerdict::Refused(why),
        };
        at += line_end + 2;
        if size == 0 {
            break;
        }
        let Some(end) = usize::try_from(size).ok().and_then(|size| at.checked_add(size)) else {
            return StrictVerdict::Partial;
        };
        let Some(chunk) = text.get(at..end) else { return StrictVerdict::Partial };
        match text.get(end..end + 2) {
            Some(b"\r\n") => {}
            Some(_) => return StrictVerdict::Refused("a chunk does not end where it says"),
            None => return StrictVerdict::Partial,
        }
        data.extend_from_slice(chunk);
        at = end + 2;
    }
    if text[at..].starts_with(b"\r\n") {
        return StrictVerdict::Whole(ChunkedBody { data, trailers: Vec::new() }, at + 2);
    }
    let Some(end) = find(&text[at..], b"\r\n\r\n") else { return StrictVerdict::Partial };
    match fields_of(&split(&text[at..at + end], b"\r\n")) {
        Ok(trailers) => StrictVerdict::Whole(ChunkedBody { data, trailers }, at + end + 4),
        Err(why) => StrictVerdict::Refused(why),
    }
}

/// `1*HEXDIG *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )`.
fn chunk_size(line: &[u8]) -> Result<u64, &'static str> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let text = std::str::from_utf8(&line[..digits]).expect("digits are ASCII");
    let size = u64::from_str_radix(text, 16).map_err(|_| "a size that is no number")?;
    let mut rest = &line[digits..];
    if !rest.is_empty() && skip_blanks(rest).is_empty() {
        return Err(BLANKS_BEHIND_SIZE);
    }
    while !rest.is_empty() {
        rest = skip_blanks(rest);
        let Some(after) = rest.strip_prefix(b";") else { return Err("junk behind the size of a chunk") };
        rest = skip_token(skip_blanks(after)).ok_or("an extension without a name")?;
        let Some(value) = skip_blanks(rest).strip_prefix(b"=") else { continue };
        let value = skip_blanks(value);
        rest = match value.first() {
            Some(b'"') => skip_quoted(value).ok_or("a quoted string that is none")?,
            _ => skip_token(value).ok_or("an extension without a value")?,
        };
    }
    Ok(size)
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| b" \t".contains(byte)).count();
    &text[blanks..]
}

fn skip_token(text: &[u8]) -> Option<&[u8]> {
    let length = text.iter().take_while(|byte| is_token(&[**byte])).count();
    (length > 0).then(|| &text[length..])
}

fn skip_quoted(text: &[u8]) -> Option<&[u8]> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(&text[at + 1..]),
            b'\\' if text.get(at + 1).is_some_and(|byte| is_text(*byte)) => at += 2,
            b'\\' => return None,
            byte if is_text(*byte) => at += 1,
            _ => return None,
        }
    }
}

/// Header or trailer lines (RFC 9112 §5): a name, a colon, a value; lines are not folded.
fn fields_of(lines: &[&[u8]]) -> Result<HeaderFields, &'static str> {
    let mut fields = Vec::new();
    for line in lines {
        if line.iter().any(|byte| b"\r\n".contains(byte)) {
            return Err("half of a line end");
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return Err("a line without a colon");
        };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if !is_token(name) {
            return Err("a name that is no token");
        }
        if !value.iter().all(|byte| is_text(*byte)) {
            return Err("a control character in a value");
        }
        let name = std::str::from_utf8(name).expect("tokens are ASCII").to_ascii_lowercase();
        let mut value = skip_blanks(value);
        while let [begin @ .., b' ' | b'\t'] = value {
            value = begin;
        }
        fields.push((name, value.to_vec()));
    }
    Ok(fields)
}

/// `HTAB / SP / VCHAR / obs-text`.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty()
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_sub_delimiter(byte: u8) -> bool {
    b"!$&'()*+,;=".contains(&byte)
}

fn is_percent_encoded(text: &[u8]) -> bool {
    matches!(text, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

fn split<'t>(text: &'t [u8], by: &[u8]) -> Vec<&'t [u8]> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = find(rest, by) {
        parts.push(&rest[..at]);
        rest = &rest[at + by.len()..];
    }
    parts.push(rest);
    parts
}

/// Bytes at which readers err.
pub(crate) const ODD_BYTES: &[u8] = b"\r\n\t \0:;,\"\\=@#/?*%[]{}<>`^|01aZ_.+-\x0b\x7f\x80\xff";

/// Puts odd bytes into a text, or over what is there, or takes some away.
pub(crate) fn spoil(text: &mut Vec<u8>, changes: &[(usize, u8, u8)]) {
    for &(place, byte, how) in changes {
        if text.is_empty() {
            return;
        }
        let at = place % text.len();
        match how % 3 {
            0 => text.insert(at, byte),
            1 => text[at] = byte,
            _ => {
                text.remove(at);
            }
        }
    }
}

/// Divides a text into pieces of these sizes, over and over.
pub(crate) fn pieces<'t>(text: &'t [u8], sizes: &[usize]) -> Vec<&'t [u8]> {
    let mut pieces = Vec::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).clamp(1, rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// What we take for a message must be one for the oracle too, and the same, or a difference that is meant.
pub(crate) fn check_accepted<Message: std::fmt::Debug + PartialEq>(
    text: &[u8],
    ours: &(Message, usize),
    strict: StrictVerdict<Message>,
) {
    let shown = String::from_utf8_lossy(text).into_owned();
    match strict {
        StrictVerdict::Whole(message, length) => assert_eq!(ours, &(message, length), "{shown:?}"),
        StrictVerdict::Refused(why) => {
            let is_meant = DIFFERENCES.iter().any(|(difference, _)| *difference == why);
            assert!(is_meant, "{shown:?} is accepted, but it has {why}: {ours:?}");
        }
        StrictVerdict::Partial => panic!("{shown:?} is accepted as {ours:?}, but it is not whole"),
    }
}
