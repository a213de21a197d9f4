//! Which item a path names: through children, imports, re-exports and globs.

use super::modules::{CrateModules, Declaration, DefinedItem, ItemId, ItemKind, ModuleId};

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Module(ModuleId),
    Item(ItemId),
    /// A variant of this enum.
    Variant(ItemId),
}

/// Where a name is looked for. A name may stand for one thing in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespace {
    /// Types, and everything that can stand before `::`.
    Types,
    Values,
    Macros,
    All,
}

/// The lookups that are under way: an import that leads back to one of them leads nowhere.
type OpenLookups = Vec<(ModuleId, String, Namespace)>;

impl CrateModules {
    /// What a path names that stands in a module.
    pub(super) fn targets(&self, module: ModuleId, path: &[String], namespace: Namespace) -> Vec<Target> {
        self.path(module, path, namespace, &mut OpenLookups::new())
    }

    /// What the rest of a path names when its beginning is known.
    pub(super) fn targets_below(
        &self,
        start: &[Target],
        rest: &[String],
        namespace: Namespace,
    ) -> Vec<Target> {
        self.below(start.to_vec(), rest, namespace, &mut OpenLookups::new())
    }

    /// The macro of this name that is in scope by the order of the text, as far as a crate has one of a name.
    pub(super) fn textual_macro(&self, name: &str) -> Option<Target> {
        let is_it = |item: &DefinedItem| item.kind == ItemKind::Macro && item.name == name;
        self.items.iter().position(is_it).map(Target::Item)
    }

    /// The item at the end of a path, the enum for a variant; a module is none.
    pub(super) fn item(&self, target: Target) -> Option<&DefinedItem> {
        match target {
            Target::Module(_) => None,
            Target::Item(id) | Target::Variant(id) => Some(&self.items[id]),
        }
    }

    /// Whether a lone name in a pattern stands for this and does not bind a variable.
    pub(super) fn is_named_by_patterns(&self, target: Target) -> bool {
        match target {
            Target::Module(_) => false,
            Target::Item(id) => [ItemKind::Constant, ItemKind::UnitStruct].contains(&self.items[id].kind),
            Target::Variant(_) => true,
        }
    }

    /// Whether a target stands in a namespace. A variant is a type and a value, as an import brings in both.
    pub(super) fn is_in(&self, target: Target, namespace: Namespace) -> bool {
        let kind = match target {
            Target::Module(_) => return [Namespace::Types, Namespace::All].contains(&namespace),
            Target::Variant(_) => return namespace != Namespace::Macros,
            Target::Item(id) => self.items[id].kind,
        };
        match namespace {
            Namespace::All => true,
            Namespace::Types => matches!(
                kind,
                ItemKind::Type | ItemKind::TupleStruct | ItemKind::UnitStruct | ItemKind::Unknown
            ),
            Namespace::Values => !matches!(kind, ItemKind::Type | ItemKind::Macro),
            Namespace::Macros => kind == ItemKind::Macro,
        }
    }

