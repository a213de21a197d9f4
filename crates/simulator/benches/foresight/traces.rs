//! The series of the folder that `EBB_TRACES` names, or generated ones.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::generated;
use crate::series::DemandSeries;

/// Series of which no demand of a revision follows.
const LEFT_OUT: [&str; 2] = ["crane-03", "crane-10"];
/// Demand of five minutes, with long rests.
const SPARSE: [&str; 2] = ["nab-tweets-pfe", "nab-tweets-ups"];
const APPS: &str = "azure-100-apps";

/// The folder from which series come.
#[derive(Clone, Debug)]
pub(crate) struct TraceFolder {
    folder: Option<PathBuf>,
}

impl TraceFolder {
    pub(crate) fn of_environment() -> Self {
        Self { folder: std::env::var_os("EBB_TRACES").map(PathBuf::from) }
    }

    /// One line for the head of the tables.
    pub(crate) fn origin(&self) -> String {
        match &self.folder {
            Some(folder) => format!("series of {}", folder.display()),
            None => "generated series, for EBB_TRACES names no folder of real ones; goals are not judged"
                .to_owned(),
        }
    }

    /// Whether goals, which are meant for real demand, say anything.
    pub(crate) fn are_real(&self) -> bool {
        self.folder.is_some()
    }

    /// All series that are kept by minutes.
    pub(crate) fn warm(&self) -> Vec<DemandSeries> {
        let Some(folder) = &self.folder else { return generated::warm() };
        let index = text_of(&folder.join("index.csv"));
        let rows = index.lines().skip(1).filter_map(|row| {
            let mut cells = row.split(',');
            let name = cells.next()?.strip_suffix(".csv.gz")?;
            (cells.next()? == "60" && name != APPS && !LEFT_OUT.contains(&name)).then_some(name)
        });
        rows.map(|name| DemandSeries { name: name.to_owned(), values: column(folder, name) }).collect()
    }

    /// The number of requests in each five minutes.
    pub(crate) fn sparse(&self) -> Vec<DemandSeries> {
        let Some(folder) = &self.folder else { return generated::sparse() };
        let series = |name: &str| DemandSeries { name: name.to_owned(), values: column(folder, name) };
        SPARSE.map(series).into()
    }

    /// The number of pods that each app needed in each minute of a day.
    pub(crate) fn apps(&self) -> Vec<DemandSeries> {
        let Some(folder) = &self.folder else { return generated::apps() };
        let text = unpacked(&folder.join(format!("{APPS}.csv.gz")));
        let apps = text.lines().skip(1).map(|row| {
            let mut cells = row.split(',');
            let name = cells.next().unwrap_or_default().to_owned();
            // The second cell is the number of invocations.
            DemandSeries { name, values: cells.skip(1).map(number).collect() }
        });
        apps.collect()
    }
}

/// A file of one column, with a line for its name.
fn column(folder: &Path, name: &str) -> Vec<f64> {
    let path = folder.join(format!("{name}.csv.gz"));
    unpacked(&path).lines().skip(1).map(number).collect()
}

fn number(text: &str) -> f64 {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.unwrap_or_else(|| panic!("{text:?} of a series is no number")).max(0.0)
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|problem| panic!("reading {}: {problem}", path.display()))
}

fn unpacked(path: &Path) -> String {
    let file = File::open(path).unwrap_or_else(|problem| panic!("opening {}: {problem}", path.display()));
    let mut text = String::new();
    let read = flate2::read::GzDecoder::new(file).read_to_string(&mut text);
    read.unwrap_or_else(|problem| panic!("unpacking {}: {problem}", path.display()));
    text
}
