//! The paths in a crate's code, each as an edge from its file to the file of what the path names.

use std::collections::BTreeMap;

use syn::buffer::{Cursor, TokenBuffer};
use syn::ext::IdentExt as _;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, Item, Meta, Stmt, Token};

use super::UsedNames;
use super::modules::{
    CrateModules, ImportLeaves, ItemKind, ModuleId, attributes, defined, is_for_tests, is_re_export,
};
use super::resolution::{Namespace, Target};
use super::scopes::LocalScopes;
use super::tokens::{PathFollower, TokenPath, TokenPiece, pieces};

/// All edges between the files of a crate.
pub(super) fn edges(modules: &CrateModules) -> BTreeMap<String, UsedNames> {
    let mut edges: BTreeMap<String, UsedNames> = BTreeMap::new();
    for (id, module) in modules.modules.iter().enumerate() {
        let used = edges.entry(module.file.clone()).or_default();
        let mut collector = PathCollector { modules, module: id, scopes: LocalScopes::default(), used };
        for item in &module.code {
            collector.visit_item(item);
        }
    }
    edges
}

/// Reads one module's code and notes the items of other files that paths name.
struct PathCollector<'c> {
    modules: &'c CrateModules,
    module: ModuleId,
    scopes: LocalScopes,
    used: &'c mut UsedNames,
}

impl PathCollector<'_> {
    /// What a path names here: first by the scopes of the function, then by the module.
    fn targets(&self, path: &[String], namespace: Namespace) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let own = if rest.is_empty() { namespace } else { Namespace::Types };
        match self.scopes.find(self.modules, first, own) {
            Some(start) => self.modules.targets_below(&start, rest, namespace),
            None => self.modules.targets(self.module, path, namespace),
        }
    }

    /// Notes an edge to the file of each target, but to the own file.
    fn note(&mut self, targets: &[Target]) {
        let own = &self.modules.modules[self.module].file;
        let items = targets.iter().filter_map(|target| self.modules.item(*target));
        for item in items.filter(|item| item.file != *own) {
            self.used.entry(item.file.clone()).or_default().insert(item.name.clone());
        }
    }

    /// Notes a path and the types between its angle brackets. A path that begins with `::` leaves the crate.
    fn note_path(&mut self, path: &syn::Path, namespace: Namespace) {
        if path.leading_colon.is_none() {
            let targets = self.targets(&segments(path), namespace);
            self.note(&targets);
        }
        for segment in &path.segments {
            self.visit_path_arguments(&segment.arguments);
        }
    }

    /// Notes a path that may stand behind `<Type as Trait>`, of which the trait is the first part.
    fn note_qualified(&mut self, qualifier: Option<&syn::QSelf>, path: &syn::Path, namespace: Namespace) {
        let Some(qualifier) = qualifier else { return self.note_path(path, namespace) };
        self.visit_type(&qualifier.ty);
        let named = segments(path);
        let targets = self.targets(&named[..qualifier.position], Namespace::Types);
        self.note(&targets);
        for segment in &path.segments {
            self.visit_path_arguments(&segment.arguments);
        }
    }

    /// Notes a macro by its path, or by its name alone: `macro_rules` is known by the order of the text.
    fn note_macro(&mut self, path: &[String]) {
        let mut targets = self.targets(path, Namespace::Macros);
        if targets.is_empty()
            && let [name] = path
        {
            targets.extend(self.modules.textual_macro(name));
        }
        self.note(&targets);
    }

    /// Reads a macro's tokens as expressions, else as statements, else path by path.
    fn read_tokens(&mut self, cursor: Cursor<'_>) {
        let expressions = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(expressions) = expressions.parse2(cursor.token_stream()) {
            for expression in &expressions {
                self.visit_expr(expression);
            }
        } else if let Ok(statements) = Block::parse_within.parse2(cursor.token_stream()) {
            self.read_block(&statements);
        } else {
            for piece in pieces(cursor) {
                match piece {
                    TokenPiece::Path(path) => self.note_token_path(&path),
                    TokenPiece::Group(inside) => self.read_tokens(inside),
                    TokenPiece::Text(_) => {}
                }
            }
        }
    }

    fn note_token_path(&mut self, path: &TokenPath) {
        if path.follower == PathFollower::Bang {
            self.note_macro(&path.segments);
        } else if path.is_certain() {
            let mut targets = self.targets(&path.segments, Namespace::Values);
            targets.extend(self.targets(&path.segments, Namespace::Types));
            self.note(&targets);
        }
    }

    /// Reads an attribute's tokens: `serde` and others take paths as strings.
    fn read_attribute(&mut self, cursor: Cursor<'_>) {
        for piece in pieces(cursor) {
            match piece {
                TokenPiece::Path(path) => self.note_token_path(&path),
                TokenPiece::Group(inside) => self.read_attribute(inside),
                TokenPiece::Text(text) => {
                    if let Ok(path) = syn::parse_str::<syn::Path>(&text) {
                        let mut targets = self.targets(&segments(&path), Namespace::Values);
                        targets.extend(self.targets(&segments(&path), Namespace::Types));
                        self.note(&targets);
                    }
                }
            }
        }
    }

    /// Reads statements in a scope of their own.
    fn read_block(&mut self, statements: &[Stmt]) {
        self.scopes.open();
        // Items are known in the whole block, also before their place.
        for statement in statements {
            if let Stmt::Item(item) = statement {
                self.declare_locally(item);
            }
        }
        for statement in statements {
            self.visit_stmt(statement);
        }
        self.scopes.close();
    }

    /// Enters what an item of a block declares: an import's targets, or a name that hides the module's.
    fn declare_locally(&mut self, item: &Item) {
        if let Item::Use(import) = item
            && import.leading_colon.is_none()
        {
            let leaves = ImportLeaves::of(&import.tree);
            for leaf in &leaves.names {
                let targets = self.targets(&leaf.path, Namespace::All);
                self.scopes.import(&leaf.name, self.modules, &targets);
            }
            for glob in &leaves.globs {
                let targets = self.targets(glob, Namespace::Types);
                self.scopes.import_all(targets);
            }
        } else if let Some((name, kind)) = defined(item) {
            match kind {
                ItemKind::Type => self.scopes.bind_type(name),
                ItemKind::Function | ItemKind::Constant => self.scopes.bind_variable(name),
                ItemKind::TupleStruct | ItemKind::UnitStruct => {
                    self.scopes.bind_type(name.clone());
                    self.scopes.bind_variable(name);
                }
                ItemKind::Macro | ItemKind::Unknown => {}
            }
        }
    }
}

