//! Where a program takes the autoscaler's link, and what proves that a dialler is the autoscaler.
//!
//! A link's listener gives away what runs where, so it must know its caller. On one machine that is a random
//! number per process: the process hands it to the program that started it, together with its address, and
//! takes only a connection whose first frame carries it. On a cluster it is a certificate.

use std::fmt;
use std::net::SocketAddr;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// 128 random bits that only a process and the programs that it trusts know. Never shown in logs; compared
/// without telling by the time it takes how much was right.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LinkToken([u8; Self::BYTES]);

/// A text that is no token. The text itself is not repeated: most of it may be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("is not a token; write 32 hexadecimal digits, such as `openssl rand -hex 16` prints")]
pub struct LinkTokenError;

impl LinkToken {
    /// The length of a token in bytes.
    pub const BYTES: usize = 16;

    /// A token of these bytes, which must be random.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, as they travel in a frame.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether this was offered. Looks at every byte, whatever the first ones are.
    pub fn is(&self, offered: &[u8]) -> bool {
        let Ok(offered) = <&[u8; Self::BYTES]>::try_from(offered) else { return false };
        let difference = self.0.iter().zip(offered).fold(0, |found, (own, other)| found | (own ^ other));
        // Without this the compiler might see that a first difference decides.
        std::hint::black_box(difference) == 0
    }
}

impl PartialEq for LinkToken {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Eq for LinkToken {}

impl fmt::Debug for LinkToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LinkToken(…)")
    }
}

impl std::str::FromStr for LinkToken {
    type Err = LinkTokenError;
    fn from_str(text: &str) -> Result<Self, LinkTokenError> {
        let mut bytes = [0; Self::BYTES];
        // A sign is no digit, although the parser of numbers takes one.
        if text.len() != 2 * Self::BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(LinkTokenError);
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| LinkTokenError)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for LinkToken {
    type Error = LinkTokenError;
    fn try_from(text: String) -> Result<Self, LinkTokenError> {
        text.parse()
    }
}

impl From<LinkToken> for String {
    fn from(token: LinkToken) -> Self {
        let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("half a byte");
        token.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
}

/// Where a program takes a link, and with which token. Links that differ in either are different links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAddress {
    /// The address and port on which it listens.
    pub socket: SocketAddr,
    /// What it wants to hear first; `None`: it takes any caller, for only its own machine reaches it.
    pub token: Option<LinkToken>,
    /// What the bytes travel in.
    pub channel: LinkChannel,
}

/// What a program may do on links, by its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRole {
    /// It decides, and calls all others.
    Autoscaler,
    /// It holds requests until a pod is free for them.
    Activator,
}

impl LinkRole {
    /// As it stands in a certificate, among the names of the subject.
    pub fn name(self) -> &'static str {
        match self {
            Self::Autoscaler => "autoscaler.ebb.dev",
            Self::Activator => "activator.ebb.dev",
        }
    }
}

/// What the bytes of a link travel in, and by what its two ends know each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkChannel {
    /// TCP without TLS; the token alone proves that the caller may speak.
    #[default]
    Plain,
    /// TLS: it wants an autoscaler's certificate, and shows a key that no authority vouches for.
    TlsOfPod,
    /// TLS: it wants an autoscaler's certificate, and shows an activator's.
    TlsOfActivator,
    /// No link at all: a queue-proxy of Knative's answers HTTP there with its load, once it is asked.
    Scraped,
    /// No link at all: a queue-proxy of Knative's whose requests all come through activators, which say them.
    /// It is not asked.
    Unasked,
    /// No link at all: an activator of Knative's pushes its load to the autoscaler, and is told nothing.
    Pushed,
}

impl LinkChannel {
    /// Whether the peer is a program of ebb's, which speaks and listens on a link.
    pub fn is_link(self) -> bool {
        match self {
            Self::Plain | Self::TlsOfPod | Self::TlsOfActivator => true,
            Self::Scraped | Self::Unasked | Self::Pushed => false,
        }
    }
}

impl Serialize for LinkAddress {
    /// For people and programs the socket alone; for an exact keyframe all of it.
    fn serialize<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        if !to.is_human_readable() {
            return (self.socket, self.token, self.channel).serialize(to);
        }
        let mut shown = to.serialize_struct("LinkAddress", 1)?;
        shown.serialize_field("socket", &self.socket)?;
        shown.end()
    }
}

impl<'de> Deserialize<'de> for LinkAddress {
    /// Reads an address as an exact keyframe has it.
    fn deserialize<Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        let (socket, token, channel) = Deserialize::deserialize(from)?;
        Ok(Self { socket, token, channel })
    }
}

impl From<SocketAddr> for LinkAddress {
    fn from(socket: SocketAddr) -> Self {
        Self { socket, token: None, channel: LinkChannel::Plain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "000102030405060708090a0b0c0d0eff";

    #[test]
    fn a_token_is_itself_and_nothing_that_differs_in_a_bit() {
        let token: LinkToken = TEXT.parse().expect("32 digits");
        assert!(token.is(token.expose()));
        assert_eq!(String::from(token), TEXT);
        for index in 0..LinkToken::BYTES {
            let mut other = token.0;
            other[index] ^= 1;
            assert!(!token.is(&other), "byte {index}");
        }
        assert!(!token.is(&[]));
        assert!(!token.is(&token.0[1..]));
        assert!(!token.is(&[token.0.as_slice(), &[0]].concat()));
    }

    #[test]
    fn a_text_that_is_not_32_digits_is_refused_and_not_repeated() {
        for text in ["", "0", &TEXT[1..], &format!("{TEXT}0"), &format!("+{}", &TEXT[1..]), &"é".repeat(16)]
        {
            let error = text.parse::<LinkToken>().expect_err(text);
            assert!(text.len() < 2 || !error.to_string().contains(text));
        }
    }

    #[test]
    fn neither_logs_nor_pages_show_it() {
        let address = LinkAddress {
            socket: ([127, 0, 0, 1], 3).into(),
            token: TEXT.parse().ok(),
            channel: LinkChannel::Plain,
        };
        let shown = format!("{address:?} {}", serde_json::to_string(&address).expect("plain data"));
        assert!(
            shown.contains("127.0.0.1:3") && !shown.contains("0102") && !shown.contains("[0, 1"),
            "{shown}"
        );
    }
}
