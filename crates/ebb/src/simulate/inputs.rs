//! Manifests and options become scenarios: one for what is written, and one for each variant.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use orchestration::RevisionFacts;
use platform_local::{FrontDoor, LoadedManifest, ManifestSource, first_facts};
use recording::RecordedLoad;
use simulator::{LoadBeginning, LoadShape, LoadSource, Scenario, ServiceLoad, ServiceScenario, WorldDelays};
use vocabulary::{RevisionName, did_you_mean, shown};

use super::load_files;
use super::recorded_run::{self, ServiceInputs};
use crate::cli::{SimulateOptions, VariantOption};

/// How the variant without other settings is called.
const AS_WRITTEN: &str = "as written";

/// In place of a name in a load: each Service that no other load names.
const EVERY_OTHER: &str = "*";

/// A scenario, and how the table calls it.
#[derive(Debug)]
pub(super) struct VariantScenario {
    pub(super) title: String,
    pub(super) scenario: Scenario,
}

/// The scenario of what is written, then those of the variants. Fails with every problem.
pub(super) fn variants(
    options: &SimulateOptions,
    source: &ManifestSource,
    loaded: &LoadedManifest,
    record: Option<&RecordedLoad>,
) -> Result<Vec<VariantScenario>, Vec<String>> {
    let facts = facts_of(loaded);
    let inputs = inputs_by_service(&facts, record, options)?;
    let length = options.length.or_else(|| covered_by_all(&inputs, record?)).unwrap_or_default();
    let scenario_of = |loaded: &LoadedManifest, facts: &[RevisionFacts]| Scenario {
        cluster: Arc::clone(&loaded.cluster),
        services: facts.iter().filter_map(|facts| service(facts, &inputs)).collect(),
        cores: facts.iter().filter_map(|facts| Some((facts.name.clone(), options.cores?))).collect(),
        delays: WorldDelays::default(),
        beginning: record.map_or_else(LoadBeginning::default, recorded_run::beginning),
        length,
        seed: options.seed,
        pace: options.pace,
        faults: options.faults.clone(),
    };
    let mut variants =
        vec![VariantScenario { title: AS_WRITTEN.to_owned(), scenario: scenario_of(loaded, &facts) }];
    for option in &options.compare {
        let changed = loaded_with(option, source)?;
        let changed_facts = facts_of(&changed);
        if has_equal_settings(&facts, &changed_facts) {
            let advice = "changes nothing: its values are those that apply without it; write others";
            return Err(vec![format!("--compare {} {advice}", shown(&option.text))]);
        }
        let scenario = scenario_of(&changed, &changed_facts);
        variants.push(VariantScenario { title: option.text.clone(), scenario });
    }
    Ok(variants)
}

/// Where nothing listens, the address of the front door is as good as any.
pub(super) fn facts_of(loaded: &LoadedManifest) -> Vec<RevisionFacts> {
    first_facts(loaded, FrontDoor::without_tls(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))))
}

fn loaded_with(option: &VariantOption, source: &ManifestSource) -> Result<LoadedManifest, Vec<String>> {
    let changed = source.clone().with_annotations(option.annotations.clone());
    platform_local::load(&changed).map_err(|findings| {
        let problems = findings.problems.iter();
        problems.map(|problem| format!("--compare {}: {problem}", shown(&option.text))).collect()
    })
}

fn has_equal_settings(first: &[RevisionFacts], second: &[RevisionFacts]) -> bool {
    first.iter().map(|facts| &facts.settings).eq(second.iter().map(|facts| &facts.settings))
}

/// `None` for a Service that a variant alone has: annotations add none.
fn service(facts: &RevisionFacts, inputs: &BTreeMap<RevisionName, ServiceInputs>) -> Option<ServiceScenario> {
    let ServiceInputs { load, service_time, start_up } = inputs.get(&facts.name)?.clone();
    Some(ServiceScenario { facts: facts.clone(), load, service_time, start_up })
}

