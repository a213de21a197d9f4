//! `Date`, which every response has.

use std::cell::RefCell;
use std::time::SystemTime;

use http::header::HeaderValue;
use httpdate::HttpDate;

thread_local! {
    /// The second that was written last, and how it is written.
    static WRITTEN: RefCell<(u64, HeaderValue)> = const { RefCell::new((u64::MAX, HeaderValue::from_static(""))) };
}

/// The present.
pub(crate) fn value() -> HeaderValue {
    let now = runtime::wall_time();
    let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    WRITTEN.with_borrow_mut(|(known, value)| {
        if *known != second {
            *known = second;
            *value = HeaderValue::try_from(HttpDate::from(now).to_string()).expect("a date is header text");
        }
        value.clone()
    })
}
