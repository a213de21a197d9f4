//! `Date`, which every response has.

use std::cell::Cell;
use std::time::SystemTime;

use httpdate::HttpDate;
use protocol::http1::Date;

/// Long enough for `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE_BYTES: usize = size_of::<Date>();

thread_local! {
    /// The second that was written last, and how it is written.
    static WRITTEN: Cell<(u64, [u8; DATE_BYTES])> = const { Cell::new((u64::MAX, [0; DATE_BYTES])) };
}

/// The text of `Date` for the present second, formatted once a second and thread.
pub(crate) fn now() -> Date {
    let now = runtime::wall_time();
    let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut known, mut text) = WRITTEN.get();
    if known != second {
        known = second;
        text.copy_from_slice(HttpDate::from(now).to_string().as_bytes());
        WRITTEN.set((known, text));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_one_of_rfc_9110_and_close_to_now() {
        for _ in 0..2 {
            let text = String::from_utf8(super::now().to_vec()).expect("ASCII");
            let date: SystemTime = text.parse::<HttpDate>().expect("a date").into();
            let age = runtime::wall_time().duration_since(date).expect("in the past");
            assert!(age.as_secs() < 60, "{text}");
        }
    }
}
