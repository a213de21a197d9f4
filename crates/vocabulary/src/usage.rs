//! What does an app use of its machine? The program that started it reads that, and tells its queue-proxy:
//! one line of JSON a second.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::milli::MilliValue;

/// What a pod's app, with everything below it, used of its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Cores, averaged over the window.
    pub cpu: MilliValue,
    /// Resident bytes, at the window's end.
    pub memory: MilliValue,
    /// How long that was; it ended when this was said.
    pub window: Duration,
}

/// One line to a queue-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsageLine {
    /// Thousandths of a core, averaged over the window.
    pub cpu_milli: i64,
    /// Resident memory of its processes, in bytes.
    pub memory_bytes: u64,
    /// The length of the window, which ends now.
    pub window_ms: u64,
}

/// The last line to a queue-proxy: its app has ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppEndLine {
    /// How, for people ("the app exited with code 1").
    pub ended: String,
}

impl From<ResourceUsageLine> for ResourceUsage {
    fn from(line: ResourceUsageLine) -> Self {
        Self {
            cpu: MilliValue::new(line.cpu_milli),
            memory: MilliValue::saturated_from(i128::from(line.memory_bytes) * 1000),
            window: Duration::from_millis(line.window_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod may outlive the `ebb` that started it, and be read by another version.
    #[test]
    fn the_line_stays_as_it_is() {
        let line = ResourceUsageLine { cpu_milli: 250, memory_bytes: 4096, window_ms: 15_000 };
        let text = r#"{"cpu_milli":250,"memory_bytes":4096,"window_ms":15000}"#;
        assert_eq!(serde_json::to_string(&line).expect("numbers are JSON"), text);
        assert_eq!(serde_json::from_str::<ResourceUsageLine>(text).expect("a line"), line);
        let expected = ResourceUsage {
            cpu: MilliValue::new(250),
            memory: MilliValue::new(4_096_000),
            window: Duration::from_secs(15),
        };
        assert_eq!(ResourceUsage::from(line), expected);
    }
}
