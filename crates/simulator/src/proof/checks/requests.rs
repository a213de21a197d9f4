//! Each request is answered, or refused for a reason, by its time limit, and once.

use std::collections::{BTreeMap, BTreeSet};

use throttling::RequestRefusal;
use vocabulary::Timestamp;

use crate::proof::check_failure::{CheckFailure, Checked, RequestEnd};
use crate::proof::trial_event::RequestNumber;

const ENDS_ONCE: &str = "each request ends once";
const IN_TIME: &str = "each request is answered or refused by its time limit";
const FOR_A_REASON: &str = "no request is refused but by a limit or the end of a process";

/// The requests that have not ended.
#[derive(Debug, Default)]
pub(super) struct RequestChecks {
    open: BTreeMap<RequestNumber, Timestamp>,
    by_time: BTreeSet<(Timestamp, RequestNumber)>,
}

impl RequestChecks {
    pub(super) fn arrived(&mut self, request: RequestNumber, answer_by: Timestamp) {
        self.open.insert(request, answer_by);
        self.by_time.insert((answer_by, request));
    }

    pub(super) fn ended(&mut self, request: RequestNumber, end: RequestEnd) -> Checked {
        let Some(answer_by) = self.open.remove(&request) else {
            return Err(CheckFailure::new(ENDS_ONCE, format!("request {} ends again: {end:?}", request.0)));
        };
        self.by_time.remove(&(answer_by, request));
        match end {
            // Every revision of a made-up world exists, and no assignment of one carries a hold.
            RequestEnd::Refused(refusal @ (RequestRefusal::Gone | RequestRefusal::Held)) => {
                let text = format!("request {} is refused: {refusal:?}", request.0);
                Err(CheckFailure::new(FOR_A_REASON, text))
            }
            RequestEnd::Refused(
                RequestRefusal::RevisionQueueFull { .. } | RequestRefusal::ActivatorQueueFull,
            )
            | RequestEnd::Served
            | RequestEnd::NoActivator
            | RequestEnd::WaitedTooLong
            | RequestEnd::LostWithActivator
            | RequestEnd::LostWithPod => Ok(()),
        }
    }

    pub(super) fn overdue(&self, now: Timestamp) -> Checked {
        match self.by_time.first() {
            Some((answer_by, request)) if *answer_by < now => {
                Err(CheckFailure::new(IN_TIME, format!("request {} had to end by {answer_by}", request.0)))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_late_or_ends_twice_is_found() {
        let mut checks = RequestChecks::default();
        let (request, by) = (RequestNumber(1), Timestamp::from_secs(5));
        checks.arrived(request, by);
        assert_eq!(checks.overdue(by), Ok(()));
        assert!(checks.overdue(Timestamp::from_secs(6)).is_err_and(|failure| failure.check == IN_TIME));
        assert_eq!(checks.ended(request, RequestEnd::Served), Ok(()));
        assert_eq!(checks.overdue(Timestamp::from_secs(6)), Ok(()));
        assert!(checks.ended(request, RequestEnd::Served).is_err_and(|failure| failure.check == ENDS_ONCE));
    }

    #[test]
    fn a_revision_that_exists_is_never_called_gone() {
        let mut checks = RequestChecks::default();
        for (number, refusal, is_right) in [
            (1, RequestRefusal::Gone, false),
            (2, RequestRefusal::Held, false),
            (3, RequestRefusal::ActivatorQueueFull, true),
        ] {
            checks.arrived(RequestNumber(number), Timestamp::from_secs(5));
            let ended = checks.ended(RequestNumber(number), RequestEnd::Refused(refusal));
            assert_eq!(ended.is_ok(), is_right, "{refusal:?}");
        }
    }
}