/// Variables are bound after the expression that gives them their value, and known until their scope ends.
impl<'a> Visit<'a> for PathCollector<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        if !is_for_tests(attributes(item)) {
            self.scopes.open();
            visit::visit_item(self, item);
            self.scopes.close();
        }
    }

    /// A module in the body of a function is not read.
    fn visit_item_mod(&mut self, _: &'a syn::ItemMod) {}

    fn visit_item_use(&mut self, import: &'a syn::ItemUse) {
        if import.leading_colon.is_some() || is_re_export(&import.vis) {
            return;
        }
        let leaves = ImportLeaves::of(&import.tree);
        for leaf in &leaves.names {
            let targets = self.targets(&leaf.path, Namespace::All);
            self.note(&targets);
        }
        for glob in &leaves.globs {
            let targets = self.targets(glob, Namespace::Types);
            self.note(&targets);
        }
    }

    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_const(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            self.scopes.open();
            visit::visit_impl_item_fn(self, item);
            self.scopes.close();
        }
    }

    fn visit_trait_item(&mut self, item: &'a syn::TraitItem) {
        self.scopes.open();
        visit::visit_trait_item(self, item);
        self.scopes.close();
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_type_param(&mut self, parameter: &'a syn::TypeParam) {
        self.scopes.bind_type(parameter.ident.unraw().to_string());
        visit::visit_type_param(self, parameter);
    }

    fn visit_block(&mut self, block: &'a Block) {
        self.read_block(&block.stmts);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if is_for_tests(&local.attrs) {
            return;
        }
        if let Some(init) = &local.init {
            self.visit_local_init(init);
        }
        self.visit_pat(&local.pat);
    }

    fn visit_expr_let(&mut self, expression: &'a syn::ExprLet) {
        self.visit_expr(&expression.expr);
        self.visit_pat(&expression.pat);
    }

    fn visit_expr_if(&mut self, expression: &'a syn::ExprIf) {
        self.scopes.open();
        self.visit_expr(&expression.cond);
        self.visit_block(&expression.then_branch);
        self.scopes.close();
        if let Some((_, otherwise)) = &expression.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_while(&mut self, expression: &'a syn::ExprWhile) {
        self.scopes.open();
        visit::visit_expr_while(self, expression);
        self.scopes.close();
    }

    fn visit_expr_for_loop(&mut self, expression: &'a syn::ExprForLoop) {
        self.visit_expr(&expression.expr);
        self.scopes.open();
        self.visit_pat(&expression.pat);
        self.visit_block(&expression.body);
        self.scopes.close();
    }

    fn visit_expr_closure(&mut self, expression: &'a syn::ExprClosure) {
        self.scopes.open();
        visit::visit_expr_closure(self, expression);
        self.scopes.close();
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        self.scopes.open();
        visit::visit_arm(self, arm);
        self.scopes.close();
    }

    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
        let name = pattern.ident.unraw().to_string();
        if pattern.by_ref.is_none() && pattern.mutability.is_none() && pattern.subpat.is_none() {
            let mut targets = self.targets(std::slice::from_ref(&name), Namespace::Values);
            targets.retain(|target| self.modules.is_named_by_patterns(*target));
            if !targets.is_empty() {
                return self.note(&targets);
            }
        }
        self.scopes.bind_variable(name);
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_expr_path(&mut self, expression: &'a syn::ExprPath) {
        self.note_qualified(expression.qself.as_ref(), &expression.path, Namespace::Values);
    }

    fn visit_type_path(&mut self, path: &'a syn::TypePath) {
        self.note_qualified(path.qself.as_ref(), &path.path, Namespace::Types);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.note_path(path, Namespace::Types);
    }

    fn visit_macro(&mut self, invocation: &'a syn::Macro) {
        self.note_macro(&segments(&invocation.path));
        self.read_tokens(TokenBuffer::new2(invocation.tokens.clone()).begin());
    }

    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        match &attribute.meta {
            Meta::List(list) => self.read_attribute(TokenBuffer::new2(list.tokens.clone()).begin()),
            Meta::NameValue(pair) if !pair.path.is_ident("doc") => self.visit_expr(&pair.value),
            Meta::Path(_) | Meta::NameValue(_) => {}
        }
    }
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect()
}
