//! The end of a process whose vital part fails: a part on which all others rely.
//!
//! Tokio catches the panic of a task and drops the task, and a thread that panics is gone; the rest of the
//! process goes on. An autoscaler without its event loop, or an activator without its link, would answer
//! health checks and do nothing. So these parts run as *vital*: a panic in one ends the process, loudly, with
//! an exit code of its own, and the service manager or Kubernetes starts the process again. A task that
//! serves one connection is not vital.

use std::any::Any;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::exit;
use std::sync::OnceLock;

use futures_util::FutureExt;
use tokio::task::JoinHandle;
use vocabulary::EXIT_PART_FAILED;

use crate::logs::print_error;

/// The file into which this process writes why it ended.
static FATAL_ERROR_FILE: OnceLock<PathBuf> = OnceLock::new();

/// From now on, a process that ends because a vital part panicked writes the reason into this file as well,
/// for the process that takes its place. Only the first call has an effect.
pub fn record_fatal_errors_in(file: PathBuf) {
    // Only a second call fails, and its file is the same.
    let _ = FATAL_ERROR_FILE.set(file);
}

/// Runs a part that the whole process relies on. If it panics, the process says so and ends with
/// [`EXIT_PART_FAILED`]. Dropping the future ends the part without a word, as with any other.
pub async fn vital<Part: Future>(name: &str, part: Part) -> Part::Output {
    match AssertUnwindSafe(part).catch_unwind().await {
        Ok(output) => output,
        Err(panic) => end(name, panic.as_ref()),
    }
}

/// As [`vital`], for the work of a thread.
pub fn vital_thread<Output>(name: &str, part: impl FnOnce() -> Output) -> Output {
    match catch_unwind(AssertUnwindSafe(part)) {
        Ok(output) => output,
        Err(panic) => end(name, panic.as_ref()),
    }
}

/// The output of a task on which the calling task relies. If that task panicked, the calling task panics too,
/// and with it the vital part to which it belongs: it would wait for ever for an output that never comes.
pub async fn relied_on<Output>(task: JoinHandle<Output>) -> Output {
    match task.await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // It was stopped, and so is this one in a moment: the runtime ends.
            Err(_stopped) => pending().await,
        },
    }
}

/// Ends the process. The state that the panic left behind is never read again.
fn end(name: &str, panic: &(dyn Any + Send)) -> ! {
    let reason = reason(panic);
    print_error(format!("{name} failed ({reason}), and nothing works without it: this process ends"));
    if let Some(file) = FATAL_ERROR_FILE.get() {
        // The message is on standard error already; a file that cannot be written changes nothing.
        let _ = std::fs::write(file, format!("{name} failed ({reason})"));
    }
    exit(EXIT_PART_FAILED.into());
}

/// The message of a panic, if it has one.
fn reason(panic: &(dyn Any + Send)) -> &str {
    let borrowed = panic.downcast_ref::<&str>().copied();
    borrowed.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::logs::{LogFormat, print_errors_as};

    /// Set in the process that this test starts, which is this test alone, to how the part fails.
    const VICTIM: &str = "EBB_TEST_VITAL_PART_PANICS";

    async fn fail(how: &str) {
        match how {
            "json" => {
                print_errors_as(LogFormat::Json);
                vital("the event loop", async { panic!("the sum is {}", 3) }).await;
            }
            "task" => drop(tokio::spawn(vital("the event loop", async { panic!("the sum is {}", 3) })).await),
            "thread" => {
                let work = || vital_thread("the event loop", || panic!("the sum is {}", 3));
                drop(std::thread::spawn(work).join());
            }
            "relied on" => {
                let answer = tokio::spawn(async { panic!("the sum is {}", 3) });
                vital("the event loop", relied_on(answer)).await;
            }
            other => panic!("{other} is no way to fail"),
        }
        panic!("the process outlived its vital part");
    }

    #[tokio::test]
    async fn a_panic_in_a_vital_part_ends_the_process_and_says_which_and_why() {
        if let Ok(how) = std::env::var(VICTIM) {
            return fail(&how).await;
        }
        let test = std::env::current_exe().expect("a process knows its executable");
        let name = "vital::tests::a_panic_in_a_vital_part_ends_the_process_and_says_which_and_why";
        for how in ["task", "thread", "relied on"] {
            let victim = Command::new(&test).args(["--exact", name, "--nocapture"]).env(VICTIM, how).output();
            let victim = victim.expect("it can be started again");
            let said = String::from_utf8_lossy(&victim.stderr);
            assert_eq!(victim.status.code(), Some(70), "{how}: {said}");
            assert!(
                said.contains("error: the event loop failed (the sum is 3), and nothing works"),
                "{said}"
            );
        }
    }

    #[tokio::test]
    async fn fatal_messages_are_json_when_log_lines_are() {
        if let Ok(how) = std::env::var(VICTIM) {
            return fail(&how).await;
        }
        let test = std::env::current_exe().expect("a process knows its executable");
        let name = "vital::tests::fatal_messages_are_json_when_log_lines_are";
        let victim = Command::new(&test).args(["--exact", name, "--nocapture"]).env(VICTIM, "json").output();
        let victim = victim.expect("it can be started again");
        let said = String::from_utf8_lossy(&victim.stderr);
        assert_eq!(victim.status.code(), Some(70), "{said}");
        let messages: Vec<String> = said
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|_| panic!("{said}")))
            .map(|line| line["fields"]["message"].as_str().unwrap_or_default().to_owned())
            .collect();
        let [panic, end] = &messages[..] else { panic!("{said}") };
        assert!(panic.contains("vital.rs") && panic.contains("the sum is 3"), "{panic}");
        assert!(end.contains("the event loop failed (the sum is 3), and nothing works"), "{end}");
    }

    #[tokio::test]
    async fn a_vital_part_that_ends_well_gives_its_output() {
        assert_eq!(vital("a sum", async { 1 + 2 }).await, 3);
        assert_eq!(vital_thread("a sum", || 1 + 2), 3);
        assert_eq!(relied_on(tokio::spawn(async { 1 + 2 })).await, 3);
    }
}
