//! The command line as a person meets it. (An integration test of this package also makes `cargo test --workspace` build the executable that
//! the suites in `tests/` run.)

use std::process::{Command, Output};

fn ebb(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebb"))
        .args(arguments)
        .env_remove("EBB_API")
        .output()
        .expect("the executable starts")
}

#[test]
fn help_names_every_command() {
    let output = ebb(&["--help"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for command in ["up", "get", "explain", "lint", "delete", "restart", "sample-app"] {
        assert!(text.contains(command), "{command} is missing in\n{text}");
    }
}

#[test]
fn arguments_that_cannot_be_used_end_with_2() {
    for arguments in
        [&["up"][..], &["fly"], &["up", "-f", "x.yaml", "--listen", "nowhere"], &["restart", "everything"]]
    {
        let output = ebb(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_bad_address_is_answered_with_a_good_one() {
    for (flag, value) in [("--listen", "8080"), ("--api", "localhost:9000")] {
        let output = ebb(&["up", "-f", "x.yaml", flag, value]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(flag) && errors.contains("such as 127.0.0.1:8080"), "{errors}");
    }
}

#[test]
fn an_api_that_does_not_answer_is_named() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let api = format!("http://{}", unused.local_addr().expect("it is bound"));
    drop(unused);
    for arguments in [
        &["get", "--api", &api][..],
        &["explain", "x", "--api", &api],
        &["restart", "activator", "--api", &api],
    ] {
        let output = ebb(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(&api) && errors.contains("--api"), "{errors}");
    }
}

#[test]
fn the_shipped_samples_can_be_used() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
    for name in ["autoscale-go", "scale-bounds", "hard-limit", "rps", "short-windows", "config-autoscaler"] {
        let output = ebb(&["lint", "-f", &format!("{samples}/{name}.yaml")]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
