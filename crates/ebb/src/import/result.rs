//! What a document becomes, and how that is printed.

use std::fmt::Write as _;

use settings::hpa::reading::{self, HpaDocument};
use settings::hpa::{spec_of, yaml_of};
use settings::{ClusterConfig, RevisionSettings};
use vocabulary::Problem;

const CLASS: &str = "autoscaling.knative.dev/class";
const HPA: &str = "hpa.autoscaling.knative.dev";

/// The annotations that one document becomes, with what is to be said of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ImportResult {
    /// What it scales, for people.
    pub(super) target: String,
    /// In the order printed; those whose value has several lines are written as a block.
    pub(super) annotations: Vec<(String, String)>,
    /// What has no equivalent, and what to look at.
    pub(super) notes: Vec<String>,
}

impl ImportResult {
    /// Says what of it an autoscaler would not take, or would take otherwise than it looks.
    pub(super) fn check(&mut self) {
        let annotations = self.annotations.iter().cloned().collect();
        let cluster = ClusterConfig::default();
        let said = match RevisionSettings::read(&annotations, &cluster, None) {
            Ok(checked) => {
                let class = checked.value.require_class_of_ours(&cluster).err();
                checked.warnings.into_iter().chain(class).collect()
            }
            Err(problems) => problems,
        };
        self.notes.extend(messages(said));
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "# {}: these annotations, on one machine in spec.template.metadata.annotations of the Service, on a\n\
             # cluster in metadata.annotations of the workload.\n",
            self.target
        );
        for (key, value) in &self.annotations {
            match value.strip_suffix('\n') {
                Some(block) => {
                    let _ = writeln!(text, "{key}: |");
                    for line in block.lines() {
                        let _ = writeln!(text, "  {line}");
                    }
                }
                None => {
                    let _ = writeln!(text, "{key}: {value:?}");
                }
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "# note: {note}");
        }
        text
    }
}

/// The class and the document.
pub(super) fn document_annotations(document: &HpaDocument) -> Vec<(String, String)> {
    vec![
        (CLASS.to_owned(), HPA.to_owned()),
        (reading::DOCUMENT_ANNOTATION.to_owned(), yaml_of(&spec_of(document))),
    ]
}

pub(super) fn messages(problems: Vec<Problem>) -> Vec<String> {
    problems.into_iter().map(|problem| problem.message).collect()
}
