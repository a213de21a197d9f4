//! The workflows and the forms in `.github`: as actionlint and GitHub's forms ask for them, with steps that
//! run on any machine.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::programs::{printed_by, root, tool};

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn yaml(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("it can be read");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Without shellcheck and pyflakes, which some machines have: the outcome is the same everywhere.
#[test]
fn actionlint_takes_the_workflows() {
    let workflows = files(".github/workflows");
    assert!(workflows.len() >= 2, "{workflows:?}");
    printed_by(tool("actionlint").args(["-no-color", "-shellcheck=", "-pyflakes="]).args(workflows));
}

/// The beginnings that commands of a step may have. All but the last two run in a checkout on any machine.
const STEPS: [&str; 9] = [
    "cargo fmt ",
    "cargo lint",
    "cargo test ",
    "cargo xtask ",
    "sudo apt-get ",
    "rustup ",
    "helm package ",
    "gh release ",
    "podman login ",
];

#[test]
fn steps_are_commands_that_run_in_a_checkout() {
    let (mut releases, mut seen) = (0, 0);
    for path in files(".github/workflows") {
        let workflow = yaml(&path);
        let jobs = workflow["jobs"].as_object().expect("a workflow has jobs");
        for (name, job) in jobs {
            assert!(job["timeout-minutes"].is_u64(), "{} {name} may run for hours", path.display());
            for command in list(job, "steps").iter().filter_map(|step| step["run"].as_str()) {
                for line in command.lines() {
                    seen += 1;
                    releases += usize::from(line.starts_with("cargo xtask release "));
                    let is_known = STEPS.iter().any(|start| line.starts_with(start));
                    assert!(is_known, "{} {name}: `{line}`", path.display());
                }
            }
        }
    }
    assert!(seen > 10 && releases >= 5, "{seen} commands and {releases} of them of a release are hardly all");
}

#[test]
fn the_check_of_forks_takes_at_most_a_quarter_of_an_hour() {
    let workflow = yaml(&root().join(".github/workflows/check.yml"));
    let jobs = workflow["jobs"].as_object().expect("a workflow has jobs");
    for (name, job) in jobs {
        let minutes = job["timeout-minutes"].as_u64().expect("a number");
        assert!(minutes <= 15 && job["needs"].is_null(), "{name} ends after {minutes} minutes");
    }
    assert_eq!(workflow["permissions"]["contents"], "read", "a fork's pull request may change nothing");
}

/// Of GitHub's syntax for forms: the types of elements, and the fields that each needs.
#[test]
fn forms_have_the_fields_that_github_asks_for() {
    let forms = files(".github/ISSUE_TEMPLATE");
    let forms: Vec<&PathBuf> = forms.iter().filter(|path| !path.ends_with("config.yml")).collect();
    assert!(forms.len() >= 2, "{forms:?}");
    for path in forms {
        let form = yaml(path);
        for field in ["name", "description"] {
            assert!(form[field].is_string(), "{}: no {field}", path.display());
        }
        let mut names = Vec::new();
        for element in list(&form, "body") {
            let kind = element["type"].as_str().expect("an element has a type");
            let attributes = &element["attributes"];
            if kind == "markdown" {
                assert!(attributes["value"].is_string(), "{}: {element}", path.display());
                continue;
            }
            let is_known = ["textarea", "input", "dropdown", "checkboxes"].contains(&kind);
            assert!(is_known && attributes["label"].is_string(), "{}: {element}", path.display());
            assert_eq!(kind == "dropdown", attributes["options"].is_array(), "{element}");
            names.push(element["id"].as_str().expect("an element has an id").to_owned());
        }
        names.sort();
        let all = names.len();
        names.dedup();
        assert!(all > 0 && names.len() == all, "{}: {names:?}", path.display());
    }
}
