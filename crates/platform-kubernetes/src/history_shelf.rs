//! Histories in ConfigMaps of our own namespace: `ebb-history-BUCKET-SLOT-PART`, where SLOT is the day since
//! 1970 modulo 16, so that a day takes the place of the one sixteen days before.
//!
//! Only what stands in the right labels is read, and only objects with these names are written. Each request
//! looks at the right of the bucket's owner before it is sent, as every other write does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::Failure;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use orchestration::Fence;
use parking_lot::Mutex;
use platform::{HistoryShelf, ShelfFault, ShelfFuture, ShelvedDay};
use vocabulary::Bucket;

use crate::cluster_inbox::ClusterInbox;
use crate::requests::{Requests, post_parameters, within_time};

/// A ConfigMap holds at most 1 MiB, and its bytes are sent as text that is a third longer.
const PIECE_BYTES_MAX: usize = 512 * 1024;
/// All buckets together: a quarter of a gigabyte of the API server's store at the most.
const MAPS_MAX: usize = 512;
/// Fifteen days and the one that runs.
const SLOTS: u64 = 16;
/// How long the API server may take for some megabytes.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

const BUCKET: &str = "ebb.dev/history-bucket";
const SLOT: &str = "ebb.dev/history-slot";
const DAY: &str = "ebb.dev/history-day";
const DATA: &str = "histories";

/// The shelf that is made of ConfigMaps.
pub(crate) struct ConfigMapShelf {
    requests: Requests,
    /// Where people are told of trouble.
    inbox: Arc<ClusterInbox>,
    /// Why the histories of a bucket of ours could not be read or written last, and what follows.
    troubles: Mutex<BTreeMap<Bucket, String>>,
}

impl std::fmt::Debug for ConfigMapShelf {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("ConfigMapShelf").finish_non_exhaustive()
    }
}

impl HistoryShelf for ConfigMapShelf {
    fn piece_bytes_max(&self) -> usize {
        PIECE_BYTES_MAX
    }

    fn read(&self, bucket: Bucket) -> ShelfFuture<'_, Vec<ShelvedDay>> {
        Box::pin(async move {
            let unread = "they cannot be read, so class kpa alone decides where prediction reads them";
            self.told(bucket, unread, self.days_of(bucket).await)
        })
    }

    fn write(&self, fence: Fence, day: ShelvedDay) -> ShelfFuture<'_, ()> {
        Box::pin(async move {
            let unwritten = "what is measured is in memory alone, and another owner begins without it";
            self.told(fence.bucket, unwritten, self.put(fence, day).await)
        })
    }
}

impl ConfigMapShelf {
    pub(crate) fn new(requests: Requests, inbox: Arc<ClusterInbox>) -> Self {
        Self { requests, inbox, troubles: Mutex::default() }
    }

    /// Tells people whether the histories of all buckets are kept, and what follows if they are not. That
    /// another autoscaler owns the bucket is no trouble, and where the API server forbids ebb to keep
    /// histories, none were promised.
    fn told<Answer>(
        &self,
        bucket: Bucket,
        consequence: &str,
        answer: Result<Answer, ShelfFault>,
    ) -> Result<Answer, ShelfFault> {
        let trouble = match &answer {
            Err(fault @ (ShelfFault::Full { .. } | ShelfFault::Failed(_))) => {
                Some(format!("{fault}; {consequence}"))
            }
            Ok(_) | Err(ShelfFault::NotOwner | ShelfFault::Forbidden(_)) => None,
        };
        let mut troubles = self.troubles.lock();
        match trouble {
            Some(trouble) => troubles.insert(bucket, trouble),
            None => troubles.remove(&bucket),
        };
        // The histories of a bucket that was given away are neither read nor written here any more, so no
        // success would end its trouble.
        troubles.retain(|bucket, _| self.requests.rights.lock().contains_key(bucket));
        let kept = troubles.first_key_value().map_or(Ok(()), |(_, trouble)| Err(trouble.clone()));
        self.inbox.update(|contents| contents.histories = Some(kept));
        answer
    }

