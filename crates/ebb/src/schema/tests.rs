//! The schema knows every key, and says of samples, of shapes of manifests and of their faults what the
//! reader says.

mod shapes;
mod validator;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use super::*;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("valid JSON")
}

/// The names of properties that are not called deprecated.
fn names(properties: &Value) -> BTreeSet<&str> {
    let properties = properties.as_object().expect("a mapping").iter();
    properties.filter(|(_, what)| what["deprecated"] != true).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn it_knows_every_key() {
    let schema = schema();
    let annotations = &schema["definitions"]["annotations"];
    let known = names(&annotations["properties"]);
    let of_ours = |name: &&str| settings::ANNOTATION_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let known: BTreeSet<&str> = known.into_iter().filter(of_ours).collect();
    assert_eq!(known, settings::annotation_keys().collect());
    // An unknown one of these domains is refused; the old spellings are not unknown.
    let allowed = annotations["propertyNames"]["anyOf"][1]["enum"].as_array().expect("a list");
    let allowed: BTreeSet<&str> = allowed.iter().filter_map(Value::as_str).collect();
    let all = annotations["properties"].as_object().expect("a mapping").keys().map(String::as_str);
    assert_eq!(allowed, all.filter(of_ours).collect());
    let data = &schema["definitions"]["configAutoscaler"]["properties"]["data"]["properties"];
    let keys: BTreeSet<&str> = settings::config_map_keys().chain(["_example"]).collect();
    assert_eq!(names(data), keys);
}

#[test]
fn every_reference_leads_somewhere() {
    fn visit<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
        found.extend(value["$ref"].as_str());
        match value {
            Value::Object(fields) => fields.values().for_each(|field| visit(field, found)),
            Value::Array(items) => items.iter().for_each(|item| visit(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let schema = schema();
    let mut found = BTreeSet::new();
    visit(&schema, &mut found);
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("within the schema");
        assert!(schema.pointer(pointer).is_some(), "{reference}");
    }
}

/// The sample manifests of the repository.
fn samples() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../config/samples");
    let entries = std::fs::read_dir(&folder).expect("they are there");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn the_samples_name_it_and_are_valid() {
    let schema = schema();
    let samples = samples();
    assert!(samples.len() > 5, "{samples:?}");
    for sample in samples {
        let text = std::fs::read_to_string(&sample).expect("it can be read");
        let named = text.lines().find_map(|line| line.strip_prefix("# yaml-language-server: $schema="));
        let named = named.unwrap_or_else(|| panic!("{} names no schema", sample.display()));
        assert!(sample.with_file_name(named).is_file(), "{named}");
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("a sample is YAML");
        for document in documents.iter().filter(|document| !document.is_null()) {
            assert_eq!(validator::faults(&schema, document), [""; 0], "{}", sample.display());
        }
    }
}
