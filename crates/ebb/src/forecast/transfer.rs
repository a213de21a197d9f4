//! `ebb forecast --import` and `--export`: the past of a revision from a file, and to one.

use anyhow::{Context, bail};
use autoscaler::api_types::{API_VERSION, DemandImportView, DemandView};
use vocabulary::RevisionName;

use super::past_file::{FileNotes, file_of};
use crate::autoscaler_api::AutoscalerApi;
use crate::cli::PastFileOptions;
use crate::simulate::load_files;
use crate::utc_time;

/// The word of the API for a demand of processors.
pub(super) const CPU: &str = "cpu";

/// The file of what is remembered of a revision.
pub(super) async fn export(
    api: &AutoscalerApi,
    name: &RevisionName,
    options: &PastFileOptions,
) -> anyhow::Result<String> {
    let past: DemandView = api.get(&page_of(name)).await?;
    check_metric(&past)?;
    if past.minutes.is_empty() {
        bail!("no demand of {name} is remembered; ebb.dev/prediction: observe (or auto) begins to");
    }
    Ok(file_of(&past, options.service_time, utc_time::now()))
}

/// Has an autoscaler take in the past that stands in a file; returns how many measured minutes these were.
pub(super) async fn import(
    api: &AutoscalerApi,
    name: &RevisionName,
    options: &PastFileOptions,
    file: &str,
) -> anyhow::Result<u64> {
    let known: DemandView = api.get(&page_of(name)).await?;
    check_metric(&known)?;
    let owner = known.owner.clone();
    let told = read(file, options, known).map_err(anyhow::Error::msg)?;
    let body = serde_json::to_vec(&told).context("writing the minutes as JSON")?;
    let taken: DemandImportView = api.put(owner.as_ref(), &page_of(name), body.into()).await?;
    Ok(taken.minutes)
}

/// The minutes of a file, in the unit of what is known of the revision.
fn read(file: &str, options: &PastFileOptions, known: DemandView) -> Result<DemandView, String> {
    let told = |problem: String| format!("{file}: {problem}");
    let mut notes = FileNotes::default();
    // The text is gone through twice: its comments say how its lines are to be read.
    let text = load_files::text(file)?;
    text.lines().try_for_each(|line| notes.take_line(line).map_err(told))?;
    notes.begins = options.begins.or(notes.begins);
    notes.bin = options.bin.or(notes.bin);
    notes.service_time = options.service_time.or(notes.service_time);
    let past = notes.minutes(&load_files::read_text(file, &text, notes.bin)?, &known.metric).map_err(told)?;
    if past.minutes.is_empty() {
        return Err(told("it tells of no whole minute".to_owned()));
    }
    let ago = utc_time::now().checked_sub(past.begins);
    let ago = ago.ok_or_else(|| told("it begins in the future; write --begins".to_owned()))?;
    let first_ms_ago = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
    let (version, owner, minutes) = (API_VERSION, None, past.minutes);
    Ok(DemandView { version, owner, first_ms_ago, minutes, ..known })
}

/// Refuses a demand of processors, of which no file of requests tells.
fn check_metric(past: &DemandView) -> anyhow::Result<()> {
    if past.metric == CPU {
        bail!(
            "the demand of {} is what its pods use of the processors (cpu), and a file tells of requests; it can be neither exported nor imported",
            past.name
        );
    }
    Ok(())
}

fn page_of(name: &RevisionName) -> String {
    format!("/v1/revisions/{name}/demand")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_pipe_is_a_file() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(b"# begins 2020-01-01T00:00Z\n# bin 1m\n60\n120\n").expect("a pipe has room");
        drop(writer);
        let file = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let options = PastFileOptions {
            import: Some(file.clone()),
            export: false,
            begins: None,
            bin: None,
            service_time: None,
        };
        let known = DemandView {
            version: API_VERSION,
            name: RevisionName::parse("default/service/hello").expect("a name"),
            owner: None,
            metric: "rps".to_owned(),
            first_ms_ago: 0,
            minutes: Vec::new(),
        };
        let told = read(&file, &options, known).expect("it has two minutes");
        assert_eq!(told.minutes, [Some([1.0, 1.0]), Some([2.0, 2.0])]);
    }
}
