//! What is linked, and by whom: the sidecar stays small, and no crate asks for a dependency without using it.
//!
//! Sources are read as text. A dependency is used where its name stands before `::`, ends an import or is
//! renamed by it; that finds every way in which these crates use theirs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cargo_metadata::{Dependency, DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// What runs beside each pod and before all of them, and what these are made of. The queue-proxy is an
/// executable of its own, so that file holds nothing else. The activator is a crate: the file that a cluster
/// starts holds the autoscaler and the injector too, with Kubernetes' client and its stack. Kept here is that
/// no code that takes requests can call those.
const PROXIES: &[&str] = &["queue-proxy", "activator", "dataplane", "link", "runtime"];

/// Other stacks for HTTP, and what comes with them. Ours is `dataplane`; a second one costs every pod memory
/// for nothing, and reads heads in its own way.
const NEVER_IN_A_PROXY: &[&str] = &[
    "hyper",
    "hyper-util",
    "h2",
    "axum",
    "axum-core",
    "tower",
    "tower-service",
    "tower-http",
    "kube",
    "k8s-openapi",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_owned()
}

fn metadata() -> Metadata {
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).exec().expect("cargo metadata answers")
}

/// The way by which one package comes to link another one, both included.
fn way(metadata: &Metadata, from: &PackageId, to: &str) -> Option<Vec<String>> {
    let nodes = &metadata.resolve.as_ref().expect("metadata was resolved").nodes;
    let mut seen = BTreeSet::new();
    let mut open = vec![vec![from]];
    while let Some(way) = open.pop() {
        let last = *way.last().expect("a way begins somewhere");
        if metadata[last].name.as_str() == to {
            return Some(way.iter().map(|id| metadata[*id].name.to_string()).collect());
        }
        if !seen.insert(last) {
            continue;
        }
        let node = nodes.iter().find(|node| node.id == *last).expect("every package is resolved");
        for next in &node.deps {
            let is_linked = next.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            if is_linked && !metadata[&next.pkg].targets.iter().any(cargo_metadata::Target::is_proc_macro) {
                open.push(way.iter().copied().chain([&next.pkg]).collect());
            }
        }
    }
    None
}

#[test]
fn the_proxies_link_one_http_stack_which_is_ours() {
    let metadata = metadata();
    let packages = metadata.workspace_packages();
    for name in PROXIES {
        let package = packages.iter().find(|package| package.name.as_str() == *name);
        let package = package.unwrap_or_else(|| panic!("there is no crate {name}"));
        for other in NEVER_IN_A_PROXY {
            let way = way(&metadata, &package.id, other);
            assert!(way.is_none(), "{name} must not link {other}: {}", way.unwrap_or_default().join(" > "));
        }
    }
    // That the search finds what is there.
    let ebb = packages.iter().find(|package| package.name.as_str() == "ebb").expect("the program");
    assert!(way(&metadata, &ebb.id, "h2").is_some(), "the API is served by hyper, which links h2");
}

/// The sources of a package, without comments, in two: what is built into it, and what is built for its tests
/// alone.
struct Sources {
    product: String,
    tests: String,
}

impl Sources {
    fn of(package: &Package) -> Self {
        let folder = package.manifest_path.parent().expect("a manifest lies in a folder").as_std_path();
        let mut sources = Self { product: String::new(), tests: String::new() };
        sources.add_product(&folder.join("src"));
        for file in ["tests", "benches"].iter().flat_map(|part| rust_files(&folder.join(part))) {
            sources.tests.push_str(&code_of(&file));
        }
        // The suites are the product of this package.
        if package.name.as_str() == "tests" {
            sources.product.push_str(&sources.tests);
        }
        sources
    }

    fn add_product(&mut self, folder: &Path) {
        let files = rust_files(folder);
        let test_modules: BTreeSet<PathBuf> = files.iter().flat_map(|file| test_modules(file)).collect();
        for file in &files {
            let text = code_of(file);
            if file.ancestors().any(|part| test_modules.contains(&part.with_extension(""))) {
                self.tests.push_str(&text);
                continue;
            }
            let (product, tests) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&text, ""));
            self.product.push_str(product);
            self.tests.push_str(tests);
        }
    }
}

/// The modules that a file declares for tests, as paths without an extension.
fn test_modules(file: &Path) -> Vec<PathBuf> {
    let stem = file.file_stem().expect("a source file has a name");
    let own = if ["lib", "main"].iter().any(|root| stem == *root) {
        file.with_file_name("")
    } else {
        file.with_extension("")
    };
    let text = code_of(file);
    let declared = text.split("#[cfg(test)]\n").skip(1).filter_map(|after| {
        let declaration = after.lines().next()?;
        declaration.split("mod ").nth(1)?.strip_suffix(';')
    });
    declared.map(|name| own.join(name)).collect()
}

/// A file without its comments.
fn code_of(file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("a source file can be read");
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    text.split_inclusive('\n').filter(is_code).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Whether code names a crate where only a crate or a module can stand.
fn names(code: &str, dependency: &Dependency) -> bool {
    let name = dependency.rename.as_ref().unwrap_or(&dependency.name).replace('-', "_");
    code.match_indices(&name).any(|(at, _)| {
        let is_part_of_a_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let begins = !code[..at].ends_with(is_part_of_a_word);
        let after = &code[at + name.len()..];
        begins && ["::", ";", " as "].iter().any(|end| after.starts_with(end))
    })
}

#[test]
fn no_dependency_is_unused() {
    let metadata = metadata();
    let mut unused = Vec::new();
    for package in metadata.workspace_packages() {
        let sources = Sources::of(package);
        for dependency in &package.dependencies {
            let is_normal = dependency.kind == DependencyKind::Normal;
            let is_used = names(if is_normal { &sources.product } else { &sources.tests }, dependency);
            if !is_used {
                unused.push(format!("{} ({:?} of {})", dependency.name, dependency.kind, package.name));
            }
        }
    }
    assert!(unused.is_empty(), "remove what is unused, or make it a dev-dependency: {}", unused.join(", "));
}

#[test]
fn no_dependency_is_declared_for_nobody() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest can be read");
    let declared = manifest.split("[workspace.dependencies]").nth(1).expect("dependencies are declared");
    let declared = declared.split("\n[").next().expect("a section has a text");
    let names = declared.lines().filter_map(|line| line.split_once(" = ").map(|(name, _)| name));
    let metadata = metadata();
    let used: BTreeSet<&str> = metadata
        .workspace_packages()
        .iter()
        .flat_map(|package| package.dependencies.iter().map(|dependency| dependency.name.as_str()))
        .collect();
    let packages: BTreeSet<&str> =
        metadata.workspace_packages().iter().map(|package| package.name.as_str()).collect();
    let unused: Vec<&str> = names.filter(|name| !used.contains(name) && !packages.contains(name)).collect();
    assert!(unused.is_empty(), "nobody depends on {}", unused.join(", "));
}
