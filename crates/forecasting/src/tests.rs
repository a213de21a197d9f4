//! Vectors, laws and made-up series of the whole crate.

mod generated;
mod laws;
mod made_up_past;
mod vectors;
mod world;
