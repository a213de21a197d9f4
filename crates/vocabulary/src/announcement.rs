//! What does a queue-proxy say once it listens? The process that started it on free ports has to hear which
//! those are: one line of JSON on its standard output, and another one once its app has answered a request.

use serde::{Deserialize, Serialize};

use crate::link::LinkToken;

/// The line that follows the ports once, when the app has answered a request: an app that works, whatever its
/// probes say.
pub const FIRST_ANSWER: &str = r#"{"answered":true}"#;

/// The ports that a queue-proxy has bound, and what proves that a caller may call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueProxyAnnouncement {
    /// The port on which it takes requests.
    pub requests: u16,
    /// Health, and the wait for a drain.
    pub admin: u16,
    /// The port on which it takes the autoscaler's link.
    pub link: u16,
    /// Knative's measurements; 0 where they are not served.
    pub stat: u16,
    /// Prometheus; 0 where the port could not be had.
    pub metrics: u16,
    /// What the link port wants to hear first from a caller; `None`: nothing, it is for this machine
    /// alone.
    #[serde(default)]
    pub link_token: Option<LinkToken>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod may outlive the `ebb` that started it, and be read by another version.
    #[test]
    fn the_line_stays_as_it_is() {
        let token = Some(LinkToken::new([7; 16]));
        let announcement =
            QueueProxyAnnouncement { requests: 1, admin: 2, link: 3, stat: 4, metrics: 5, link_token: token };
        let line = serde_json::to_string(&announcement).expect("numbers and a text are JSON");
        assert_eq!(
            line,
            r#"{"requests":1,"admin":2,"link":3,"stat":4,"metrics":5,"link_token":"07070707070707070707070707070707"}"#
        );
        let read = |line: &str| {
            serde_json::from_str::<QueueProxyAnnouncement>(line).expect("one that was announced")
        };
        assert_eq!(read(&line), announcement);
        let without = QueueProxyAnnouncement { link_token: None, ..announcement };
        assert_eq!(read(r#"{"requests":1,"admin":2,"link":3,"stat":4,"metrics":5}"#), without);
    }
}
