//! Who may use whom, checked against cargo's own view of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// All crates of which the product is made.
pub(crate) const EVERYTHING: &[&str] = &[
    "vocabulary",
    "settings",
    "forecasting",
    "scaling",
    "orchestration",
    "throttling",
    "protocol",
    "link",
    "runtime",
    "dataplane",
    "platform",
    "platform-local",
    "queue-proxy",
    "activator",
    "autoscaler",
    "dashboard",
    "injector",
    "simulator",
    "recording",
    "ebb",
];

/// Each crate, and which of ours it may use, itself aside. A crate that is missing here fails the test, so
/// that the table stays whole.
pub(crate) const MAY_USE: &[(&str, &[&str])] = &[
    ("vocabulary", &[]),
    ("settings", &["vocabulary"]),
    ("forecasting", &["vocabulary"]),
    ("scaling", &["vocabulary", "settings", "forecasting"]),
    ("orchestration", &["vocabulary", "settings", "forecasting", "scaling"]),
    ("throttling", &["vocabulary"]),
    ("simulator", &["vocabulary", "settings", "forecasting", "scaling", "orchestration", "throttling"]),
    ("recording", &["vocabulary", "settings", "forecasting", "scaling", "orchestration", "link", "runtime"]),
    ("protocol", &["vocabulary"]),
    ("runtime", &["vocabulary"]),
    ("link", &["vocabulary", "runtime"]),
    ("dataplane", &["vocabulary", "throttling", "protocol", "runtime"]),
    ("platform", &["vocabulary", "settings", "forecasting", "scaling", "orchestration"]),
    (
        "platform-local",
        &["vocabulary", "settings", "forecasting", "scaling", "orchestration", "platform", "runtime"],
    ),
    ("queue-proxy", &["vocabulary", "throttling", "protocol", "link", "dataplane", "runtime"]),
    ("activator", &["vocabulary", "throttling", "protocol", "link", "dataplane", "runtime"]),
    ("dashboard", &[]),
    ("injector", &["vocabulary", "settings"]),
    ("cluster", &["vocabulary", "settings", "forecasting", "scaling", "orchestration"]),
    (
        "platform-kubernetes",
        &[
            "vocabulary",
            "settings",
            "forecasting",
            "scaling",
            "orchestration",
            "cluster",
            "platform",
            "runtime",
        ],
    ),
    (
        "control-plane",
        &[
            "vocabulary",
            "settings",
            "forecasting",
            "scaling",
            "orchestration",
            "link",
            "recording",
            "runtime",
            "cluster",
            "platform",
            "platform-kubernetes",
            "autoscaler",
            "injector",
            // The programs of a cluster are one executable; a test below keeps its parts apart.
            "activator",
            "throttling",
            "protocol",
            "dataplane",
        ],
    ),
    (
        "autoscaler",
        &[
            "vocabulary",
            "settings",
            "forecasting",
            "scaling",
            "orchestration",
            "link",
            "recording",
            "runtime",
            "platform",
        ],
    ),
    // Runs cargo, and packs what that makes.
    ("xtask", &[]),
    ("ebb", EVERYTHING),
    // Whatever the product is made of: `harnessed-ebb` is the product.
    ("tests", EVERYTHING),
];

/// What a crate may not need, however indirectly, that the table of ours does not say already.
const NEVER: &[(&str, &[&str])] = &[
    ("link", &["kube"]),
    ("recording", &["kube"]),
    ("runtime", &["kube"]),
    ("dataplane", &["settings", "scaling", "platform", "hyper", "h2", "axum", "tower"]),
    ("platform", &["kube", "hyper"]),
    ("platform-kubernetes", &["dataplane", "platform-local"]),
    ("platform-local", &["dataplane", "platform-kubernetes", "cluster"]),
    ("queue-proxy", &["settings", "scaling", "platform", "kube"]),
    ("activator", &["settings", "scaling", "platform", "kube"]),
    ("autoscaler", &["kube", "throttling", "dataplane"]),
    ("injector", &["scaling", "platform", "kube"]),
    ("control-plane", &["platform-local"]),
    ("ebb", &["platform-kubernetes", "cluster", "control-plane"]),
];

