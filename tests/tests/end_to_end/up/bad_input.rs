//! Bad input gets an error that names the place, the value, what is allowed and what to do; all of it at
//! once, exit code 2 at start.

use std::path::Path;
use std::process::Output;

use tests::ebb::executable;
use tests::{ConfigMap, Ebb, Service};
use tokio::process::Command;

async fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(executable())
        .args(arguments)
        .current_dir(folder)
        .output()
        .await
        .expect("the executable starts")
}

/// `ebb lint` and `ebb up` must both refuse the file with exit code 2 and every one of the texts.
async fn check_refused(yaml: &str, texts: &[&str]) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("app.yaml"), yaml).expect("the folder can be written");
    for command in [
        vec!["lint", "--images", "off", "-f", "app.yaml"],
        vec!["up", "--images", "off", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "-f", "app.yaml"],
    ] {
        let output = run(folder.path(), &command).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {errors}");
        for text in texts {
            assert!(errors.contains(text), "{command:?}: {text:?} is missing in\n{errors}");
        }
    }
}

#[tokio::test]
async fn annotations_are_refused_all_at_once() {
    let service = Service::new("bad")
        .scaling("window", "5")
        .scaling("min-scale", "-1")
        .scaling("max-scal", "3")
        .scaling("target", "NaN");
    check_refused(
        &service.yaml(),
        &[
            "app.yaml:",
            "write \"5s\"",
            "autoscaling.knative.dev/min-scale",
            "-1",
            "max-scal",
            "max-scale",
            "NaN",
        ],
    )
    .await;
}

#[tokio::test]
async fn misplaced_annotations_are_refused() {
    let yaml = Service::new("bad").yaml().replace(
        "metadata:\n  name: bad\n",
        "metadata:\n  name: bad\n  annotations:\n    autoscaling.knative.dev/min-scale: \"1\"\n",
    );
    check_refused(&yaml, &["autoscaling.knative.dev/min-scale", "spec.template.metadata.annotations"]).await;
}

#[tokio::test]
async fn broken_yaml_is_refused_with_its_place() {
    check_refused("apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: [\n", &["app.yaml:"]).await;
}

#[tokio::test]
async fn fields_that_cannot_be_honoured_are_refused_by_name() {
    let yaml = Service::new("bad")
        .yaml()
        .replace("      containers:", "      volumes:\n        - name: data\n      containers:");
    check_refused(&yaml, &["volumes"]).await;
    let image_only = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  template:\n    spec:\n      containers:\n        - image: gcr.io/x/y\n";
    check_refused(image_only, &["image", "command"]).await;
}

#[tokio::test]
async fn two_services_with_one_name_are_refused() {
    let yaml = format!("{}---\n{}", Service::new("twin").yaml(), Service::new("twin").yaml());
    check_refused(&yaml, &["twin", "app.yaml:"]).await;
}

#[tokio::test]
async fn an_unusable_configuration_is_refused_at_start() {
    let yaml = format!(
        "{}---\n{}",
        Service::new("fine").yaml(),
        ConfigMap::default().set("stable-window", "1s").set("stabel-window", "60s").yaml()
    );
    check_refused(&yaml, &["stable-window", "6s", "stabel-window"]).await;
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let output = run(folder.path(), &["up", "-f", "nowhere.yaml"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere.yaml"));
}

#[tokio::test]
async fn ports_in_use_are_named_both_at_once() {
    let taken: Vec<std::net::TcpListener> =
        (0..2).map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free")).collect();
    let addresses: Vec<String> =
        taken.iter().map(|listener| listener.local_addr().expect("it is bound").to_string()).collect();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("app.yaml"), Service::new("fine").yaml())
        .expect("the folder can be written");
    let output =
        run(folder.path(), &["up", "--listen", &addresses[0], "--api", &addresses[1], "-f", "app.yaml"])
            .await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    for text in [addresses[0].as_str(), addresses[1].as_str(), "--listen", "--api"] {
        assert!(errors.contains(text), "{text} is missing in {errors}");
    }
}

#[tokio::test]
async fn a_bad_edit_keeps_the_last_good_state_and_is_shown() {
    let service = Service::new("kept").scaling("min-scale", "1");
    let ebb = Ebb::up(std::slice::from_ref(&service), &ConfigMap::short()).await;
    let pids = ebb.until_pods("kept", 1).await.pids("app_pid");
    ebb.configure(&ConfigMap::short().set("stable-window", "1s"));
    ebb.write("kept.yaml", "kind: [\n");
    tests::eventually("both problems are shown", std::time::Duration::from_secs(30), || async {
        let (_, stdout, stderr) = ebb.run(&["get"]).await;
        let shown = stdout + &stderr;
        if shown.contains("stable-window") && shown.contains("kept.yaml") { Ok(()) } else { Err(shown) }
    })
    .await;
    assert_eq!(ebb.revision("kept").await.expect("ebb answers").pids("app_pid"), pids);
    ebb.load("kept").one().await.assert_all_answered();
    ebb.configure(&ConfigMap::short());
    ebb.rewrite(&service);
    tests::eventually("no problem is shown", std::time::Duration::from_secs(30), || async {
        let (_, stdout, stderr) = ebb.run(&["get"]).await;
        let shown = stdout + &stderr;
        if shown.contains("stable-window") || shown.contains("kept.yaml") { Err(shown) } else { Ok(()) }
    })
    .await;
}

#[tokio::test]
async fn a_missing_program_or_folder_is_a_problem_for_lint_and_a_warning_at_the_start() {
    let missing = Service::running("missing", &["no-such-program-anywhere"]).scaling("initial-scale", "0");
    let elsewhere =
        Service::new("elsewhere").scaling("initial-scale", "0").container("workingDir: /no/such/folder");
    let config = ConfigMap::short().set("allow-zero-initial-scale", "true");
    let ebb = Ebb::up(&[missing, elsewhere, Service::new("fine")], &config).await;
    let output = run(ebb.folder(), &["lint", "-f", "."]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for text in ["missing.yaml:", "no-such-program-anywhere", "elsewhere.yaml:", "/no/such/folder"] {
        assert!(said.contains(text), "{text:?} is missing in {said}");
        assert!(ebb.output().contains(text), "{text:?} is missing in {}", ebb.output());
    }
    ebb.load("fine").one().await.assert_all_answered();
}

#[tokio::test]
async fn exports_of_kubectl_are_served_and_foreign_kinds_can_be_skipped() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let export = include_str!("../../../../crates/platform-local/src/manifest/tests/export.yaml");
    std::fs::write(folder.path().join("app.yaml"), export).expect("the folder can be written");
    let output = run(folder.path(), &["lint", "-f", "app.yaml"]).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("warning:").count(), 3, "{said}");
    let foreign = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n";
    let both = format!("{}\n{foreign}", export.trim_end().trim_end_matches("---"));
    check_refused(&both, &["Deployment", "--ignore-foreign"]).await;
    std::fs::write(folder.path().join("app.yaml"), both).expect("the folder can be written");
    let directory = folder.path().to_string_lossy().into_owned();
    let ebb = Ebb::up_with(&[], &ConfigMap::short(), &["--ignore-foreign", "-f", &directory]).await;
    assert!(ebb.output().contains("Deployment"), "{}", ebb.output());
    let answer = tests::client::whole_answer(ebb.requests, "hello.default.example.com", "/").await;
    let answer = answer.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
