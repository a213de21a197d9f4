//! What we read and write, beside what libraries of the field make of the same: where they differ, a table
//! says why.

mod heads;
mod hpack;
mod responses;
mod session;