/// Crates that answer questions about numbers and time, and may do nothing else.
const PURE: &[&str] = &[
    "vocabulary",
    "settings",
    "forecasting",
    "scaling",
    "throttling",
    "protocol",
    "orchestration",
    "cluster",
    "simulator",
];

/// Dependencies that can do I/O, and so have no place in a pure crate.
const IMPURE: &[&str] = &["tokio", "hyper", "mio", "socket2", "nix", "kube", "tracing", "notify", "rustix"];

/// What pure crates do without. `std` is not imported in groups, where its modules would hide; maps have an
/// order.
const IMPURE_STD: &[&str] = &[
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "std::net::Tcp",
    "std::net::Udp",
    "ToSocketAddrs",
    "std::{",
    "HashMap",
    "HashSet",
    "async fn",
    "async move",
    "Instant::now",
    "SystemTime",
];

/// Crates that may be there in one version only: two of them double the build and split its types.
const SINGLE: &[&str] = &["tokio", "hyper", "http", "h2", "prost", "rustls", "serde", "tracing"];

/// Crates that this project leaves out on purpose, wherever they would come from.
const BANNED: &[&str] = &["tonic", "reqwest", "openssl", "openssl-sys", "aws-lc-rs", "chrono", "serde_yaml"];

/// Crates that none of ours asks for; what others stand on is their business.
const NOT_OURS: &[&str] = &["lazy_static", "once_cell", "async-trait"];

fn metadata() -> Metadata {
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).exec().expect("cargo metadata answers")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_owned()
}

/// Everything that a package needs to run, itself aside: normal dependencies, transitively.
fn needs(metadata: &Metadata, package: &PackageId) -> BTreeSet<String> {
    let nodes: BTreeMap<_, _> = metadata
        .resolve
        .as_ref()
        .expect("metadata was resolved")
        .nodes
        .iter()
        .map(|node| (&node.id, node))
        .collect();
    let mut found = BTreeSet::new();
    let mut open = vec![package];
    while let Some(id) = open.pop() {
        for dependency in &nodes[id].deps {
            let is_normal = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            let is_macro =
                metadata[&dependency.pkg].targets.iter().any(cargo_metadata::Target::is_proc_macro);
            if is_normal && !is_macro && found.insert(metadata[&dependency.pkg].name.to_string()) {
                open.push(&dependency.pkg);
            }
        }
    }
    found
}

#[test]
fn each_crate_uses_only_what_the_table_allows() {
    let metadata = metadata();
    let ours: BTreeSet<String> =
        metadata.workspace_packages().iter().map(|package| package.name.to_string()).collect();
    let table: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    for package in metadata.workspace_packages() {
        let allowed = table
            .get(package.name.as_str())
            .unwrap_or_else(|| panic!("{} is not in the table", package.name));
        for used in needs(&metadata, &package.id).intersection(&ours) {
            assert!(allowed.contains(&used.as_str()), "{} must not use {used}", package.name);
        }
    }
}

#[test]
fn no_crate_needs_what_it_must_never_know() {
    let metadata = metadata();
    let packages = metadata.workspace_packages();
    for (name, never) in NEVER {
        let package = packages.iter().find(|package| package.name.as_str() == *name).expect("it is a crate");
        let found = forbidden(never, &needs(&metadata, &package.id));
        assert!(found.is_empty(), "{name} must not know {found:?}; see `cargo tree -p {name}`");
    }
    // What the executable of a cluster links is forbidden to others.
    let cluster = packages.iter().find(|package| package.name.as_str() == "control-plane");
    let linked = needs(&metadata, &cluster.expect("it is a crate").id);
    assert_eq!(forbidden(&["kube", "hyper", "platform-local"], &linked), ["kube", "hyper"]);
}

fn forbidden<'n>(never: &[&'n str], needed: &BTreeSet<String>) -> Vec<&'n str> {
    never.iter().copied().filter(|name| needed.contains(*name)).collect()
}

