//! `ebb-activator`: the activator as a program of its own.

fn main() {}
