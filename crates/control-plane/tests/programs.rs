//! The one executable of a cluster's programs, started by each of its names.

use std::os::unix::process::CommandExt;
use std::process::Command;

#[test]
fn each_program_goes_by_its_name_and_ends_with_2_and_the_settings_that_are_missing() {
    for (name, settings) in [
        ("ebb-autoscaler", &["POD_NAME", "POD_NAMESPACE"] as &[_]),
        ("ebb-activator", &["POD_NAME"]),
        ("/bin/ebb-injector", &["INJECTOR_TLS", "QUEUE_PROXY_IMAGE"]),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_ebb-autoscaler")).arg0(name).env_clear().output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{name}");
        let told = String::from_utf8(output.stderr).expect("text");
        let missing: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
        assert_eq!(missing.len(), settings.len(), "{name}: {told}");
        for (line, setting) in missing.iter().zip(settings) {
            assert!(line.starts_with(&format!("{setting} is not set; ")), "{name}: {line}");
        }
    }
}
