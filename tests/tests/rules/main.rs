//! Rules about the code that no compiler knows: which crate may use which, what the programs link, how the
//! sources read, and where the documents lead. All of them are pure: cargo's metadata and files as text.

mod algorithms;
mod architecture;
mod circles;
mod dependencies;
mod documents;
mod file_graph;
mod house_rules;
mod log_lines;
mod manifests;
mod map;
mod sentences;
mod sizes;
mod words;
