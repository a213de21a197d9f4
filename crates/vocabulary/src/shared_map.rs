//! How does a reader get a map of ten thousand entries while its owner goes on changing a few of them?
//!
//! The entries lie in sorted chunks, each behind an [`Arc`]. A copy of the map is one more reference. The
//! owner's next change copies the list of chunks and the one chunk that it touches; every other chunk stays
//! one piece of memory for the owner and all readers. A tree would copy less where one of a million entries
//! changes; here the list of chunks is a few hundred references, and reading is two binary searches.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The most entries of a chunk. A change copies one chunk and the list of chunks, so for ten thousand entries
/// the two are about as long.
const CHUNK_MAX: usize = 64;

/// A sorted map whose copies share memory with it until one of them is changed.
#[derive(Serialize, Deserialize)]
pub struct SharedMap<Key, Value> {
    /// None is empty, and the keys grow from chunk to chunk.
    chunks: Arc<Vec<Chunk<Key, Value>>>,
}

type Chunk<Key, Value> = Arc<Vec<(Key, Value)>>;

impl<Key, Value> SharedMap<Key, Value> {
    /// All entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|(key, value)| (key, value))
    }

    /// All values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(_, value)| value)
    }

    /// The number of entries, of all chunks together.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Whether the map has no entry.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether this map and the other are the same piece of memory, so that they cannot differ.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }
}

impl<Key: Ord, Value> SharedMap<Key, Value> {
    /// The value of a key.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        let chunk = self.chunks.get(self.chunk_of(key)?)?;
        let entry = chunk.get(place_in(chunk, key).ok()?)?;
        Some(&entry.1)
    }

    /// The chunk in which a key lies, or in which it would be put; `None` while there is no chunk.
    fn chunk_of(&self, key: &Key) -> Option<usize> {
        let begins_after = |chunk: &Chunk<Key, Value>| chunk.first().is_some_and(|(first, _)| first > key);
        let after = self.chunks.partition_point(|chunk| !begins_after(chunk));
        (!self.chunks.is_empty()).then(|| after.saturating_sub(1))
    }
}

impl<Key: Ord + Clone, Value: Clone> SharedMap<Key, Value> {
    /// Puts a value under a key; returns the value that it replaces.
    pub fn insert(&mut self, key: Key, value: Value) -> Option<Value> {
        let index = self.chunk_of(&key);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(index) = index else {
            chunks.push(Arc::new(vec![(key, value)]));
            return None;
        };
        let is_last = index + 1 == chunks.len();
        let chunk = Arc::make_mut(&mut chunks[index]);
        match place_in(chunk, &key) {
            Ok(place) => Some(std::mem::replace(&mut chunk[place].1, value)),
            Err(place) => {
                chunk.insert(place, (key, value));
                if chunk.len() > CHUNK_MAX {
                    // Keys that come in their order fill each chunk instead of half of it.
                    let is_appended = is_last && place == CHUNK_MAX;
                    let rest = chunk.split_off(if is_appended { CHUNK_MAX } else { CHUNK_MAX / 2 });
                    chunks.insert(index + 1, Arc::new(rest));
                }
                None
            }
        }
    }

    /// Takes a key out; returns its value. A map that has no such key is not copied.
    pub fn remove(&mut self, key: &Key) -> Option<Value> {
        let index = self.chunk_of(key)?;
        let place = place_in(&self.chunks[index], key).ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let (_, value) = Arc::make_mut(&mut chunks[index]).remove(place);
        // Small neighbours become one, so that a map from which much was removed has few chunks.
        let fits =
            |one: &Chunk<Key, Value>, next: &Chunk<Key, Value>| one.len() + next.len() <= CHUNK_MAX / 2;
        if chunks[index].is_empty() {
            chunks.remove(index);
        } else if index + 1 < chunks.len() && fits(&chunks[index], &chunks[index + 1]) {
            let next = chunks.remove(index + 1);
            Arc::make_mut(&mut chunks[index]).extend(next.iter().cloned());
        }
        Some(value)
    }
}

fn place_in<Key: Ord, Value>(chunk: &[(Key, Value)], key: &Key) -> Result<usize, usize> {
    chunk.binary_search_by(|(known, _)| known.cmp(key))
}

impl<Key, Value> Clone for SharedMap<Key, Value> {
    fn clone(&self) -> Self {
        Self { chunks: Arc::clone(&self.chunks) }
    }
}

impl<Key, Value> Default for SharedMap<Key, Value> {
    fn default() -> Self {
        Self { chunks: Arc::default() }
    }
}

impl<Key: fmt::Debug, Value: fmt::Debug> fmt::Debug for SharedMap<Key, Value> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl<Key: PartialEq, Value: PartialEq> PartialEq for SharedMap<Key, Value> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn numbers(count: u32) -> SharedMap<u32, u32> {
        let mut map = SharedMap::default();
        for key in 0..count {
            map.insert(key, key);
        }
        map
    }

    /// How many chunks of `now` are not those of `before`.
    fn copied(before: &SharedMap<u32, u32>, now: &SharedMap<u32, u32>) -> usize {
        let is_old = |chunk: &&Chunk<u32, u32>| before.chunks.iter().any(|old| Arc::ptr_eq(old, chunk));
        now.chunks.iter().filter(|chunk| !is_old(chunk)).count()
    }

    #[test]
    fn a_change_copies_one_chunk_of_ten_thousand_entries_and_shares_all_others() {
        let mut map = numbers(10_000);
        assert_eq!(map.chunks.len(), 10_000_usize.div_ceil(CHUNK_MAX), "keys in their order fill chunks");
        let before = map.clone();
        assert!(before.is_same(&map));
        map.insert(5000, 7);
        assert_eq!(copied(&before, &map), 1);
        map.insert(5001, 7);
        assert_eq!(copied(&before, &map), 1, "the second change of a chunk copies nothing");
        map.remove(&9000);
        assert_eq!(copied(&before, &map), 2);
        assert_eq!(
            (before.get(&5000), before.get(&9000)),
            (Some(&5000), Some(&9000)),
            "a copy stays as it was"
        );
        assert_eq!((map.get(&5000), map.get(&9000), map.len()), (Some(&7), None, 9999));
    }

    #[test]
    fn the_removal_of_an_unknown_key_copies_nothing() {
        let mut map = numbers(100);
        let before = map.clone();
        assert_eq!(map.remove(&100), None);
        assert!(map.is_same(&before));
    }

    #[test]
    fn a_shared_map_holds_what_a_tree_holds() {
        let (mut map, mut tree) = (SharedMap::default(), BTreeMap::new());
        // A linear congruential generator: this crate has no source of chance.
        let mut chance = 1_u32;
        for number in 0..20_000_u32 {
            chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = (chance >> 8) % 300;
            // Waves of insertions and of removals, so that chunks split and join.
            if (chance >> 24) % 4 < 1 + (number / 2000) % 3 {
                assert_eq!(map.insert(key, number), tree.insert(key, number));
            } else {
                assert_eq!(map.remove(&key), tree.remove(&key));
            }
            assert!(map.chunks.iter().all(|chunk| (1..=CHUNK_MAX).contains(&chunk.len())));
        }
        assert!(map.iter().eq(tree.iter()) && map.len() == tree.len());
        assert!((0..300).all(|key| map.get(&key) == tree.get(&key)));
    }
}
