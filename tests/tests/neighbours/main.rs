//! What a neighbour can take: clients, pods, tenants and local users beside those whom it would hurt, on the
//! real executables.

mod injector;
mod pages;
