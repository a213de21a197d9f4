//! When does a watch have to list anew, and how soon may it?

use std::time::Duration;

use kube::runtime::watcher;

/// The pause before a list after an expired watch, so that a server that refuses every watch is not asked for
/// lists without an end.
pub(super) const LIST_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Whether the changes that a watch asks for are not kept any more, and the server refuses it for that.
/// kube's watcher lists anew only if the stream says so, and else would ask for the same for ever.
pub(super) fn has_expired(error: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = error else { return false };
    status.code == 410
}
