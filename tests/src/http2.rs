//! HTTP/2 by the byte: frames and header fields that no library would send.

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long the head of a frame is.
pub const FRAME_HEAD: usize = 9;

/// Types of frames (RFC 9113, section 6).
pub mod kind {
    #![expect(missing_docs, reason = "they are named as in the standard")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    /// A type that no standard gives a meaning, which every peer has to ignore.
    pub const UNKNOWN: u8 = 0xfa;
}

/// The flags of HTTP/2 frames, by their names.
pub mod flag {
    #![expect(missing_docs, reason = "they are named as in the standard")]
    pub const NONE: u8 = 0;
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
}

/// Settings (RFC 9113, section 6.5.2).
pub mod setting {
    #![expect(missing_docs, reason = "they are named as in the standard")]
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
}

/// The bytes of a frame with this payload.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are short").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The bytes of a SETTINGS frame with these values.
pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = values
        .iter()
        .flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()))
        .collect();
    frame(kind::SETTINGS, flag::NONE, 0, &payload)
}

/// A header field as a literal that enters no table, whatever is in it.
pub fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        prefixed(&mut field, 0, 7, text.len());
        field.extend(text);
    }
    field
}

/// A whole head of literals.
pub fn literals(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| literal(name.as_bytes(), value.as_bytes())).collect()
}

/// Appends an integer behind a pattern that leaves it `bits` bits of its first byte (RFC 7541, section 5.1).
pub fn prefixed(bytes: &mut Vec<u8>, pattern: u8, bits: u32, value: usize) {
    let byte = |value: usize| u8::try_from(value).expect("it was made to fit a byte");
    let most = (1 << bits) - 1;
    if value < most {
        bytes.push(pattern | byte(value));
        return;
    }
    bytes.push(pattern | byte(most));
    let mut rest = value - most;
    while rest >= 128 {
        bytes.push(byte(rest % 128) | 128);
        rest /= 128;
    }
    bytes.push(byte(rest));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_fields_are_as_the_standards_write_them() {
        assert_eq!(
            frame(kind::PING, flag::ACK, 0, &[7; 8]),
            [&[0, 0, 8, 6, 1, 0, 0, 0, 0][..], &[7; 8][..]].concat()
        );
        assert_eq!(
            settings(&[(setting::INITIAL_WINDOW_SIZE, 256)]),
            [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 1, 0]
        );
        assert_eq!(literal(b"a", b"bc"), [0, 1, b'a', 2, b'b', b'c']);
        // The example of RFC 7541, C.1.2.
        let mut bytes = Vec::new();
        prefixed(&mut bytes, 0, 5, 1337);
        assert_eq!(bytes, [31, 154, 10]);
    }
}
