//! Knative's measurement, as its autoscaler scrapes it from port 9090: one protobuf message about the last
//! completed second.

use prost::Message;

use crate::load::LoadBook;

/// Knative's `Stat`, field for field. Zero fields are omitted on the wire, as proto3 wants.
#[derive(Clone, PartialEq, Message)]
pub struct Stat {
    /// The name of the pod that measured.
    #[prost(string, tag = "1")]
    pub pod_name: String,
    /// Requests in flight, averaged over the second.
    #[prost(double, tag = "2")]
    pub average_concurrent_requests: f64,
    /// The part of them that came through an activator.
    #[prost(double, tag = "3")]
    pub average_proxied_concurrent_requests: f64,
    /// Requests that arrived in the second.
    #[prost(double, tag = "4")]
    pub request_count: f64,
    /// The part of them that came through an activator.
    #[prost(double, tag = "5")]
    pub proxied_request_count: f64,
    /// Seconds since the start of the process.
    #[prost(double, tag = "6")]
    pub process_uptime: f64,
    /// Never set; there for completeness.
    #[prost(int64, tag = "7")]
    pub timestamp: i64,
}

/// The content type of a stat.
pub(crate) const CONTENT_TYPE: &str = "application/protobuf";

/// What is to be said now: the last completed second, never a part of the running one. Before the first, only
/// the pod's name.
pub(crate) fn current(pod: &str, book: &LoadBook) -> Stat {
    let pod_name = pod.to_owned();
    let Some(sample) = book.latest() else { return Stat { pod_name, ..Stat::default() } };
    let load = sample.load;
    Stat {
        pod_name,
        average_concurrent_requests: load.concurrency.value(),
        average_proxied_concurrent_requests: load.proxied_concurrency.value(),
        request_count: load.request_rate.value(),
        proxied_request_count: load.proxied_request_rate.value(),
        process_uptime: book.uptime().as_secs_f64(),
        timestamp: 0,
    }
}

#[cfg(test)]
mod tests {
    use runtime::Clock;

    use super::*;

    /// N8 of the autoscaler's vectors.
    #[test]
    fn n8_the_message_is_knatives_byte_for_byte() {
        let stat = Stat {
            pod_name: "hello-00001-deployment-abc".to_owned(),
            average_concurrent_requests: 3.5,
            average_proxied_concurrent_requests: 1.25,
            request_count: 7.0,
            proxied_request_count: 2.0,
            process_uptime: 61.5,
            timestamp: 0,
        };
        let hex: Vec<String> = stat.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
        let hex = hex.concat();
        assert_eq!(
            hex,
            "0a1a68656c6c6f2d30303030312d6465706c6f796d656e742d616263110000000000000c4019000000000000f43f210000000000001c40290000000000000040310000000000c04e40"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn p18_before_the_first_second_only_the_name_is_said() {
        let book = LoadBook::new(Clock::start());
        let stat = current("hello-1", &book);
        assert_eq!(stat, Stat { pod_name: "hello-1".to_owned(), ..Stat::default() });
    }
}