    /// What a path names, from its first segment on: the crate, the module, its parent, a name of the module,
    /// or the crate's own library if a program imports that.
    fn path(
        &self,
        module: ModuleId,
        path: &[String],
        namespace: Namespace,
        open: &mut OpenLookups,
    ) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let start = match first.as_str() {
            "crate" => vec![Target::Module(self.root(module))],
            "self" => vec![Target::Module(module)],
            "super" => self.modules[module].parent.map(Target::Module).into_iter().collect(),
            name => {
                let own = if rest.is_empty() { namespace } else { Namespace::Types };
                let found = self.lookup(module, name, own, open);
                let library = self.library.as_ref().filter(|(library, _)| library == name);
                let is_other_crate = library.filter(|(_, root)| *root != self.root(module));
                match is_other_crate {
                    Some((_, root)) if found.is_empty() => vec![Target::Module(*root)],
                    _ => found,
                }
            }
        };
        self.below(start, rest, namespace, open)
    }

    /// Follows a path from what its beginning names. All segments but the last are modules or types.
    fn below(
        &self,
        start: Vec<Target>,
        rest: &[String],
        namespace: Namespace,
        open: &mut OpenLookups,
    ) -> Vec<Target> {
        let mut targets = start;
        for (at, name) in rest.iter().enumerate() {
            let own = if at + 1 == rest.len() { namespace } else { Namespace::Types };
            targets = targets.into_iter().flat_map(|target| self.step(target, name, own, open)).collect();
        }
        targets
    }

    /// What a name means after `target::`.
    fn step(&self, target: Target, name: &str, namespace: Namespace, open: &mut OpenLookups) -> Vec<Target> {
        match target {
            Target::Module(module) if name == "super" => {
                self.modules[module].parent.map(Target::Module).into_iter().collect()
            }
            Target::Module(module) => self.lookup(module, name, namespace, open),
            Target::Item(id) if self.items[id].variants.iter().any(|variant| variant == name) => {
                vec![Target::Variant(id)]
            }
            // An associated item counts as its type.
            Target::Item(_) | Target::Variant(_) => vec![target],
        }
    }

    /// What a name means inside a module, or after its path.
    fn lookup(
        &self,
        module: ModuleId,
        name: &str,
        namespace: Namespace,
        open: &mut OpenLookups,
    ) -> Vec<Target> {
        let lookup = (module, name.to_owned(), namespace);
        if open.contains(&lookup) {
            return Vec::new();
        }
        open.push(lookup);
        let mut found = self.declared(module, name, namespace, open);
        if found.is_empty() {
            found = self.through_globs(module, name, namespace, open);
        }
        open.pop();
        if found.is_empty() {
            found.extend(self.modules[module].macro_arguments.get(name).copied().map(Target::Item));
        }
        found
    }

    /// What a module itself declares by this name, or imports by it.
    fn declared(
        &self,
        module: ModuleId,
        name: &str,
        namespace: Namespace,
        open: &mut OpenLookups,
    ) -> Vec<Target> {
        let mut found = Vec::new();
        for declaration in self.modules[module].names.get(name).into_iter().flatten() {
            match declaration {
                Declaration::Item(id) => found.push(Target::Item(*id)),
                Declaration::Module(id) => found.push(Target::Module(*id)),
                Declaration::Import(path) => found.extend(self.path(module, path, namespace, open)),
            }
        }
        found.retain(|target| self.is_in(*target, namespace));
        found
    }

    /// What a module's glob imports bring in by this name. Names that are declared hide these.
    fn through_globs(
        &self,
        module: ModuleId,
        name: &str,
        namespace: Namespace,
        open: &mut OpenLookups,
    ) -> Vec<Target> {
        let mut found = Vec::new();
        for glob in &self.modules[module].globs {
            for target in self.path(module, glob, Namespace::Types, open) {
                found.extend(self.in_glob(target, name, namespace, open));
            }
        }
        found
    }

    /// What a name means that `target::*` brings into scope.
    fn in_glob(
        &self,
        target: Target,
        name: &str,
        namespace: Namespace,
        open: &mut OpenLookups,
    ) -> Vec<Target> {
        match target {
            Target::Module(module) => {
                let is_defined =
                    |found: &Target| self.item(*found).is_none_or(|item| item.kind != ItemKind::Unknown);
                self.lookup(module, name, namespace, open).into_iter().filter(is_defined).collect()
            }
            Target::Item(id) if self.items[id].variants.iter().any(|variant| variant == name) => {
                vec![Target::Variant(id)]
            }
            Target::Item(_) | Target::Variant(_) => Vec::new(),
        }
    }

    /// As [`Self::in_glob`], for a glob inside a function.
    pub(super) fn targets_in_glob(&self, target: Target, name: &str, namespace: Namespace) -> Vec<Target> {
        self.in_glob(target, name, namespace, &mut OpenLookups::new())
    }

    /// The library or the program that a module belongs to.
    fn root(&self, module: ModuleId) -> ModuleId {
        let mut root = module;
        while let Some(parent) = self.modules[root].parent {
            root = parent;
        }
        root
    }
}
