//! Neighbours of `ebb up`: other users of the machine, other machines, pods and tenants. None takes anything
//! from another.

mod api_token;
mod forwarded;
