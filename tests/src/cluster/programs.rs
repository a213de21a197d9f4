//! Programs that a person runs against the cluster: `ebb` itself, and `hey`.

use std::path::Path;
use std::process::Output;

use tokio::process::Command;

use super::{TestNamespace, Workload};

/// Runs `ebb` as the administrator of the cluster, in the namespace of the test.
pub async fn ebb(namespace: &TestNamespace, arguments: &[&str]) -> Output {
    let mut command = as_administrator(&crate::ebb::executable(), namespace);
    command.args(arguments).args(["-n", &namespace.name]);
    command.output().await.expect("the executable runs (cargo build -p ebb)")
}

/// `ebb` as a plugin of kubectl, for the administrator of the cluster. The plugin's name is a link in this
/// folder.
pub fn plugin_of_kubectl(namespace: &TestNamespace, folder: &Path) -> Command {
    let plugin = folder.join("kubectl-ebb");
    std::os::unix::fs::symlink(crate::ebb::executable(), &plugin).expect("a link");
    as_administrator(&plugin, namespace)
}

fn as_administrator(program: &Path, namespace: &TestNamespace) -> Command {
    let mut command = Command::new(program);
    command.env("KUBECONFIG", &namespace.kubeconfig).env_remove("EBB_API").kill_on_drop(true);
    command
}

/// All that a program printed, with its exit status, for an assertion's message.
pub fn text(output: &Output) -> String {
    let [out, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{}\n{out}\n{errors}", output.status)
}

/// Runs `ebb` and returns its standard output. Panics if the command fails.
pub async fn succeeds(namespace: &TestNamespace, arguments: &[&str]) -> String {
    let output = ebb(namespace, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `hey` as people run it: fifty clients, each of which sends its next request of half a second when the
/// former one is answered. Panics unless every response is a 200 and no request failed.
pub async fn hey(workload: &Workload, namespace: &TestNamespace, seconds: u32) -> String {
    let (time, clients) = (format!("{seconds}s"), "50");
    let host = format!("{}.{}.svc", workload.name(), namespace.name);
    let url = format!("http://{}/?sleep=500", workload.address);
    let mut command = Command::new("hey");
    command.args(["-z", &time, "-c", clients, "-t", "60", "-host", &host, &url]);
    let output = command.output().await.expect("hey is installed (apt-get install -y hey)");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    // The last sections of the report: a line for each status, then errors, if there are any.
    let codes = said.lines().skip_while(|line| !line.starts_with("Status code distribution")).skip(1);
    let codes: Vec<&str> = codes.map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(matches!(&codes[..], [all] if all.starts_with("[200]")), "{said}");
    said
}
