//! The modules of a crate, parsed: the file of each, and the names that each one declares.

use std::collections::BTreeMap;

use syn::buffer::TokenBuffer;
use syn::ext::IdentExt as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, Token, UseTree, Visibility};

use super::SourceTexts;
use super::tokens::lone_names;

/// The place of a module in [`CrateModules::modules`].
pub(super) type ModuleId = usize;
/// The place of an item in [`CrateModules::items`].
pub(super) type ItemId = usize;

/// Every module of a crate's library and programs.
pub(super) struct CrateModules {
    pub(super) modules: Vec<Module>,
    pub(super) items: Vec<DefinedItem>,
    /// The name by which programs of the crate import its library, and the library's root.
    pub(super) library: Option<(String, ModuleId)>,
}

/// One module, either a whole file or a part of one in braces.
pub(super) struct Module {
    pub(super) file: String,
    pub(super) parent: Option<ModuleId>,
    pub(super) names: BTreeMap<String, Vec<Declaration>>,
    pub(super) globs: Vec<Vec<String>>,
    /// Names among the arguments of a macro that stands in the place of an item: it may define these.
    pub(super) macro_arguments: BTreeMap<String, ItemId>,
    /// The module's code without its child modules and without what only tests compile.
    pub(super) code: Vec<Item>,
}

/// What a name stands for in the module that declares it.
pub(super) enum Declaration {
    Item(ItemId),
    Module(ModuleId),
    Import(Vec<String>),
}

/// An item of the crate.
pub(super) struct DefinedItem {
    pub(super) file: String,
    pub(super) name: String,
    pub(super) kind: ItemKind,
    /// The names of an enum's variants; empty for every other item.
    pub(super) variants: Vec<String>,
}

/// Decides in which namespaces an item stands, and whether a pattern can name it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// An alias, an enum, a trait, a union or a struct with named fields.
    Type,
    TupleStruct,
    UnitStruct,
    Function,
    Constant,
    Macro,
    /// Perhaps defined by a macro.
    Unknown,
}

/// One name that an import brings into scope.
pub(super) struct ImportedName {
    pub(super) name: String,
    pub(super) path: Vec<String>,
}

/// The leaves of an import, and the modules and enums from which it takes everything.
#[derive(Default)]
pub(super) struct ImportLeaves {
    pub(super) names: Vec<ImportedName>,
    pub(super) globs: Vec<Vec<String>>,
}

impl CrateModules {
    /// Parses every file that the crate's roots declare.
    pub(super) fn parse(name: &str, sources: &SourceTexts) -> Self {
        let mut modules = Self { modules: Vec::new(), items: Vec::new(), library: None };
        for root in sources.keys().filter(|file| is_root(file)) {
            let folder = root.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
            let id = modules.add_file(root, &folder, None, sources);
            if root == "lib.rs" {
                modules.library = Some((name.replace('-', "_"), id));
            }
        }
        modules
    }

    /// Adds a file's module and all modules below it. The files of its children lie in `folder`.
    fn add_file(
        &mut self,
        file: &str,
        folder: &str,
        parent: Option<ModuleId>,
        sources: &SourceTexts,
    ) -> ModuleId {
        let text = sources.get(file).unwrap_or_else(|| panic!("{file} is declared and not there"));
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.add_module(Place { file, folder, parent }, parsed.items, sources)
    }

    /// Adds a module with these items, and the modules below it. Its own code keeps its order.
    fn add_module(&mut self, place: Place<'_>, items: Vec<Item>, sources: &SourceTexts) -> ModuleId {
        let id = self.modules.len();
        self.modules.push(Module {
            file: place.file.to_owned(),
            parent: place.parent,
            names: BTreeMap::new(),
            globs: Vec::new(),
            macro_arguments: BTreeMap::new(),
            code: Vec::new(),
        });
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            if let Item::Mod(child) = item {
                self.add_child(id, &place, child, sources);
            } else {
                self.declare(id, &item);
                self.modules[id].code.push(item);
            }
        }
        id
    }

    /// Adds a child module: its items stand in braces, in `name.rs` beside its parent's children, or in
    /// `name/mod.rs`.
    fn add_child(&mut self, id: ModuleId, place: &Place<'_>, child: syn::ItemMod, sources: &SourceTexts) {
        let name = child.ident.unraw().to_string();
        let below = format!("{}{name}/", place.folder);
        let child_id = if let Some((_, items)) = child.content {
            self.add_module(Place { file: place.file, folder: &below, parent: Some(id) }, items, sources)
        } else {
            let beside = format!("{}{name}.rs", place.folder);
            let file = if sources.contains_key(&beside) { beside } else { format!("{below}mod.rs") };
            self.add_file(&file, &below, Some(id), sources)
        };
        self.modules[id].names.entry(name).or_default().push(Declaration::Module(child_id));
    }

    /// Enters the names that an item declares.
    fn declare(&mut self, module: ModuleId, item: &Item) {
        if let Item::Use(import) = item {
            if import.leading_colon.is_none() {
                let leaves = ImportLeaves::of(&import.tree);
                for ImportedName { name, path } in leaves.names {
                    self.modules[module].names.entry(name).or_default().push(Declaration::Import(path));
                }
                self.modules[module].globs.extend(leaves.globs);
            }
            return;
        }
        if let Item::Macro(invocation) = item
            && invocation.ident.is_none()
        {
            let arguments = TokenBuffer::new2(invocation.mac.tokens.clone());
            for name in lone_names(arguments.begin()) {
                let id = self.add_item(module, &name, ItemKind::Unknown);
                self.modules[module].macro_arguments.insert(name, id);
            }
            return;
        }
        if let Some((name, kind)) = defined(item) {
            let id = self.add_item(module, &name, kind);
            if let Item::Enum(item) = item {
                let variants = item.variants.iter().map(|variant| variant.ident.unraw().to_string());
                self.items[id].variants = variants.collect();
            }
            self.modules[module].names.entry(name).or_default().push(Declaration::Item(id));
        }
    }

    /// Adds an item that a module's file defines; returns its place in the list of all items.
    fn add_item(&mut self, module: ModuleId, name: &str, kind: ItemKind) -> ItemId {
        let file = self.modules[module].file.clone();
        self.items.push(DefinedItem { file, name: name.to_owned(), kind, variants: Vec::new() });
        self.items.len() - 1
    }
}

