//! A Service that a person rolled back, and until when that holds.

use std::path::PathBuf;

use crate::pod::Template;

/// The template that a person chose by a rollback, in the place of the one in the file.
#[derive(Clone, Debug)]
pub(super) struct RolledBackService {
    /// The file of the Service: once it is written again, its template is in force.
    pub(super) file: PathBuf,
    /// The template in force until then.
    pub(super) template: Template,
}