    async fn days_of(&self, bucket: Bucket) -> Result<Vec<ShelvedDay>, ShelfFault> {
        // Without the component the list would be refused every ten minutes.
        if !self.requests.may_list_config_maps().await.map_err(fault_of)? {
            return Err(ShelfFault::Forbidden("this account may not list ConfigMaps".to_owned()));
        }
        let mut days = BTreeMap::<u64, BTreeMap<usize, Vec<u8>>>::new();
        for slot in 0..SLOTS {
            for map in self.listed(&format!("{BUCKET}={},{SLOT}={slot}", bucket.0)).await? {
                let Some((day, part)) = place_of(&map) else { continue };
                let piece = map.binary_data.and_then(|mut data| data.remove(DATA));
                days.entry(day).or_default().insert(part, piece.unwrap_or_default().0);
            }
        }
        // A clock that was wrong left days that are not of the last fifteen.
        let newest = days.last_key_value().map_or(0, |(day, _)| *day);
        let kept = days.into_iter().filter(|(day, _)| newest - day < SLOTS);
        Ok(kept.map(|(day, parts)| ShelvedDay { day, pieces: parts.into_values().collect() }).collect())
    }

    async fn put(&self, fence: Fence, day: ShelvedDay) -> Result<(), ShelfFault> {
        let slot = day.day % SLOTS;
        let former = self.listed(&format!("{BUCKET}={},{SLOT}={slot}", fence.bucket.0)).await?;
        let (maps, of_histories) = (self.maps(), ListParams::default().labels(BUCKET));
        let all = within_time(ANSWER_WITHIN, maps.list_metadata(&of_histories)).await.map_err(fault_of)?;
        let others = all.items.len().saturating_sub(former.len());
        let wanted = others + day.pieces.len();
        if wanted > MAPS_MAX {
            return Err(ShelfFault::Full { wanted, most: MAPS_MAX });
        }
        for (part, piece) in day.pieces.iter().enumerate() {
            self.put_one(fence, &map_of(fence.bucket, day.day, part, piece)).await?;
        }
        for map in &former {
            if part_of(map).is_some_and(|part| part >= day.pieces.len()) {
                self.remove(fence, map.metadata.name.as_deref().unwrap_or_default()).await?;
            }
        }
        Ok(())
    }

    async fn put_one(&self, fence: Fence, map: &ConfigMap) -> Result<(), ShelfFault> {
        let (maps, parameters) = (self.maps(), post_parameters());
        let name = map.metadata.name.as_deref().unwrap_or_default();
        let replaced = self.requests.fenced(fence, maps.replace(name, &parameters, map)).await;
        let written = match replaced {
            Err(Failure::Gone(_)) => self.requests.fenced(fence, maps.create(&parameters, map)).await,
            other => other,
        };
        written.map(drop).map_err(fault_of)
    }

    async fn remove(&self, fence: Fence, name: &str) -> Result<(), ShelfFault> {
        match self.requests.fenced(fence, self.maps().delete(name, &DeleteParams::default())).await {
            Ok(_) | Err(Failure::Gone(_)) => Ok(()),
            Err(failure) => Err(fault_of(failure)),
        }
    }

    /// The maps with these labels. Those of one slot are few: a list of all days at once could be long.
    async fn listed(&self, labels: &str) -> Result<Vec<ConfigMap>, ShelfFault> {
        let parameters = ListParams::default().labels(labels);
        let listed = within_time(ANSWER_WITHIN, self.maps().list(&parameters)).await;
        listed.map(|list| list.items).map_err(fault_of)
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.requests.client.clone(), &self.requests.namespace)
    }
}

fn map_of(bucket: Bucket, day: u64, part: usize, piece: &[u8]) -> ConfigMap {
    let slot = day % SLOTS;
    let labels = [
        ("app.kubernetes.io/name", "ebb".to_owned()),
        (BUCKET, bucket.0.to_string()),
        (SLOT, slot.to_string()),
    ];
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("ebb-history-{}-{slot}-{part}", bucket.0)),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()),
            annotations: Some(BTreeMap::from([(DAY.to_owned(), day.to_string())])),
            ..ObjectMeta::default()
        },
        binary_data: Some(BTreeMap::from([(DATA.to_owned(), ByteString(piece.to_vec()))])),
        ..ConfigMap::default()
    }
}

/// The day of a map, and its place among those of the day.
fn place_of(map: &ConfigMap) -> Option<(u64, usize)> {
    let day = map.metadata.annotations.as_ref()?.get(DAY)?.parse().ok()?;
    Some((day, part_of(map)?))
}

/// The place of a map among those of its day, which its name ends with.
fn part_of(map: &ConfigMap) -> Option<usize> {
    map.metadata.name.as_ref()?.rsplit('-').next()?.parse().ok()
}

fn fault_of(failure: Failure) -> ShelfFault {
    match failure {
        Failure::NotOwner => ShelfFault::NotOwner,
        Failure::Forbidden(words) => ShelfFault::Forbidden(words),
        other @ (Failure::Gone(_) | Failure::Conflict | Failure::Refused(_) | Failure::Passing { .. }) => {
            ShelfFault::Failed(other.words().to_owned())
        }
    }
}
