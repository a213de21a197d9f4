//! How processes of a pod ended, in words for people.

use std::collections::BTreeSet;

use nix::sys::wait::WaitStatus;

/// What to do about processes of these names that a container left in the background.
pub(super) fn background_in_words(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    format!(
        ", and left {names} running in the background; let the server stay in the foreground (no daemon mode, no `&`)"
    )
}

/// How a process ended, as the end of a sentence.
pub(super) fn exit_in_words(status: WaitStatus) -> String {
    match status {
        WaitStatus::Exited(_, code) => format!("exited with code {code}"),
        WaitStatus::Signaled(_, signal, _) => format!("was killed by {signal}"),
        WaitStatus::Stopped(..)
        | WaitStatus::PtraceEvent(..)
        | WaitStatus::PtraceSyscall(_)
        | WaitStatus::Continued(_)
        | WaitStatus::StillAlive => format!("ended in an unknown way ({status:?})"),
    }
}

/// What a queue-proxy means by its exit code (crate `queue-proxy` defines them), as the end of a sentence.
pub(super) fn queue_proxy_exit_reason(status: WaitStatus) -> &'static str {
    match status {
        WaitStatus::Exited(_, 2) => ", because its environment is not usable",
        WaitStatus::Exited(_, 71) => ", because the app failed its liveness probe",
        WaitStatus::Exited(_, 72) => ", because the app failed its startup probe",
        WaitStatus::Exited(..)
        | WaitStatus::Signaled(..)
        | WaitStatus::Stopped(..)
        | WaitStatus::PtraceEvent(..)
        | WaitStatus::PtraceSyscall(_)
        | WaitStatus::Continued(_)
        | WaitStatus::StillAlive => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_in_the_background_is_told_to_stay_in_the_foreground() {
        assert_eq!(background_in_words(&BTreeSet::new()), "");
        let names = ["nginx", "worker"].map(str::to_owned).into();
        let text = background_in_words(&names);
        assert!(text.starts_with(", and left nginx, worker running in the background; "), "{text}");
        assert!(text.contains("stay in the foreground"), "{text}");
    }
}
