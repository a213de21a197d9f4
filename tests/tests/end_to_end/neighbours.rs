//! What a neighbour can take: clients, pods, tenants and local users beside those whom it would hurt, on the
//! real executables.

mod api_token;
mod forwarded;
mod injector;
mod pages;
