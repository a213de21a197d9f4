//! axe-core, which finds what people cannot use who use a page by ear or by keyboard.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use tests::browser::Tab;

/// Tests run at once, and two runs of npm in one folder take each other's files away.
static SOURCE: LazyLock<String> = LazyLock::new(fetched);

/// The source text of axe-core.
pub(crate) fn source() -> &'static str {
    &SOURCE
}

fn fetched() -> String {
    let pinned = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/axe");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(pinned.join(file), folder.join(file)).expect("the versions are pinned");
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(&folder);
    let fetched = npm.status().expect("npm is there; install it with: apt-get install -y npm");
    assert!(fetched.success(), "a network is needed for axe-core the first time");
    std::fs::read_to_string(folder.join("node_modules/axe-core/axe.min.js")).expect("it was fetched")
}

/// What axe-core finds on the page as it is.
pub(crate) async fn findings(tab: &mut Tab, axe: &str) -> Value {
    tab.value(axe).await;
    let found = "axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => \
                 `${id}: ${nodes.map(({ html }) => html).slice(0, 3).join(' ')}`))";
    tab.value(found).await
}
