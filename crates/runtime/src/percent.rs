//! How does a text stand in a URL?

use std::fmt::Write as _;

/// As it may stand in a URL's query.
pub fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_encoded_to_the_last_byte() {
        assert_eq!(percent_encoded("sum({a=\"é b\"})"), "sum%28%7Ba%3D%22%C3%A9%20b%22%7D%29");
    }
}