/// Where a module's code stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    file: &'p str,
    /// Holds the files of the module's children; empty, or with a slash at its end.
    folder: &'p str,
    parent: Option<ModuleId>,
}

impl ImportLeaves {
    pub(super) fn of(tree: &UseTree) -> Self {
        let mut leaves = Self::default();
        leaves.add(tree, &mut Vec::new());
        leaves
    }

    fn add(&mut self, tree: &UseTree, prefix: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.unraw().to_string());
                self.add(&path.tree, prefix);
                prefix.pop();
            }
            UseTree::Name(leaf) => self.add_leaf(prefix, &leaf.ident, None),
            UseTree::Rename(leaf) => self.add_leaf(prefix, &leaf.ident, Some(&leaf.rename)),
            UseTree::Glob(_) => self.globs.push(prefix.clone()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add(tree, prefix);
                }
            }
        }
    }

    /// Adds one name that an import brings in, by its own name or by the one after `as`.
    fn add_leaf(&mut self, prefix: &[String], leaf: &syn::Ident, rename: Option<&syn::Ident>) {
        let mut path = prefix.to_vec();
        // `use foo::{self}` brings in `foo`.
        if leaf != "self" || prefix.is_empty() {
            path.push(leaf.unraw().to_string());
        }
        let name = path.last().expect("an import names something").clone();
        let name = rename.map_or(name, |rename| rename.unraw().to_string());
        self.names.push(ImportedName { name, path });
    }
}

/// Whether an import hands its names on to other modules.
pub(super) fn is_re_export(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

/// Whether cargo compiles this file as a library or a program by itself: `lib.rs`, `main.rs`, `bin/NAME.rs`
/// or `bin/NAME/main.rs`.
fn is_root(file: &str) -> bool {
    let program =
        |name: &str| !name.contains('/') || name.matches('/').count() == 1 && name.ends_with("/main.rs");
    ["lib.rs", "main.rs"].contains(&file) || file.strip_prefix("bin/").is_some_and(program)
}

/// The name and the kind of what an item defines. Imports, modules and implementations define nothing.
pub(super) fn defined(item: &Item) -> Option<(String, ItemKind)> {
    let (name, kind) = match item {
        Item::Const(item) => (&item.ident, ItemKind::Constant),
        Item::Static(item) => (&item.ident, ItemKind::Constant),
        Item::Fn(item) => (&item.sig.ident, ItemKind::Function),
        Item::Enum(item) => (&item.ident, ItemKind::Type),
        Item::Trait(item) => (&item.ident, ItemKind::Type),
        Item::Type(item) => (&item.ident, ItemKind::Type),
        Item::Union(item) => (&item.ident, ItemKind::Type),
        Item::Struct(item) => {
            let kind = match item.fields {
                syn::Fields::Named(_) => ItemKind::Type,
                syn::Fields::Unnamed(_) => ItemKind::TupleStruct,
                syn::Fields::Unit => ItemKind::UnitStruct,
            };
            (&item.ident, kind)
        }
        Item::Macro(item) => (item.ident.as_ref()?, ItemKind::Macro),
        Item::ExternCrate(_)
        | Item::ForeignMod(_)
        | Item::Impl(_)
        | Item::Mod(_)
        | Item::TraitAlias(_)
        | Item::Use(_)
        | Item::Verbatim(_)
        | _ => return None,
    };
    Some((name.unraw().to_string(), kind))
}

/// The attributes of an item; none of one that defines no code.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::ExternCrate(_) | Item::ForeignMod(_) | Item::TraitAlias(_) | Item::Verbatim(_) | _ => &[],
    }
}

/// Whether only a build for tests holds what has these attributes.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        if path.is_ident("cfg") {
            return attribute.parse_args::<Meta>().is_ok_and(|condition| !holds_without_tests(&condition));
        }
        path.segments.last().is_some_and(|last| last.ident == "test")
    })
}

/// Whether a condition can hold in a build without tests.
fn holds_without_tests(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return !condition.path().is_ident("test") };
    let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    let Ok(parts) = parts else { return true };
    if list.path.is_ident("all") {
        parts.iter().all(holds_without_tests)
    } else if list.path.is_ident("any") {
        parts.iter().any(holds_without_tests)
    } else {
        // A condition that is negated holds in some build, or speaks of tests and holds in all others.
        true
    }
}
