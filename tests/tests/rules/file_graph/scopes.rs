//! The names that a function's blocks declare: they hide those of its module.

use std::collections::BTreeMap;

use super::modules::CrateModules;
use super::resolution::{Namespace, Target};

/// The scopes that are open at one place of the code, the innermost last.
#[derive(Default)]
pub(super) struct LocalScopes {
    open: Vec<LocalScope>,
}

/// What each name stands for; nothing for a variable, a type parameter or an item of the block itself.
#[derive(Default)]
struct LocalScope {
    types: BTreeMap<String, Vec<Target>>,
    values: BTreeMap<String, Vec<Target>>,
    globs: Vec<Target>,
}

impl LocalScopes {
    pub(super) fn open(&mut self) {
        self.open.push(LocalScope::default());
    }

    pub(super) fn close(&mut self) {
        self.open.pop();
    }

    /// Enters a variable, which hides what its module calls so.
    pub(super) fn bind_variable(&mut self, name: String) {
        self.innermost().values.insert(name, Vec::new());
    }

    /// Enters a type parameter or a type that the block defines.
    pub(super) fn bind_type(&mut self, name: String) {
        self.innermost().types.insert(name, Vec::new());
    }

    /// Enters a name that the block imports.
    pub(super) fn import(&mut self, name: &str, modules: &CrateModules, targets: &[Target]) {
        let scope = self.innermost();
        for (names, namespace) in
            [(&mut scope.types, Namespace::Types), (&mut scope.values, Namespace::Values)]
        {
            let targets: Vec<Target> =
                targets.iter().copied().filter(|target| modules.is_in(*target, namespace)).collect();
            names.insert(name.to_owned(), targets);
        }
    }

    /// Enters everything that the block imports from a module or an enum.
    pub(super) fn import_all(&mut self, targets: Vec<Target>) {
        self.innermost().globs.extend(targets);
    }

    /// What a name stands for by the open scopes alone; none if no scope declares it.
    pub(super) fn find(
        &self,
        modules: &CrateModules,
        name: &str,
        namespace: Namespace,
    ) -> Option<Vec<Target>> {
        self.open.iter().rev().find_map(|scope| {
            let names = match namespace {
                Namespace::Types | Namespace::All => &scope.types,
                Namespace::Values => &scope.values,
                Namespace::Macros => return None,
            };
            if let Some(targets) = names.get(name) {
                return Some(targets.clone());
            }
            let found: Vec<Target> =
                scope.globs.iter().flat_map(|glob| modules.targets_in_glob(*glob, name, namespace)).collect();
            (!found.is_empty()).then_some(found)
        })
    }

    fn innermost(&mut self) -> &mut LocalScope {
        self.open.last_mut().expect("names are entered between two calls")
    }
}
