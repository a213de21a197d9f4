//! Hands out a small id per name, and takes it back when the name is gone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A two-way table between names and ids. Ids of removed names are reused, lowest first, so tables indexed by
/// id stay dense.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "Name: Deserialize<'de> + Ord, Id: Deserialize<'de>"))]
pub struct Interner<Name, Id> {
    ids: BTreeMap<Name, Id>,
    names: Vec<Option<Name>>,
}

impl<Name, Id> Default for Interner<Name, Id> {
    fn default() -> Self {
        Self { ids: BTreeMap::new(), names: Vec::new() }
    }
}

impl<Name: Clone + Ord, Id: Copy + From<u32> + Into<u32>> Interner<Name, Id> {
    /// The id of `name`, a new one if it had none.
    pub fn intern(&mut self, name: &Name) -> Id {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let free = self.names.iter().position(Option::is_none).unwrap_or(self.names.len());
        if free == self.names.len() {
            self.names.push(None);
        }
        self.names[free] = Some(name.clone());
        let id = Id::from(u32::try_from(free).expect("fewer than 2^32 names are alive at once"));
        self.ids.insert(name.clone(), id);
        id
    }

    /// The id of `name`, if it has one.
    pub fn id(&self, name: &Name) -> Option<Id> {
        self.ids.get(name).copied()
    }

    /// The name behind `id`, if it is in use.
    pub fn name(&self, id: Id) -> Option<&Name> {
        let index = usize::try_from(id.into()).ok()?;
        self.names.get(index)?.as_ref()
    }

    /// Forgets `name`; its id may be given to another afterwards.
    pub fn release(&mut self, name: &Name) -> Option<Id> {
        let id = self.ids.remove(name)?;
        if let Some(slot) = usize::try_from(id.into()).ok().and_then(|index| self.names.get_mut(index)) {
            *slot = None;
        }
        Some(id)
    }

    /// All names in use with their ids, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, Id)> {
        self.ids.iter().map(|(name, &id)| (name, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PodId;

    #[test]
    fn ids_are_stable_while_a_name_is_in_use_and_dense_afterwards() {
        let mut pods: Interner<String, PodId> = Interner::default();
        let (a, b) = (pods.intern(&"a".to_owned()), pods.intern(&"b".to_owned()));
        assert_eq!((a, b), (PodId(0), PodId(1)));
        assert_eq!(pods.intern(&"a".to_owned()), a);
        assert_eq!(pods.release(&"a".to_owned()), Some(a));
        assert_eq!(pods.name(a), None);
        assert_eq!(pods.intern(&"c".to_owned()), a);
        assert_eq!(pods.name(b).map(String::as_str), Some("b"));
    }
}
