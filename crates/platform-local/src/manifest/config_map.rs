//! The ConfigMaps with settings, as Knative's users keep them: `config-autoscaler` and
//! `config-observability`. Here is only where their data stand in a document; the crates that use the
//! settings say what the keys mean.

use std::collections::BTreeMap;

use runtime::Observability;
use settings::{ClusterConfig, RevisionSettings};
use vocabulary::{CheckedValue, Findings};

use crate::manifest::fields::{ManifestFields, Report};
use crate::manifest::yaml::YamlNode;

/// The settings that data mean, or every problem and warning of data that cannot be used.
type Reading<Settings> = Result<CheckedValue<Settings>, Findings>;

/// Reads `config-autoscaler`. `None` if anything in it was refused.
pub(crate) fn read_cluster(document: &YamlNode, report: &mut Report) -> Option<ClusterConfig> {
    read(document, report, |data| {
        let checked = ClusterConfig::parse(data).map_err(of_problems)?;
        match RevisionSettings::default().require_class_of_ours(&checked.value) {
            Ok(()) => Ok(checked),
            Err(problem) => Err(Findings { problems: vec![problem], warnings: checked.warnings }),
        }
    })
}

/// Reads `config-observability`. `None` if anything in it was refused.
pub(crate) fn read_observability(document: &YamlNode, report: &mut Report) -> Option<Observability> {
    read(document, report, Observability::parse)
}

fn read<Settings>(
    document: &YamlNode,
    report: &mut Report,
    parse: fn(&BTreeMap<String, String>) -> Reading<Settings>,
) -> Option<Settings> {
    let refused_before = report.refusals();
    let mut fields = ManifestFields::of(document, "", report)?;
    fields.ignore(&["apiVersion", "kind", "immutable", "metadata"]);
    let data = fields.text_map("data", report);
    fields.finish(&[("binaryData", "write the settings under data")], report);
    let map: BTreeMap<String, String> =
        data.iter().map(|(key, value)| (key.text.clone(), (*value).to_owned())).collect();
    let place_of = |name: &str| data.iter().find(|(key, _)| key.text == name).map(|(key, _)| key.place);
    let (settings, problems, warnings) = match parse(&map) {
        Ok(checked) => (Some(checked.value), Vec::new(), checked.warnings),
        Err(findings) => (None, findings.problems, findings.warnings),
    };
    for warning in warnings {
        report.warn(place_of(&warning.key), warning.message);
    }
    for problem in problems {
        report.refuse(place_of(&problem.key), problem.message);
    }
    settings.filter(|_| report.refusals() == refused_before)
}

fn of_problems(problems: Vec<vocabulary::Problem>) -> Findings {
    Findings { problems, warnings: Vec::new() }
}
