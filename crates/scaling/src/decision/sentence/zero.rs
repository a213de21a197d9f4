//! The sentences of the rules around zero.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::format_duration;

use super::numbers::{is_one, rough};

/// Sentences of the rules around zero. The time to go is part of why a pod stays, but not of a reason, which
/// would otherwise differ at every look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ZeroText {
    Disabled,
    InFlight { requests: f64, age: Option<Duration> },
    GivenUp { timeout: Duration },
    Starting { timeout: Duration },
    ActivatorsFirst,
    RecentlyActive { window: Duration, to_go: Option<Duration> },
    Unacknowledged,
    NoTraffic { time: Duration },
    Retained { retention: Duration, to_go: Option<Duration> },
    Answered { time: Duration },
    Grace { grace: Duration, to_go: Option<Duration> },
}

impl fmt::Display for ZeroText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Disabled => to.write_str("scale to zero is turned off (enable-scale-to-zero)"),
            Self::InFlight { requests, age } => {
                write!(to, "{requests} {} in flight", if is_one(requests) { "request" } else { "requests" })?;
                if let Some(age) = age {
                    write!(to, " for {}", rough(age))?;
                }
                to.write_str(": one pod stays (in-flight-holds-pods)")
            }
            Self::GivenUp { timeout } => {
                let timeout = format_duration(timeout);
                write!(
                    to,
                    "no pods got ready within the activation timeout of {timeout}, and no request waits: given up"
                )
            }
            Self::Starting { timeout } => {
                let timeout = format_duration(timeout);
                write!(to, "still starting; given up {timeout} after the start if no request waits then")
            }
            Self::ActivatorsFirst => to.write_str("the activators take over first, then the last pod may go"),
            Self::RecentlyActive { window, to_go } => {
                let window = format_duration(window);
                write!(to, "active for less than the stable window of {window}: one pod stays")?;
                write_to_go(to, to_go)
            }
            Self::Unacknowledged => {
                to.write_str("not every activator has acknowledged that it answers for the revision")
            }
            Self::NoTraffic { time } => {
                write!(to, "no traffic for {}, and the activators answer", rough(time))
            }
            Self::Retained { retention, to_go } => {
                let retention = format_duration(retention);
                write!(to, "the last pod is retained for {retention} after traffic ended")?;
                write_to_go(to, to_go)
            }
            Self::Answered { time } => {
                write!(to, "no traffic, and the activators have answered for {}", rough(time))
            }
            Self::Grace { grace, to_go } => {
                let grace = format_duration(grace);
                write!(to, "the activators must answer for the grace period of {grace} first")?;
                write_to_go(to, to_go)
            }
        }
    }
}

/// Rounded up, so that it never says that nothing is left.
fn write_to_go(to: &mut fmt::Formatter<'_>, time: Option<Duration>) -> fmt::Result {
    let Some(time) = time else { return Ok(()) };
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    write!(to, "; {} to go", format_duration(Duration::from_secs(seconds)))
}
