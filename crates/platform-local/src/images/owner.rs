//! Does a container still belong to an `ebb pod`?
//!
//! Each `ebb pod` binds an abstract socket named after its container and holds it for its whole life, as it
//! does with its port. The kernel frees the name when the process ends, however it ends. So a container
//! without such a socket is left over, whichever `ebb up` it was of; and one that another `ebb up` has taken
//! over is not.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says for as long as it lives that a container is this process's.
#[derive(Debug)]
pub(crate) struct ContainerOwner {
    _name: UnixDatagram,
}

impl ContainerOwner {
    /// Claims a container, which does not exist yet.
    pub(crate) fn claim(container: &str) -> io::Result<Self> {
        Ok(Self { _name: UnixDatagram::bind_addr(&address(container)?)? })
    }
}

/// Whether a process has claimed the container and lives. Where that cannot be found out, one may have.
pub(crate) fn has_owner(container: &str) -> bool {
    let connected = || UnixDatagram::unbound()?.connect_addr(&address(container)?);
    !matches!(connected(), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
}

fn address(container: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("ebb-container-{container}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_an_owner_until_that_ends() {
        let name = format!("ebb-test-{}", std::process::id());
        assert!(!has_owner(&name));
        let owner = ContainerOwner::claim(&name).expect("no other process has it");
        assert!(has_owner(&name));
        assert!(ContainerOwner::claim(&name).is_err(), "it is claimed once");
        drop(owner);
        // A child that another test has forked holds a copy until its exec.
        assert!((0..100_000).any(|_| !has_owner(&name)), "it has an owner for ever");
    }
}