/// Dependencies that one crate of ours asks for, because there is one answer to the question that they help
/// with.
const OF_ONE: &[(&str, &str, &str)] =
    &[("strsim", "vocabulary", "one measure says which name somebody probably meant")];

#[test]
fn each_question_with_one_answer_is_asked_in_one_place() {
    let metadata = metadata();
    for (dependency, owner, why) in OF_ONE {
        let packages = metadata.workspace_packages();
        let asking =
            packages.iter().filter(|package| package.dependencies.iter().any(|of| of.name == *dependency));
        let asking: Vec<&str> = asking.map(|package| package.name.as_str()).collect();
        assert_eq!(asking, [*owner], "{dependency}: {why}");
    }
}

#[test]
fn pure_crates_depend_on_nothing_that_does_io() {
    let metadata = metadata();
    for package in
        metadata.workspace_packages().iter().filter(|package| PURE.contains(&package.name.as_str()))
    {
        let needs = needs(&metadata, &package.id);
        for impure in IMPURE {
            assert!(
                !needs.contains(*impure),
                "{} must not depend on {impure}, not even indirectly",
                package.name
            );
        }
    }
}

#[test]
fn pure_crates_do_not_mention_the_world() {
    for name in PURE {
        let sources = root().join("crates").join(name).join("src");
        let mut seen = 0;
        for file in rust_files(&sources) {
            seen += 1;
            let text = std::fs::read_to_string(&file).expect("a source file can be read");
            for (number, line) in
                text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
            {
                for impure in IMPURE_STD {
                    assert!(
                        !line.contains(impure),
                        "{}:{}: {impure} has no place in a pure crate",
                        file.display(),
                        number + 1
                    );
                }
            }
        }
        assert!(seen > 0, "{} has no sources", sources.display());
    }
}

/// What decides shares a file with what takes requests, and nothing else: one line starts it by its name.
#[test]
fn only_the_executable_of_a_cluster_names_the_activator() {
    const EXECUTABLE: &str = "bin/ebb-autoscaler.rs";
    let sources = root().join("crates/control-plane/src");
    let mut naming = Vec::new();
    for file in rust_files(&sources) {
        let text = std::fs::read_to_string(&file).expect("a source file can be read");
        let code = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        let proxies = ["activator::", "dataplane::", "throttling::", "protocol::"];
        for line in code.filter(|line| proxies.iter().any(|name| line.contains(name))) {
            let file = file.strip_prefix(&sources).expect("it lies there").display();
            naming.push(format!("{file}: {line}"));
        }
    }
    let started = format!("{EXECUTABLE}: Some(\"ebb-activator\") => activator::main_from_env(),");
    assert_eq!(naming, [started], "the autoscaler and the injector take no requests of clients");
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a source folder can be read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Crates whose modules, folders as one, use one another in one direction only.
const LAYERED: &[&str] = &["dataplane", "protocol"];

#[test]
fn modules_use_one_another_in_one_direction() {
    for name in LAYERED {
        let sources = root().join("crates").join(name).join("src");
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in rust_files(&sources) {
            let inner = file.strip_prefix(&sources).expect("it lies there");
            let first = inner.components().next().expect("it has a name").as_os_str().to_string_lossy();
            let module = first.trim_end_matches(".rs").to_owned();
            let is_test =
                inner.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
            if module != "lib" && !is_test {
                let text = std::fs::read_to_string(&file).expect("a source file can be read");
                uses.entry(module).or_default().extend(modules_used(&text));
            }
        }
        assert!(uses.len() > 3, "{} has hardly any modules", sources.display());
        for (module, used) in &mut uses {
            used.remove(module);
        }
        // A module that uses only settled ones is settled too; what is left uses itself by a detour.
        while let Some(settled) = uses
            .iter()
            .find(|(_, used)| used.iter().all(|used| !uses.contains_key(used)))
            .map(|(name, _)| name)
        {
            let settled = settled.clone();
            uses.remove(&settled);
        }
        assert!(uses.is_empty(), "modules of {name} use one another in a circle: {uses:#?}");
    }
}

/// The modules at the crate's root that a file names in its code, tests aside.
fn modules_used(text: &str) -> BTreeSet<String> {
    let code = text.lines().take_while(|line| *line != "mod tests {");
    let code = code.filter(|line| !line.trim_start().starts_with("//"));
    let code: Vec<&str> = code.collect();
    let code = code.join("\n");
    let named = code.split("crate::").skip(1).flat_map(|rest| match rest.strip_prefix('{') {
        Some(group) => names_of_group(group),
        None => vec![first_name(rest)],
    });
    named.collect()
}

/// The first name of each path of a group that begins before this text.
fn names_of_group(text: &str) -> Vec<String> {
    let (mut depth, mut outer) = (0, String::new());
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            _ if depth == 0 => outer.push(letter),
            _ => {}
        }
    }
    outer.split(',').map(|path| first_name(path.trim())).filter(|name| !name.is_empty()).collect()
}

