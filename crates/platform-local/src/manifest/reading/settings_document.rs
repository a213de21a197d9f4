//! Settings for everything, of which the files hold one document at most.

use std::path::PathBuf;
use std::sync::Arc;

use crate::manifest::document::{Document, place_of};
use crate::manifest::fields::Report;
use crate::manifest::yaml::YamlNode;

/// A ConfigMap of which there is one at most, as it stands in the files.
#[derive(Debug, Default)]
pub(super) enum SettingsDocument<Settings> {
    #[default]
    Absent,
    Refused,
    Flawless {
        config: Arc<Settings>,
        file: PathBuf,
    },
}

impl<Settings: Default> SettingsDocument<Settings> {
    /// The settings in force, and the file that they stand in: the last good ones, unless there are better
    /// ones or the document is gone for good.
    pub(super) fn merged_over(
        &self,
        last_good: (&Arc<Settings>, &Option<PathBuf>),
        is_removed: bool,
    ) -> AppliedSettings<Settings> {
        match self {
            Self::Flawless { config, file } => (Arc::clone(config), Some(file.clone())),
            Self::Absent if is_removed => AppliedSettings::default(),
            Self::Absent | Self::Refused => (Arc::clone(last_good.0), last_good.1.clone()),
        }
    }

    /// Reads the only document that there should be of it.
    pub(super) fn read<'d>(
        documents: impl Iterator<Item = &'d Document<'d>>,
        name: &str,
        read: impl Fn(&YamlNode, &mut Report) -> Option<Settings>,
    ) -> (Self, Vec<Report>) {
        let (mut found, mut reports) = (Self::Absent, Vec::new());
        let mut first: Option<&Document<'_>> = None;
        for document in documents {
            let mut report = Report::about(document.file);
            found = if let Some(first) = first {
                let first = place_of(first);
                let message = format!("the ConfigMap {name} is given twice, first in {first}; keep one");
                report.refuse(document.node.place, message);
                Self::Refused
            } else {
                first = Some(document);
                match read(&document.node, &mut report) {
                    Some(config) => {
                        Self::Flawless { config: Arc::new(config), file: document.file.to_owned() }
                    }
                    None => Self::Refused,
                }
            };
            reports.push(report);
        }
        (found, reports)
    }
}

/// Settings that apply, and the file that they stand in.
pub(super) type AppliedSettings<Settings> = (Arc<Settings>, Option<PathBuf>);
