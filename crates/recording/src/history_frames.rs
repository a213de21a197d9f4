//! Histories, and demand of the past, as frames hold them: in the JSON in which every store writes a history.

use std::sync::Arc;

use orchestration::ControlEvent;
use scaling::{DemandDays, HistoryRecord, RevisionHistory};
use vocabulary::RevisionName;

use crate::frame_fault::FrameFault;
use crate::wire::proto::HistoryMessage;
use crate::wire::revision_name;

/// Demand is a history of nothing else.
pub(crate) fn demand_out(revision: &RevisionName, demand: &DemandDays) -> HistoryMessage {
    history_out(revision, &demand.export())
}

pub(crate) fn history_in(message: &HistoryMessage) -> Result<ControlEvent, FrameFault> {
    let (revision, history) = read(message)?;
    Ok(ControlEvent::HistoryRestored { revision, history: Box::new(history) })
}

pub(crate) fn demand_in(message: &HistoryMessage) -> Result<ControlEvent, FrameFault> {
    let (revision, history) = read(message)?;
    let demand = history.demand().cloned().ok_or_else(|| bad("has no demand".to_owned()))?;
    Ok(ControlEvent::DemandImported { revision, demand: Arc::new(demand) })
}

/// The history of a revision, as a record holds it.
pub(crate) fn history_out(revision: &RevisionName, record: &HistoryRecord) -> HistoryMessage {
    HistoryMessage {
        revision: revision.as_str().to_owned(),
        history: serde_json::to_vec(record).expect("a history is numbers and bytes"),
    }
}

fn read(message: &HistoryMessage) -> Result<(RevisionName, RevisionHistory), FrameFault> {
    let record: HistoryRecord = serde_json::from_slice(&message.history)
        .map_err(|error| bad(format!("is no record of one: {error}")))?;
    let history = RevisionHistory::restore(record).map_err(|fault| bad(format!("is refused: {fault}")))?;
    Ok((revision_name(&message.revision)?, history))
}

fn bad(problem: String) -> FrameFault {
    FrameFault::BadValue { field: "a history", problem }
}
