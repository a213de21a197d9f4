//! Manifests, with whatever YAML can hold: each is understood or refused with reasons, the same each time.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use platform_local::{ForeignKinds, ManifestSource, load};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fuzz_target!(|input: &[u8]| {
    let Some((how, text)) = input.split_first() else { return };
    let file = FOLDER.path().join("manifest.yaml");
    std::fs::write(&file, text).expect("written");
    let foreign = if how % 2 == 0 { ForeignKinds::Refused } else { ForeignKinds::Skipped };
    let source = ManifestSource::new(vec![file], "example.com", foreign).expect("no standard input");
    let shown = |loaded| match loaded {
        Ok(loaded) => format!("{loaded:?}"),
        Err(findings) => {
            let findings: vocabulary::Findings<platform_local::Trouble> = findings;
            assert!(!findings.problems.is_empty(), "a refusal has a reason");
            format!("{findings:?}")
        }
    };
    assert_eq!(shown(load(&source)), shown(load(&source)));
});
