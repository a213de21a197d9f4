//! What the app uses, and how it ended, as the process that started this one says it: lines of JSON on
//! standard input, one a second.
//!
//! A line that cannot be read is dropped, and so is all that follows the end of input: what an app uses is
//! then not known, which is what the autoscaler takes silence for.

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tracing::warn;
use vocabulary::{AppEndLine, ResourceUsage, ResourceUsageLine};

use crate::app_life::AppLife;

/// Longer lines are none of ours.
const LONGEST_LINE: usize = 512;

/// Puts the latest usage that was said into `usage`, and the app's end into `life`, until standard input
/// ends.
pub(crate) async fn read_stdin(usage: Rc<Cell<Option<ResourceUsage>>>, life: Rc<AppLife>) {
    let pipe = io::stdin().as_fd().try_clone_to_owned().and_then(pipe::Receiver::from_owned_fd);
    match pipe {
        Ok(pipe) => read(pipe, &usage, &life).await,
        Err(error) => warn!(%error, "the app's usage cannot be read from standard input (EBB_USAGE)"),
    }
    // Without a reader there is nothing to end: the process goes on, and knows of no usage.
    std::future::pending::<()>().await;
}

async fn read(mut pipe: pipe::Receiver, usage: &Cell<Option<ResourceUsage>>, life: &AppLife) {
    let mut bytes = Vec::new();
    loop {
        match pipe.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => take_lines(&mut bytes, usage, life),
        }
    }
}

/// Takes whole lines off the front.
fn take_lines(bytes: &mut Vec<u8>, usage: &Cell<Option<ResourceUsage>>, life: &AppLife) {
    while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
        if let Ok(line) = serde_json::from_slice::<ResourceUsageLine>(&bytes[..end]) {
            usage.set(Some(line.into()));
        } else if let Ok(line) = serde_json::from_slice::<AppEndLine>(&bytes[..end]) {
            life.note_end(line.ended);
        }
        bytes.drain(..=end);
    }
    if bytes.len() > LONGEST_LINE {
        bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use vocabulary::MilliValue;

    use super::*;
    use crate::config::{AppUsageSource, PortAudience};

    #[test]
    fn lines_are_taken_as_they_come_and_the_latest_counts() {
        let usage = Cell::new(None);
        let life = AppLife::new(PortAudience::No, AppUsageSource::Stdin);
        let mut bytes = br#"{"cpu_milli":250,"memory_bytes":4096,"window_ms":15000}"#.to_vec();
        take_lines(&mut bytes, &usage, &life);
        assert_eq!(usage.get(), None, "the line is not over");
        bytes.extend(b"\nnonsense\n{\"cpu_milli\":7");
        take_lines(&mut bytes, &usage, &life);
        let expected = ResourceUsage {
            cpu: MilliValue::new(250),
            memory: MilliValue::new(4_096_000),
            window: Duration::from_secs(15),
        };
        assert_eq!(usage.take(), Some(expected));
        bytes.extend([b'x'; LONGEST_LINE]);
        take_lines(&mut bytes, &usage, &life);
        assert!(bytes.is_empty(), "nothing that never ends is kept");
    }
}
