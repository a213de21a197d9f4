//! The bytes in which Knative's activators and queue-proxies say their load: `kpa.md` §8.1.

use prost::Message;

/// The load that one reporter measured of one revision.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PushedStat {
    #[prost(string, tag = "1")]
    pub(super) pod_name: String,
    #[prost(double, tag = "2")]
    pub(super) concurrency: f64,
    #[prost(double, tag = "3")]
    pub(super) proxied_concurrency: f64,
    #[prost(double, tag = "4")]
    pub(super) requests: f64,
    #[prost(double, tag = "5")]
    pub(super) proxied_requests: f64,
    #[prost(double, tag = "6")]
    pub(super) uptime: f64,
}

/// The load of one revision in a frame.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PushedStatEntry {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, optional, tag = "3")]
    pub(super) stat: Option<PushedStat>,
}

/// A frame of an activator.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PushedStatFrame {
    #[prost(message, repeated, tag = "1")]
    pub(super) entries: Vec<PushedStatEntry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hexadecimal(bytes: &[u8]) -> String {
        let digit = |value: u8| char::from_digit(value.into(), 16).expect("half of a byte");
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// The vectors N6 and N8.
    #[test]
    fn bytes_are_knatives() {
        let one = PushedStat {
            pod_name: "activator-1".to_owned(),
            concurrency: 1.0,
            requests: 1.0,
            ..PushedStat::default()
        };
        let entry = PushedStatEntry {
            namespace: "default".to_owned(),
            name: "hello-00001".to_owned(),
            stat: Some(one),
        };
        let frame = PushedStatFrame { entries: vec![entry] };
        let n6 = "0a370a0764656661756c74120b68656c6c6f2d30303030311a1f0a0b616374697661746f722d3111000000000000f03f21000000000000f03f";
        assert_eq!(hexadecimal(&frame.encode_to_vec()), n6);
        let stat = PushedStat {
            pod_name: "hello-00001-deployment-abc".to_owned(),
            concurrency: 3.5,
            proxied_concurrency: 1.25,
            requests: 7.0,
            proxied_requests: 2.0,
            uptime: 61.5,
        };
        let n8 = "0a1a68656c6c6f2d30303030312d6465706c6f796d656e742d616263110000000000000c4019000000000000f43f210000000000001c40290000000000000040310000000000c04e40";
        assert_eq!(hexadecimal(&stat.encode_to_vec()), n8);
        assert!(PushedStat::default().encode_to_vec().is_empty(), "zeros take no byte");
    }
}
