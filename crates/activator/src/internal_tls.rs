//! Does an installed Knative ask its programs to speak TLS to each other, which this activator cannot?
//! (Contract of the installation, §5.6.)
//!
//! Its peers would send TLS to ports at which it answers in plain: it does not start then, and says so, as
//! Knative's own activator reads this setting once at its start.

use std::fs;
use std::path::Path;

/// The keys of `config-network` that ask for TLS, the present name before the former one.
const KEYS: [&str; 2] = ["system-internal-tls", "internal-encryption"];
/// The values of either key that ask for TLS.
const ASKING: [&str; 2] = ["enabled", "true"];

/// Why an activator must not start beside the `config-network` that is mounted in `folder`; `None` if it may,
/// as where there is no such ConfigMap.
pub(crate) fn refusal(folder: &Path) -> Option<String> {
    let mut written = KEYS.iter().filter_map(|key| Some((key, fs::read_to_string(folder.join(key)).ok()?)));
    let (key, value) = written.next()?;
    let value = value.trim();
    let is_asked = ASKING.iter().any(|asking| value.eq_ignore_ascii_case(asking));
    is_asked.then(|| {
        format!(
            "config-network: {key} is {value:?}: ebb does not speak TLS between ingress, activator and pods yet; keep Knative's own activators, or turn it off"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn must_refuse_internal_tls_by_name_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let refused = || refusal(folder.path());
        let write = |key: &str, value: &str| {
            fs::write(folder.path().join(key), value).expect("it can be written");
        };
        assert_eq!(refused(), None, "no such ConfigMap is there");
        write("internal-encryption", "true");
        let text = refused().expect("its peers send TLS");
        assert!(text.contains("internal-encryption is \"true\""), "{text}");
        write("system-internal-tls", "Disabled");
        assert_eq!(refused(), None, "the present name goes before the former one");
        write("system-internal-tls", "Enabled\n");
        let text = refused().expect("its peers send TLS");
        assert!(text.contains("system-internal-tls is \"Enabled\""), "{text}");
    }
}
