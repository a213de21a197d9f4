//! `ebb record save`: the records of the autoscalers that decide, copied to this machine for `ebb replay`.
//!
//! A record is copied while it is written. Its last segment ends where the last request found its end, and
//! its oldest segments may go meanwhile: the copy is then a record that begins later.

use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use autoscaler::api_types::{RecordList, RecordView, SegmentView};
use recording::RecordCopy;

use crate::autoscaler_api::AutoscalerApi;
use crate::cli::RecordSaveOptions;
use crate::output;

/// The records of an API, and below it their segments.
const RECORDS: &str = "/v1/record";
const NOTHING: &str = "nothing is recorded; begin a record with `ebb up --record`, or on a cluster with \
                       record-directory in ConfigMap config-autoscaler before the autoscalers start";

/// Copies each record into a folder of its autoscaler's name. Exit code 1 if nothing is recorded.
pub(crate) fn save(options: &RecordSaveOptions) -> anyhow::Result<ExitCode> {
    crate::up::runtime()?.block_on(async {
        let api = AutoscalerApi::find_at(&options.place, true).await?;
        let list: RecordList = api.get(RECORDS).await?;
        for silent in &list.unanswered {
            output::print_warning(&format!(
                "autoscaler {silent} gave no answer, and its record is not saved"
            ));
        }
        if list.records.is_empty() {
            output::print_problem(NOTHING);
            return Ok(ExitCode::FAILURE);
        }
        for record in &list.records {
            let saved = SavedRecord::copy(&api, record, &options.directory).await?;
            output::print_shown(&saved.text(&options.directory))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// A record that was copied.
#[derive(Debug)]
struct SavedRecord<'a> {
    autoscaler: &'a str,
    segments: usize,
    bytes: u64,
}

impl<'a> SavedRecord<'a> {
    async fn copy(api: &AutoscalerApi, record: &'a RecordView, directory: &Path) -> anyhow::Result<Self> {
        let folder = folder_of(directory, &record.autoscaler)?;
        let saving = || format!("saving the record of autoscaler {}", record.autoscaler);
        let copy = RecordCopy::begin(folder.clone()).with_context(|| folder.display().to_string())?;
        let mut saved = Self { autoscaler: &record.autoscaler, segments: 0, bytes: 0 };
        for segment in &record.segments {
            match copy_segment(api, &copy, &record.autoscaler, *segment).await {
                Ok(bytes) => {
                    saved.segments += 1;
                    saved.bytes = saved.bytes.saturating_add(bytes);
                }
                Err(error) => {
                    if !is_removed(api, record, *segment).await.with_context(saving)? {
                        return Err(error.context(saving()));
                    }
                    output::print_warning(&format!(
                        "segment {} of autoscaler {} was removed meanwhile, because its record is full",
                        segment.number, record.autoscaler
                    ));
                }
            }
        }
        Ok(saved)
    }

    fn text(&self, directory: &Path) -> String {
        let Self { autoscaler, segments, bytes } = self;
        let (plural, kib) = (if *segments == 1 { "" } else { "s" }, bytes.div_ceil(1024));
        format!(
            "autoscaler {autoscaler}: {segments} segment{plural}, {kib} KiB; `ebb replay {}` decides it again",
            directory.display()
        )
    }
}

/// The folder for the record of an autoscaler. The API said the autoscaler's name: it has to be one folder,
/// so that nothing is written outside of `directory`.
fn folder_of(directory: &Path, autoscaler: &str) -> anyhow::Result<PathBuf> {
    let mut parts = Path::new(autoscaler).components();
    let is_one = matches!(parts.next(), Some(Component::Normal(part)) if part == autoscaler);
    ensure!(is_one && parts.next().is_none(), "an autoscaler is called {autoscaler:?}, which is no name");
    Ok(directory.join(autoscaler))
}

/// Copies a segment at least as far as it went when it was listed; returns how many bytes were copied.
async fn copy_segment(
    api: &AutoscalerApi,
    copy: &RecordCopy,
    autoscaler: &str,
    segment: SegmentView,
) -> anyhow::Result<u64> {
    let mut from = 0;
    while from < segment.bytes {
        let path = format!("{RECORDS}/{autoscaler}/{}?from={from}", segment.number);
        let part = api.bytes_from(autoscaler, &path).await?;
        let bytes = u64::try_from(part.len()).unwrap_or(u64::MAX);
        ensure!(bytes > 0, "{path} answered nothing, although {} bytes were there", segment.bytes);
        copy.append(segment.number, &part)?;
        from = from.saturating_add(bytes);
    }
    Ok(from)
}

/// Whether a segment is no longer in the record that it was in.
async fn is_removed(api: &AutoscalerApi, record: &RecordView, segment: SegmentView) -> anyhow::Result<bool> {
    let list: RecordList = api.get(RECORDS).await?;
    let present = list.records.iter().find(|other| other.autoscaler == record.autoscaler);
    Ok(present.is_some_and(|present| present.segments.iter().all(|other| other.number > segment.number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leaves_the_directory_is_refused() {
        let directory = Path::new("saved");
        let folder = folder_of(directory, "autoscaler-7d9f-x2").expect("a name");
        assert_eq!(folder, Path::new("saved/autoscaler-7d9f-x2"));
        for name in ["", ".", "..", "../other", "a/b", "/etc", "a/"] {
            let error = folder_of(directory, name).expect_err(name).to_string();
            assert!(error.contains("which is no name"), "{name}: {error}");
        }
    }

    #[test]
    fn a_copy_says_how_much_it_is_and_what_reads_it() {
        let saved = SavedRecord { autoscaler: "autoscaler-1", segments: 3, bytes: 2_049 };
        assert_eq!(
            saved.text(Path::new("saved")),
            "autoscaler autoscaler-1: 3 segments, 3 KiB; `ebb replay saved` decides it again"
        );
    }
}
