//! The ConfigMap `config-autoscaler`, as Knative's users keep it.

use std::collections::BTreeMap;

use scaling::config::CONFIG_MAP_NAME;
use scaling::{ClusterConfig, RevisionSettings};

use crate::manifest::fields::{Fields, Report};
use crate::manifest::yaml::{Key, Node};

/// Reads a document of kind `ConfigMap`. `None` if anything in it was refused.
pub(crate) fn read(document: &Node, report: &mut Report) -> Option<ClusterConfig> {
    if !is_ours(document, report) {
        return None;
    }
    let refused_before = report.troubles.len();
    let mut fields = Fields::of(document, "", report)?;
    fields.ignore(&["apiVersion", "kind", "immutable", "metadata"]);
    let data = fields.text_map("data", report);
    fields.finish(&[("binaryData", "write the settings under data")], report);
    let cluster = parse(&data, report);
    cluster.filter(|_| report.troubles.len() == refused_before)
}

fn is_ours(document: &Node, report: &mut Report) -> bool {
    let written = document.field("metadata").and_then(|metadata| metadata.field("name"));
    let name = written.and_then(Node::text).unwrap_or_default();
    if name != CONFIG_MAP_NAME {
        let place = written.map_or(document.place, |node| node.place);
        report.refuse(
            place,
            format!("metadata.name is {name:?}; the only ConfigMap that is read is {CONFIG_MAP_NAME}"),
        );
    }
    name == CONFIG_MAP_NAME
}

fn parse(data: &[(&Key, &str)], report: &mut Report) -> Option<ClusterConfig> {
    let map: BTreeMap<String, String> =
        data.iter().map(|(key, value)| (key.text.clone(), (*value).to_owned())).collect();
    let place_of = |name: &str| data.iter().find(|(key, _)| key.text == name).map(|(key, _)| key.place);
    match ClusterConfig::parse(&map) {
        Ok(checked) => {
            for warning in checked.warnings {
                report.warn(place_of(&warning.key), warning.message);
            }
            if let Err(problem) = RevisionSettings::default().require_class_of_ours(&checked.value) {
                report.refuse(place_of(&problem.key), problem.message);
                return None;
            }
            Some(checked.value)
        }
        Err(problems) => {
            for problem in problems {
                report.refuse(place_of(&problem.key), problem.message);
            }
            None
        }
    }
}
