//! The ConfigMap `config-autoscaler`, as Knative's users keep it.

use std::collections::BTreeMap;

use scaling::{ClusterConfig, RevisionSettings};

use crate::manifest::fields::{Fields, Report};
use crate::manifest::yaml::{Key, Node};

/// Reads it. `None` if anything in it was refused.
pub(crate) fn read(document: &Node, report: &mut Report) -> Option<ClusterConfig> {
    let refused_before = report.troubles.len();
    let mut fields = Fields::of(document, "", report)?;
    fields.ignore(&["apiVersion", "kind", "immutable", "metadata"]);
    let data = fields.text_map("data", report);
    fields.finish(&[("binaryData", "write the settings under data")], report);
    let cluster = parse(&data, report);
    cluster.filter(|_| report.troubles.len() == refused_before)
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