/// What options and a record say of each Service.
fn inputs_by_service(
    facts: &[RevisionFacts],
    record: Option<&RecordedLoad>,
    options: &SimulateOptions,
) -> Result<BTreeMap<RevisionName, ServiceInputs>, Vec<String>> {
    let mut loads = loads_by_service(facts, options)?;
    if let Some(record) = record {
        let is_in_record = |facts: &RevisionFacts| record.revisions.contains_key(&facts.name);
        if loads.is_empty() && !facts.iter().any(is_in_record) {
            let names: Vec<&str> = record.revisions.keys().map(RevisionName::as_str).collect();
            let advice = "is about no Service of these files; it is about";
            return Err(vec![format!("--record {advice} {}", names.join(", "))]);
        }
        if let Some(length) = options.length {
            recorded_run::check_length(record, length).map_err(|problem| vec![problem])?;
        }
    }
    let mut inputs = BTreeMap::new();
    let mut problems = Vec::new();
    for RevisionFacts { name, .. } in facts {
        match recorded_run::inputs_of(name, loads.remove(name), record, options) {
            Ok(found) => drop(inputs.insert(name.clone(), found)),
            Err(problem) => problems.push(problem),
        }
    }
    problems.dedup();
    if problems.is_empty() { Ok(inputs) } else { Err(problems) }
}

/// The load of each Service that has one.
fn loads_by_service(
    facts: &[RevisionFacts],
    options: &SimulateOptions,
) -> Result<BTreeMap<RevisionName, LoadShape>, Vec<String>> {
    let mut found: BTreeMap<RevisionName, LoadShape> = BTreeMap::new();
    let mut problems = Vec::new();
    let is_for_every_other = |load: &&ServiceLoad| load.service == EVERY_OTHER;
    let (of_others, named): (Vec<&ServiceLoad>, Vec<&ServiceLoad>) =
        options.load.iter().partition(is_for_every_other);
    for load in named {
        match service_of(facts, &load.service) {
            Ok(name) if found.contains_key(name) => {
                problems.push(format!("--load names {name} twice; write one load for each Service"));
            }
            Ok(name) => match shape_of(load, options) {
                Ok(shape) => {
                    found.insert(name.clone(), shape);
                }
                Err(problem) => problems.push(format!("--load {}: {problem}", load.service)),
            },
            Err(problem) => problems.push(problem),
        }
    }
    match &of_others[..] {
        [] => {}
        [load] => match shape_of(load, options) {
            Ok(shape) => {
                for facts in facts {
                    found.entry(facts.name.clone()).or_insert_with(|| shape.clone());
                }
            }
            Err(problem) => problems.push(format!("--load {EVERY_OTHER}: {problem}")),
        },
        [_, ..] => problems.push(format!(
            "--load names {EVERY_OTHER} twice; write one load for the Services that no other load names"
        )),
    }
    let has_file = options.load.iter().any(|load| matches!(load.source, LoadSource::File(_)));
    if options.bin.is_some() && !has_file {
        problems.push(
            "--bin is about a load that stands in a file; write --load NAME=FILE, or leave it out".to_owned(),
        );
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// How much time the record and each file of a load tell of.
fn covered_by_all(inputs: &BTreeMap<RevisionName, ServiceInputs>, record: &RecordedLoad) -> Option<Duration> {
    let of_files = inputs.values().filter_map(|inputs| match &inputs.load {
        Some(LoadShape::File(file)) => Some(load_files::covered(file)),
        Some(_) | None => None,
    });
    of_files.chain([record.length]).min()
}

fn shape_of(load: &ServiceLoad, options: &SimulateOptions) -> Result<LoadShape, String> {
    match &load.source {
        LoadSource::Shape(shape) => Ok(shape.clone()),
        LoadSource::File(name) => {
            let file = load_files::read(name, options.bin)?;
            if let Some(length) = options.length {
                load_files::check_length(name, &file, length)?;
            }
            Ok(LoadShape::File(file))
        }
    }
}

/// The Service whose name ends so.
fn service_of<'f>(facts: &'f [RevisionFacts], written: &str) -> Result<&'f RevisionName, String> {
    let names = || facts.iter().map(|facts| &facts.name);
    let ends_so = |name: &&RevisionName| {
        name.as_str() == written
            || name.as_str().strip_suffix(written).is_some_and(|front| front.ends_with('/'))
    };
    let mut matching = names().filter(ends_so);
    match (matching.next(), matching.next()) {
        (Some(name), None) => Ok(name),
        (Some(one), Some(other)) => Err(format!(
            "--load names {}, which may be {one} or {other}; write the whole name",
            shown(written)
        )),
        (None, _) => {
            let near = did_you_mean(written, names().map(RevisionName::name));
            Err(format!("--load names {}, which is no Service of these files{near}", shown(written)))
        }
    }
}
