//! The protocol before other readers and writers: libraries of the field, its own other end, and a model of
//! the states of a stream.

mod differential;
mod round_trip;
mod states;
