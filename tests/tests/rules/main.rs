//! Rules about the code that no compiler knows: which crate may use which, what the programs link, and how
//! the sources read. All of them are pure: cargo's metadata and the sources as text.

mod algorithms;
mod architecture;
mod circles;
mod dependencies;
mod file_graph;
mod house_rules;
mod manifests;
mod map;
mod sizes;
mod words;
