//! What the next owner of a revision finds of the forecast that the former one wrote.

use forecasting::PredictionRecord;
use proptest::prelude::*;

use super::forecast::{written, written_with};
use super::*;
use crate::history::RevisionHistory;

/// What the next owner reads of the history that the former one wrote.
#[derive(Clone, Copy, Debug)]
pub(super) enum FormerRecord {
    Nothing,
    Whole,
    /// Other numbers stand in what is kept of the forecast: of the class's own count, and of everything else.
    Damaged {
        reactive: u32,
        number: u64,
    },
}

impl FormerRecord {
    /// The history that the next owner reads; `None` if it reads nothing.
    pub(super) fn history(self, former: &World) -> Option<Box<RevisionHistory>> {
        match self {
            Self::Nothing => None,
            Self::Whole => Some(written(former)),
            Self::Damaged { reactive, number } => {
                Some(written_with(former, |stored| damage(stored, reactive, number)))
            }
        }
    }
}

pub(super) fn former_record() -> impl Strategy<Value = FormerRecord> {
    let damaged = (1_u32..30, any::<u64>());
    prop_oneof![
        Just(FormerRecord::Nothing),
        Just(FormerRecord::Whole),
        damaged.prop_map(|(reactive, number)| FormerRecord::Damaged { reactive, number }),
    ]
}

fn damage(stored: &mut PredictionRecord, reactive: u32, number: u64) {
    stored.reactive = reactive;
    stored.starts_ms.fill(number);
    let Some(forecaster) = &mut stored.forecaster else { return };
    (forecaster.late, forecaster.saved_max) = (number, number);
    forecaster.rule = usize::try_from(number % 30).unwrap_or_default();
    forecaster.budget.minutes_before = number;
    for sums in &mut forecaster.hours {
        sums.late.fill(number);
        sums.extra.fill(number);
    }
}
