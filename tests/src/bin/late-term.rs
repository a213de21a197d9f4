//! `late-term MILLISECONDS PROGRAM ARGUMENTS…`: an entry point that passes TERM on late, as some do that
//! start something else first; it ends as the program does.

use std::process::{Command, ExitCode};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let late = arguments.next().and_then(|milliseconds| milliseconds.parse().ok());
    let late = Duration::from_millis(late.expect("how late comes first"));
    // Before the signal is blocked, which it would inherit.
    let mut child = Command::new(arguments.next().expect("then a program"));
    let mut child = child.args(arguments).spawn().expect("it can be started");
    // In every thread, so that only the one below takes it.
    let mut term = SigSet::empty();
    term.add(Signal::SIGTERM);
    term.thread_block().expect("signals can be blocked");
    let number = Pid::from_raw(child.id().try_into().expect("processes have small numbers"));
    // It ends with this process, and a panic of it leaves the program without its TERM, which tests notice.
    std::thread::spawn(move || {
        while term.wait().is_ok() {
            std::thread::sleep(late);
            // It may have ended meanwhile.
            let _ = kill(number, Signal::SIGTERM);
        }
    });
    let code = child.wait().ok().and_then(|status| u8::try_from(status.code()?).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
