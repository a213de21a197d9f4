//! What do the ConfigMaps of the cluster say at this moment, and what does the webhook say of those that
//! people write?

use std::collections::BTreeMap;
use std::path::PathBuf;

use injector::ConfigMapCheck;
use runtime::{
    MountedSettings, OBSERVABILITY_CONFIG_MAP, OLDER_TRACING_CONFIG_MAP, Observability,
    instead_of_older_tracing, vital,
};
use settings::{CONFIG_MAP_NAME, ClusterConfig};
use tokio::sync::watch;
use vocabulary::{Findings, Problem};

/// The ConfigMaps that are checked beside `config-autoscaler`.
pub(super) const OTHER_CONFIG_MAPS: &[ConfigMapCheck] = &[
    ConfigMapCheck { name: OBSERVABILITY_CONFIG_MAP, findings: Observability::findings },
    ConfigMapCheck { name: OLDER_TRACING_CONFIG_MAP, findings: findings_of_older_tracing },
];

/// Follows `config-autoscaler` as long as this process runs. Without a folder every key has its default.
pub(super) fn follow_cluster(folder: Option<PathBuf>) -> watch::Receiver<ClusterConfig> {
    follow(folder.map(|folder| {
        MountedSettings::new(CONFIG_MAP_NAME, folder, |data| {
            ClusterConfig::parse(data).map(|checked| checked.value)
        })
    }))
}

/// The same of `config-observability`, as queue-proxies are told it.
pub(super) fn follow_observability(folder: Option<PathBuf>) -> watch::Receiver<Option<String>> {
    follow(folder.map(|folder| {
        MountedSettings::new(OBSERVABILITY_CONFIG_MAP, folder, |data| match Observability::parse(data) {
            Ok(checked) => Ok(checked.value.variable()),
            Err(findings) => Err(findings.problems),
        })
    }))
}

fn follow<Settings: Default + Send + Sync + 'static>(
    mounted: Option<MountedSettings<Settings>>,
) -> watch::Receiver<Settings> {
    let Some(mounted) = mounted else { return watch::channel(Settings::default()).1 };
    let (settings, following) = mounted.follow();
    tokio::spawn(vital("the settings of the cluster", following));
    settings
}

fn findings_of_older_tracing(_: &BTreeMap<String, String>) -> Findings {
    let warning = Problem { key: String::new(), message: instead_of_older_tracing() };
    Findings { problems: Vec::new(), warnings: vec![warning] }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    /// Longer than until the folder is looked at again.
    const SOON: Duration = Duration::from_secs(10);

    fn write(folder: &Path, key: &str, value: &str) {
        std::fs::write(folder.join(key), value).expect("it can be written");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_of_an_edit_applies_if_one_key_of_it_is_refused() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        write(folder.path(), "drain-limit", "20s");
        let config = follow_cluster(Some(folder.path().to_owned()));
        let applied = || (config.borrow().drain_limit.as_secs(), config.borrow().stable_window.as_secs());
        assert_eq!(applied(), (20, 60));
        write(folder.path(), "drain-limit", "soon");
        write(folder.path(), "stable-window", "90s");
        tokio::time::sleep(SOON).await;
        assert_eq!(applied(), (20, 60));
        write(folder.path(), "drain-limit", "30s");
        tokio::time::sleep(SOON).await;
        assert_eq!(applied(), (30, 90));
    }

    #[tokio::test(start_paused = true)]
    async fn queue_proxies_are_told_what_is_told_about_requests_and_nothing_where_nothing_is() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let observability = follow_observability(Some(folder.path().to_owned()));
        assert_eq!(*observability.borrow(), None);
        write(folder.path(), "tracing-protocol", "http/protobuf");
        write(folder.path(), "tracing-endpoint", "collector:4318");
        tokio::time::sleep(SOON).await;
        let told = observability.borrow().clone().expect("there are traces");
        let told: Observability = serde_json::from_str(&told).expect("a queue-proxy reads it");
        assert_eq!(told.tracing.endpoint, "collector:4318");
        write(folder.path(), "tracing-protocol", "grpc");
        tokio::time::sleep(SOON).await;
        assert!(observability.borrow().is_some(), "what is of no use changes nothing");
        write(folder.path(), "tracing-protocol", "none");
        tokio::time::sleep(SOON).await;
        assert_eq!(*observability.borrow(), None);
        assert_eq!(*follow_observability(None).borrow(), None);
    }

    /// Each folder that the manifests name is a ConfigMap that is mounted there, and may be missing.
    #[test]
    fn the_manifests_mount_what_their_variables_name() {
        let manifests = [
            (include_str!("../../../../deploy/base/injector.yaml"), "INJECTOR_CONFIG", CONFIG_MAP_NAME),
            (
                include_str!("../../../../deploy/base/injector.yaml"),
                "INJECTOR_OBSERVABILITY",
                OBSERVABILITY_CONFIG_MAP,
            ),
            (
                include_str!("../../../../deploy/base/activator.yaml"),
                "ACTIVATOR_OBSERVABILITY",
                OBSERVABILITY_CONFIG_MAP,
            ),
        ];
        for (text, variable, config_map) in manifests {
            let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("it is YAML");
            let deployment = documents.iter().find(|document| document["kind"] == "Deployment");
            let pod = &deployment.expect("there is one")["spec"]["template"]["spec"];
            let container = &pod["containers"][0];
            let entry = |list: &Value, key: &str, value: &Value| {
                let mut entries = list.as_array().into_iter().flatten();
                entries.find(|entry| entry[key] == *value).unwrap_or_else(|| panic!("{key} {value}")).clone()
            };
            let folder = entry(&container["env"], "name", &variable.into())["value"].clone();
            let mount = entry(&container["volumeMounts"], "mountPath", &folder);
            let volume = entry(&pod["volumes"], "name", &mount["name"]);
            assert_eq!(volume["configMap"], json!({"name": config_map, "optional": true}), "{variable}");
        }
    }
}
