//! The vectors of groups A–D, and what the configuration promises beyond them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ClusterConfig, RevisionSettings, ScalingSpec};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn nothing_written_means_the_defaults() {
    let config = ClusterConfig::parse(&map(&[])).expect("empty").value;
    assert_eq!(config, ClusterConfig::default());
    let settings = RevisionSettings::parse(&map(&[]), &config).expect("empty").value;
    assert_eq!(settings.resolve(&config, 0, Duration::from_mins(10)), ScalingSpec::default());
}
