//! What takes two nodes: `tests/cluster/up 2`, then `tests/cluster/install`.

mod drain;
mod node_loss;
mod zones;
