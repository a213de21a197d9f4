//! Is the release of an installed Knative one in which ebb may stand in the place of Knative's programs?
//!
//! The kinds that ebb reads and writes there are internal (v1alpha1) and carry no promise: a release counts
//! as known only from the oldest to the newest with which ebb was tested.

/// Each object of a release of Knative's names the release in this label.
pub const KNATIVE_VERSION_LABEL: &str = "app.kubernetes.io/version";
/// N of the oldest release 1.N beside which ebb stands.
pub const KNATIVE_MINOR_MIN: u32 = 21;
/// N of the newest release 1.N that ebb was tested with.
pub const KNATIVE_MINOR_TESTED: u32 = 23;

/// What is known of a release, by its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnativeRelease {
    /// Older than 1.[`KNATIVE_MINOR_MIN`]: ebb does not stand beside it.
    TooOld,
    /// From the oldest release beside which ebb stands to the newest that was tested.
    Known,
    /// Newer than 1.[`KNATIVE_MINOR_TESTED`]: it may work.
    Untested,
    /// The version names no release, such as that of a nightly build.
    Unsaid,
}

impl KnativeRelease {
    /// Reads the text of [`KNATIVE_VERSION_LABEL`], such as `1.23.0` or `v1.23.0`.
    pub fn of(version: &str) -> Self {
        let Some(minor) = minor_of(version) else { return Self::Unsaid };
        match minor {
            ..KNATIVE_MINOR_MIN => Self::TooOld,
            KNATIVE_MINOR_MIN..=KNATIVE_MINOR_TESTED => Self::Known,
            _ => Self::Untested,
        }
    }
}

/// N of `1.N.P` or `v1.N.P`.
fn minor_of(version: &str) -> Option<u32> {
    let rest = version.trim_start_matches('v').strip_prefix("1.")?;
    rest.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_known_from_the_oldest_to_the_newest_that_was_tested() {
        for (version, expected) in [
            ("1.20.4", KnativeRelease::TooOld),
            ("1.21.0", KnativeRelease::Known),
            ("v1.23.1", KnativeRelease::Known),
            ("1.24.0", KnativeRelease::Untested),
            ("20261101-abc", KnativeRelease::Unsaid),
            ("devel", KnativeRelease::Unsaid),
            ("", KnativeRelease::Unsaid),
        ] {
            assert_eq!(KnativeRelease::of(version), expected, "{version:?}");
        }
    }
}