fn first_name(path: &str) -> String {
    path.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect()
}

#[test]
fn modules_are_found_in_groups_too() {
    let text =
        "use crate::{\n    body::{Body, Piece},\n    drain, pool::Pool,\n};\nlet a = crate::time::now();";
    assert_eq!(modules_used(text), ["body", "drain", "pool", "time"].map(str::to_owned).into());
    assert_eq!(modules_used("// crate::no\nmod tests {\nuse crate::no;"), BTreeSet::new());
}

#[test]
fn heavy_crates_are_there_once_and_banned_ones_not_at_all() {
    let metadata = metadata();
    let names: Vec<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    for single in SINGLE {
        let versions = names.iter().filter(|name| *name == single).count();
        assert!(versions <= 1, "there are {versions} versions of {single}; see `cargo tree --duplicates`");
    }
    for banned in BANNED {
        assert!(
            !names.contains(banned),
            "{banned} is left out on purpose; see `cargo tree --invert {banned}`"
        );
    }
    for package in metadata.workspace_packages() {
        for dependency in &package.dependencies {
            assert!(
                !NOT_OURS.contains(&dependency.name.as_str()),
                "{} asks for {}",
                package.name,
                dependency.name
            );
        }
    }
}

/// Cargo builds one package with the features that it asks for itself, which the metadata of a whole
/// workspace do not show.
#[test]
fn requests_come_to_the_queue_proxy_without_tls() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package",
            "queue-proxy",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("dataplane"), "{names:?}");
    // Links speak TLS on a cluster, requests never: those of clients with TLS are ended before they come
    // here.
    for banned in ["x509-cert", "kube", "hyper"] {
        assert!(!names.contains(banned), "{banned} has no place beside every pod");
    }
    let features = Command::new(env!("CARGO"))
        .args(["tree", "--package", "queue-proxy", "--edges", "features,normal", "--prefix", "none"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let features = String::from_utf8_lossy(&features.stdout);
    assert!(!features.contains("dataplane feature \"tls\""), "requests come to a pod without TLS");
}

#[test]
fn every_dependency_has_a_licence_that_fits_apache_2() {
    const FITTING: &[&str] = &[
        "Apache-2.0",
        "MIT",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "Zlib",
        "Unicode-3.0",
        "Unicode-DFS-2016",
        "CC0-1.0",
        "0BSD",
        "Unlicense",
        "BSL-1.0",
        "MIT-0",
        // A list of certificate authorities that TLS of Kubernetes' client has in wasm; no program of ours
        // links it.
        "CDLA-Permissive-2.0",
    ];
    let metadata = metadata();
    for package in &metadata.packages {
        let licence = package.license.as_deref().unwrap_or_default();
        let alternatives = licence.replace('/', " OR ");
        let fits = alternatives.split(" OR ").any(|option| {
            option.split(" AND ").all(|part| FITTING.contains(&part.trim_matches(['(', ')', ' '])))
        }) || licence.contains("Apache-2.0");
        assert!(fits, "{} {} has the licence {licence:?}", package.name, package.version);
    }
}
