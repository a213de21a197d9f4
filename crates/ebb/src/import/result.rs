//! What a document becomes, and how that is printed.

use std::fmt::Write as _;

use settings::hpa::reading::{self, HpaDocument};
use settings::hpa::{spec_of, yaml_of};
use settings::{ClusterConfig, RevisionSettings, duration_range};
use vocabulary::{Problem, format_duration, parse_duration};

use crate::annotate_command::annotate_command;

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
    /// Leaves what an autoscaler takes: durations are brought into their limits, and an annotation that would
    /// be refused is left out. Both are said, and what would be taken otherwise than it looks.
    pub(super) fn check(&mut self) {
        self.clamp();
        let cluster = ClusterConfig::default();
        loop {
            let annotations = self.annotations.iter().cloned().collect();
            let (problems, warnings) = match RevisionSettings::read(&annotations, &cluster, None) {
                Ok(checked) => {
                    let class = checked.value.require_class_of_ours(&cluster).err();
                    (Vec::from_iter(class), checked.warnings)
                }
                Err(problems) => (problems, Vec::new()),
            };
            let before = self.annotations.len();
            self.annotations.retain(|(key, _)| problems.iter().all(|problem| problem.key != *key));
            let left_out = problems
                .iter()
                .map(|problem| format!("left out, as it would be refused: {}", problem.message));
            self.notes.extend(left_out);
            // Each round but the last leaves something out.
            if self.annotations.len() == before {
                self.notes.extend(messages(warnings));
                return;
            }
        }
    }

    /// Brings durations into the limits of their annotations, which other projects do not have.
    fn clamp(&mut self) {
        for (key, value) in &mut self.annotations {
            let Some(range) = duration_range(key) else { continue };
            let Ok(written) = parse_duration(value) else { continue };
            let allowed = written.clamp(*range.start(), *range.end());
            if allowed != written {
                let allowed = format_duration(allowed);
                self.notes.push(format!(
                    "{key} would be {value}, and is {allowed}, the nearest value that is allowed"
                ));
                *value = allowed;
            }
        }
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
        if !self.annotations.is_empty() {
            let command = annotate_command(self.workload().as_deref(), &self.annotations);
            let _ = writeln!(text, "# on a cluster, in one line:\n# {command}");
        }
        text
    }

    /// The workload as `kubectl` names it; `None` where the document names none.
    fn workload(&self) -> Option<String> {
        let (kind, name) = self.target.split_once(' ')?;
        let is_workload = kind != "Service" && !name.contains(' ');
        is_workload.then(|| format!("{}/{name}", kind.to_lowercase()))
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
