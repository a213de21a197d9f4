//! Who tells the app when it may end? Kubernetes sends TERM to all containers at once, but runs a container's
//! hook first; ours answers when the queue-proxy's last request has ended.

use serde_json::{Value, json};
use vocabulary::DRAIN_HOOK_PATH;

use crate::pod::app_containers_mut;
use crate::probes::{self, HookWait};

/// Gives every container of the app the hook, except where there is another one that does something; returns
/// a warning for each of those. What a failed probe leaves a container is put right with it: `own_grace` is
/// what the pod had before us.
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
                    "container {} keeps its preStop hook, so it is told to stop when that ends, whatever is under way",
                    container["name"].as_str().unwrap_or_default()
                ));
            }
            // Once only, with the hook: a later pass finds that here, and lengthens nothing again.
            Some(_) | None => {
                container["lifecycle"]["preStop"] = ours.clone();
                probes::keep_grace(container, own_grace, HookWait::ForDrain);
            }
        }
    }
    warnings
}

/// Whether a hook does nothing but wait, as people write it for want of a better one.
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

/// `10`, `10s`: nothing that a shell would read as more.
fn is_time(text: &str) -> bool {
    let number = text.trim_end_matches(['s', 'm', 'h']);
    !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}
