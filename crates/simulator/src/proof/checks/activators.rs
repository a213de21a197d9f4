//! A late owner changes nothing at an activator, and nothing is acknowledged that is not in force.

use std::collections::BTreeMap;

use throttling::ActivatorEvent;
use vocabulary::{ActivatorWord, Bucket, Epoch, Ownership, RevisionName, Version};

use crate::proof::check_failure::{CheckFailure, Checked};
use crate::proof::fault::OWNERS;
use crate::proof::trial_event::{ActivatorProcess, ConnectionNumber};

const IN_FORCE_GROWS: &str = "the version in force at an activator only grows";
const LATE_OWNER: &str = "a late owner changes nothing";
const ACKNOWLEDGED: &str = "an activator acknowledges what is in force";
const EMPTY: &str = "an activator that holds requests is not empty";
const SECONDS_GROW: &str = "each second is said once on a link";

/// What each process of an activator has heard and said.
#[derive(Debug, Default)]
pub(super) struct ActivatorChecks {
    /// The greatest epoch that was named for a bucket, by the boot of the activator.
    claims: BTreeMap<ClaimedBucket, Epoch>,
    seconds: BTreeMap<ConnectionNumber, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClaimedBucket {
    boot: u64,
    bucket: Bucket,
}

impl ActivatorChecks {
    pub(super) fn ordered(
        &mut self,
        process: ActivatorProcess,
        event: &ActivatorEvent,
        before: Option<Version>,
        after: Option<Version>,
    ) -> Checked {
        if let ActivatorEvent::SyncBegan { ownership, .. } = event {
            for (&bucket, &epoch) in &ownership.epochs {
                let claim = self.claims.entry(ClaimedBucket { boot: process.boot, bucket }).or_default();
                *claim = epoch.max(*claim);
            }
        }
        if let (Some(before), Some(after)) = (before, after)
            && after < before
        {
            let text = format!("activator {} has {after} after {before}", process.activator.0);
            return Err(CheckFailure::new(IN_FORCE_GROWS, text));
        }
        let ActivatorEvent::Assigned { assignment, .. } = event else { return Ok(()) };
        let bucket = bucket_of(&assignment.revision);
        let claim = self.claims.get(&ClaimedBucket { boot: process.boot, bucket });
        let is_late = claim.is_some_and(|claim| assignment.version.epoch < *claim);
        if is_late && before != after {
            let text = format!(
                "activator {} goes from {before:?} to {after:?} by {} although epoch {claim:?} is claimed",
                process.activator.0, assignment.version
            );
            return Err(CheckFailure::new(LATE_OWNER, text));
        }
        Ok(())
    }

    pub(super) fn said(
        &mut self,
        connection: ConnectionNumber,
        word: &ActivatorWord,
        in_force: Option<Version>,
        held: u32,
    ) -> Checked {
        match word {
            ActivatorWord::Acknowledged { revision, version } => match in_force {
                Some(in_force) if in_force < *version => {
                    let text = format!("{revision}: {version}, and {in_force} is in force");
                    Err(CheckFailure::new(ACKNOWLEDGED, text))
                }
                Some(_) | None => Ok(()),
            },
            ActivatorWord::Emptied { revision } if held > 0 => {
                Err(CheckFailure::new(EMPTY, format!("{revision}: {held} requests are held")))
            }
            ActivatorWord::Loads { second, .. } => {
                let before = self.seconds.insert(connection, *second);
                match before {
                    Some(before) if before >= *second => {
                        let text = format!("second {second} after {before}");
                        Err(CheckFailure::new(SECONDS_GROW, text))
                    }
                    Some(_) | None => Ok(()),
                }
            }
            ActivatorWord::Emptied { .. }
            | ActivatorWord::Hello(_)
            | ActivatorWord::Present { .. }
            | ActivatorWord::Draining => Ok(()),
        }
    }
}

fn bucket_of(revision: &RevisionName) -> Bucket {
    let buckets = u16::try_from(OWNERS).unwrap_or(u16::MAX);
    Ownership { epochs: BTreeMap::new(), buckets }.bucket_of(revision)
}
