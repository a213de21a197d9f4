//! When is the app told to end? Kubernetes sends TERM to all containers at once, but runs a container's
//! preStop hook first; ours returns when the queue-proxy's last request has ended.

use serde_json::{Value, json};
use vocabulary::DRAIN_HOOK_PATH;

use crate::pod::app_containers_mut;
use crate::probes::{self, HookWait};

/// Gives every container of the app the hook, except where it has a hook of its own that does more than
/// sleep; returns a warning for each of those. The grace periods of probes are set with the hook: `own_grace`
/// is the pod's grace period before the injection, in seconds.
pub(crate) fn add(pod: &mut Value, admin_port: u16, own_grace: u64) -> Vec<String> {
    // With what the API server would add, so that it is the same before and after.
    let ours = json!({"httpGet": {"path": DRAIN_HOOK_PATH, "port": admin_port, "scheme": "HTTP"}});
    let mut warnings = Vec::new();
    for container in app_containers_mut(pod) {
        let present = container["lifecycle"].get("preStop").cloned();
        match present {
            Some(present) if present == ours => {}
            Some(present) if !only_sleeps(&present) => {
                probes::keep_grace(container, own_grace, HookWait::None);
                warnings.push(format!(
                    "container {} keeps its preStop hook, so it is told to stop when the hook ends, also while requests are under way",
                    container["name"].as_str().unwrap_or_default()
                ));
            }
            // Only together with the hook: a later pass finds the hook here, and lengthens no grace period
            // again.
            Some(_) | None => {
                container["lifecycle"]["preStop"] = ours.clone();
                probes::keep_grace(container, own_grace, HookWait::ForDrain);
            }
        }
    }
    warnings
}

/// Whether a hook only sleeps for a fixed time, as people write it where nothing waits for a drain.
fn only_sleeps(hook: &Value) -> bool {
    if hook.get("sleep").is_some() {
        return true;
    }
    let command: Vec<&str> =
        hook["exec"]["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match command.as_slice() {
        ["sleep" | "/bin/sleep" | "/usr/bin/sleep", time] => is_time(time),
        ["sh" | "/bin/sh" | "bash" | "/bin/bash", "-c", script] => {
            let words: Vec<&str> = script.split_whitespace().collect();
            matches!(words.as_slice(), ["sleep" | "/bin/sleep" | "/usr/bin/sleep", time] if is_time(time))
        }
        _ => false,
    }
}

/// Whether a text is a time such as `10` or `10s`, and nothing that a shell would read as more.
fn is_time(text: &str) -> bool {
    let number = text.trim_end_matches(['s', 'm', 'h']);
    !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}
