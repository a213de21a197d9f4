//! Which values does the chart have, with which defaults? The defaults of replicas, resources and the
//! priority class are those of the manifests, and the keys of the ConfigMaps are those of their `_example`.

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use super::config_keys;
use super::manifests::{ManifestText, named};
use super::text::{end_of_block, field, only};

/// The values, with `<NAME>` in the place of what a manifest tells.
const VALUES: &str = include_str!("values.yaml");
/// The schema of the values, without the keys of the ConfigMaps.
const SCHEMA: &str = include_str!("values.schema.json");
/// The Deployments, by whose names their values go.
const PROGRAMS: [&str; 3] = ["autoscaler", "activator", "injector"];
/// The ConfigMaps whose keys are values, without `config-`.
const SECTIONS: [&str; 2] = ["autoscaler", "observability"];
/// The indentation of resources in a manifest.
const RESOURCES: &str = "          ";

/// The text of the chart's `values.yaml`.
pub(super) fn values(manifests: &[ManifestText]) -> anyhow::Result<String> {
    let mut text = VALUES.to_owned();
    for program in PROGRAMS {
        let documents = named(manifests, &format!("{program}.yaml"))?.documents();
        let deployment = documents.iter().find(|document| document.contains(&"kind: Deployment"));
        let deployment = deployment.with_context(|| format!("{program}.yaml has no Deployment"))?;
        fill(&mut text, &format!("{program}.replicas"), field(deployment, "  replicas: ")?)?;
        fill(&mut text, &format!("{program}.resources"), &resources(deployment)?)?;
    }
    let class = named(manifests, "priority-class.yaml")?.documents();
    let class = class.first().context("priority-class.yaml is empty")?;
    fill(&mut text, "priorityClass.name", field(class, "  name: ")?)?;
    fill(&mut text, "priorityClass.value", field(class, "value: ")?)?;
    Ok(text)
}

/// The text of the chart's `values.schema.json`.
pub(super) fn schema(manifests: &[ManifestText]) -> anyhow::Result<String> {
    let mut schema: Value = serde_json::from_str(SCHEMA).context("the schema of the values is no JSON")?;
    for section in SECTIONS {
        let manifest = named(manifests, &format!("config-{section}.yaml"))?;
        let keys = config_keys::keys(&manifest.text);
        ensure!(!keys.is_empty(), "{} shows no key in its `_example`", manifest.name);
        let properties: Map<String, Value> = keys
            .into_iter()
            .map(|key| (key.name, json!({"type": "string", "description": key.about})))
            .collect();
        schema["properties"]["config"]["properties"][section]["properties"] = Value::Object(properties);
    }
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

fn fill(text: &mut String, name: &str, value: &str) -> anyhow::Result<()> {
    let place = format!("<{name}>");
    ensure!(text.contains(&place), "the values have no place {place}");
    *text = text.replace(&place, value);
    Ok(())
}

/// The lines of a Deployment's resources, indented as the values have them.
fn resources(deployment: &[&str]) -> anyhow::Result<String> {
    let at = only(deployment, "        resources:")?;
    let block = &deployment[at + 1..end_of_block(deployment, at)];
    let lines: Vec<&str> = block.iter().map(|line| line.strip_prefix(RESOURCES).unwrap_or(line)).collect();
    Ok(lines.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, text: &str) -> ManifestText {
        ManifestText { name: name.to_owned(), text: text.to_owned() }
    }

    fn manifests() -> Vec<ManifestText> {
        let deployment = "kind: ServiceAccount\n---\nkind: Deployment\nspec:\n  replicas: 7\n        resources:\n          # Why.\n          limits: {memory: 9Mi}\n        x: y\n";
        let keys = "data:\n  _example: |\n    # A key.\n    a: \"1\"\n";
        let mut all: Vec<ManifestText> =
            PROGRAMS.iter().map(|program| manifest(&format!("{program}.yaml"), deployment)).collect();
        all.push(manifest("priority-class.yaml", "metadata:\n  name: high\nvalue: 5\n"));
        all.extend(SECTIONS.iter().map(|section| manifest(&format!("config-{section}.yaml"), keys)));
        all
    }

    #[test]
    fn defaults_are_those_of_the_manifests() {
        let text = values(&manifests()).expect("the manifests tell everything");
        assert_eq!(text.matches("  replicas: 7\n").count(), 3, "{text}");
        assert_eq!(
            text.matches("  resources:\n    # Why.\n    limits: {memory: 9Mi}\n").count(),
            3,
            "{text}"
        );
        assert!(text.contains("  name: high\n") && text.contains("  value: 5\n"), "{text}");
        assert!(!text.contains('<'), "a place is left: {text}");
    }

    #[test]
    fn the_schema_knows_each_key_of_the_config_maps() {
        let text = schema(&manifests()).expect("the manifests tell everything");
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        for section in SECTIONS {
            let section = &schema["properties"]["config"]["properties"][section];
            assert_eq!(section["properties"]["a"]["type"], "string");
            assert_eq!(section["properties"]["a"]["description"], "A key. Default: \"1\"");
            assert_eq!(section["additionalProperties"], false, "a key that nothing reads is refused");
        }
    }
}
