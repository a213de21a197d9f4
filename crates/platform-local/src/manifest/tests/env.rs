//! Environment variables from `ConfigMap`s, `Secret`s and the pod.

use super::*;
use crate::manifest::data_name::{DataKind, DataName};
use crate::pod::{DownwardFact, EnvValue};

const DATA: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  COLOUR: blue
  PORT: \"9\"
  file.txt: \"$(COLOUR)\"
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: default}
type: Opaque
data:
  user: YWRtaW4=
  image: gIA=
  long: >-
    YWRt
    aW4=
stringData:
  password: p$$w
";

fn literal(text: &str) -> EnvValue {
    EnvValue::Literal { literal: text.to_owned() }
}

/// The variables of the Service in the first of the files.
fn env_of(loaded: &LoadedManifest) -> Vec<(String, EnvValue)> {
    loaded.services[&name("default/service/hello")].service.template.app.env.clone()
}

#[test]
fn variables_are_taken_from_documents_in_any_file_and_from_the_pod() {
    let service = in_container(
        "\
envFrom:
- {configMapRef: {name: settings}}
- {secretRef: {name: login}, prefix: LOGIN_}
- {secretRef: {name: nobody, optional: true}}
env:
- {name: COLOUR, value: red}
- {name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}
- {name: USER, valueFrom: {secretKeyRef: {name: login, key: long}}}
- {name: FILE, valueFrom: {configMapKeyRef: {name: settings, key: file.txt}}}
- {name: NOTHING, valueFrom: {configMapKeyRef: {name: settings, key: nothing, optional: true}}}
- {name: POD, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}
- {name: ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}",
    );
    let files = Files::with(&[&service, DATA]);
    let loaded = files.load().expect("flawless");
    let expected = [
        ("COLOUR", literal("blue")),
        ("file.txt", literal("$(COLOUR)")),
        ("LOGIN_long", literal("admin")),
        ("LOGIN_password", literal("p$$w")),
        ("LOGIN_user", literal("admin")),
        ("COLOUR", EnvValue::Written("red".to_owned())),
        ("PASSWORD", literal("p$$w")),
        ("USER", literal("admin")),
        ("FILE", literal("$(COLOUR)")),
        ("POD", EnvValue::Fact { fact: DownwardFact::Name }),
        ("ADDRESS", EnvValue::Fact { fact: DownwardFact::Address }),
    ];
    assert_eq!(env_of(&loaded), expected.map(|(name, value)| (name.to_owned(), value)));
    let warnings = files.messages(&loaded.warnings);
    let skipped =
        ["takes everything of the ConfigMap settings of namespace default but PORT", "but LOGIN_image"];
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for (warning, skipped) in warnings.iter().zip(skipped) {
        assert!(warning.contains(skipped), "{warning}");
    }
}

#[test]
fn references_that_lead_nowhere_are_refused_at_their_place() {
    let rows = [
        ("no document", "envFrom: [{configMapRef: {name: nowhere}}]"),
        ("misspelt document", "envFrom: [{configMapRef: {name: setings}}]"),
        ("no key", "env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: COLOR}}}]"),
        ("binary", "env: [{name: A, valueFrom: {secretKeyRef: {name: login, key: image}}}]"),
        ("key missing", "env: [{name: A, valueFrom: {secretKeyRef: {name: login}}}]"),
        ("name missing", "envFrom: [{secretRef: {}}]"),
        ("both", "envFrom: [{secretRef: {name: login}, configMapRef: {name: settings}}]"),
        ("neither", "env: [{name: A, valueFrom: {}}]"),
        ("value too", "env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"),
        ("another field", "env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]"),
        ("resource", "env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]"),
        ("optional as text", "envFrom: [{configMapRef: {name: settings, optional: \"yes\"}}]"),
    ];
    let rows = rows.map(|(row, lines)| (row, format!("{}---\n{DATA}", in_container(lines))));
    insta::assert_snapshot!("refused_references", table(&rows));
}

#[test]
fn values_of_documents_are_checked_and_never_shown() {
    let secret =
        |data: &str| format!("{MINIMAL}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{data}");
    let rows = [
        ("unused", secret("data: {}")),
        ("not base64", secret("data: {password: hunter2!}")),
        ("number", secret("stringData: {pin: 1234}")),
        ("misspelt", secret("stringdata: {}")),
        ("nameless", secret("data: {}").replace("{name: s}", "{}")),
        ("twice", format!("{0}\n---\n{1}", secret("data: {}"), &secret("data: {}")[MINIMAL.len() + 4..])),
    ];
    insta::assert_snapshot!("refused_data", table(&rows));
}

#[test]
fn an_edit_of_a_document_changes_the_template_and_what_is_missing_changes_it_only_later() {
    let optional = "envFrom: [{configMapRef: {name: settings, optional: true}}]";
    let data = |colour: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{COLOUR: {colour}}}\n")
    };
    let files = Files::with(&[&in_container(optional), &data("blue")]);
    let good = files.load().expect("flawless");
    files.write(1, &data("green"));
    let (green, _) = files.read_over(&good);
    assert_eq!(env_of(&green), [("COLOUR".to_owned(), literal("green"))]);
    // Refused, unreadable, or just not there: maybe it is being written.
    for text in ["a: [", &data("7"), &MINIMAL.replace("hello", "other")] {
        files.write(1, text);
        assert_eq!(env_of(&files.read_over(&green).0), env_of(&green), "{text}");
    }
    let settings =
        DataName { kind: DataKind::ConfigMap, namespace: "default".to_owned(), name: "settings".to_owned() };
    let mut reading = FilesReading::read(&files.source(), &green);
    let gone = reading.missing(&green);
    assert_eq!(gone, [Item::Data(settings)].into());
    let expired = FilesReading::read_without(&files.source(), &green, &gone);
    reading.removed = gone;
    assert_eq!(env_of(&expired.merged_over(&green)), []);
    assert!(reading.merged_over(&green).data.is_empty());
    // What is needed is refused instead, and the Service stays as it was.
    files.write(0, &in_container("envFrom: [{configMapRef: {name: settings}}]"));
    let reading = FilesReading::read_without(&files.source(), &green, &[].into());
    assert_eq!(reading.troubles, []);
    let gone = reading.missing(&green);
    let reading = FilesReading::read_without(&files.source(), &green, &gone);
    assert_eq!(reading.troubles.len(), 1, "{:?}", reading.troubles);
    assert_eq!(env_of(&reading.merged_over(&green)), env_of(&green));
}
