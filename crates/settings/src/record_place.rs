//! Where does an autoscaler of a cluster record its run?

use serde::{Deserialize, Serialize};

use super::keys::config_map as keys;
use super::limits;
use super::reader::SettingsReader;

/// As much as `ebb up --record` takes without a size.
const BYTES_MAX_DEFAULT: u64 = 256 << 20;

/// Whether the run of an autoscaler is recorded, where, and how large a record may grow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPlace {
    /// `record-directory`: an absolute path, below which each autoscaler has a folder of its name; `None`:
    /// nothing is recorded.
    pub directory: Option<String>,
    /// `record-size`: the most bytes that the record of one autoscaler may have; at least 1 MiB.
    pub bytes_max: u64,
}

impl Default for RecordPlace {
    fn default() -> Self {
        Self { directory: None, bytes_max: BYTES_MAX_DEFAULT }
    }
}

impl RecordPlace {
    /// Reads the keys of the ConfigMap.
    pub(super) fn of_cluster(reader: &mut SettingsReader<'_>) -> Self {
        let directory = reader.word(&keys::RECORD_DIRECTORY, &limits::FILE);
        let size = reader.amount(&keys::RECORD_SIZE, &limits::MEMORY);
        let bytes = size.and_then(|size| u64::try_from(size.amount.value() / 1000).ok());
        Self {
            directory: directory.filter(|directory| !directory.is_empty()),
            bytes_max: bytes.unwrap_or(BYTES_MAX_DEFAULT),
        }
    }
}
