//! What does an autoscaler hear of manifests before any pod has run?

use orchestration::RevisionFacts;
use vocabulary::HopKey;

use crate::front_door::FrontDoor;
use crate::manifest::LoadedManifest;
use crate::supervisor::fleet::first_count;
use crate::supervisor::supervised_revision::SupervisedRevision;

/// Each Service as its platform states it when it is deployed, in the order of names. No process starts; the
/// proof that activators show to pods is empty.
pub fn first_facts(manifest: &LoadedManifest, front_door: FrontDoor) -> Vec<RevisionFacts> {
    let facts = manifest.services.values().map(|placed| {
        let wanted = first_count(&placed.service, &manifest.cluster);
        let revision = SupervisedRevision::new(placed.service.clone(), wanted, HopKey::new(String::new()));
        revision.facts(front_door)
    });
    facts.collect()
}
