//! What one of our ends writes, the other reads back, in whatever pieces it is written and read.

mod http1;
mod http2;
mod messages;
mod targets;
