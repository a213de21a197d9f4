//! Requests that an app holds, each on a connection of its own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::bench::api;

/// How long the app may take to have all of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requests that wait for their answers.
pub(crate) struct HeldRequests {
    clients: Vec<TcpStream>,
    /// Where the app itself says how many it holds.
    app: SocketAddr,
}

impl HeldRequests {
    /// None yet, of the app at this port.
    pub(crate) fn of_app(port: u16) -> Self {
        Self { clients: Vec::new(), app: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) }
    }

    /// Sends further requests of this head to a proxy, and waits until the app has all that were sent.
    pub(crate) fn send(&mut self, further: u32, proxy: SocketAddr, head: &str) -> anyhow::Result<()> {
        for _ in 0..further {
            let mut client = TcpStream::connect(proxy)?;
            client.write_all(head.as_bytes())?;
            self.clients.push(client);
        }
        api::until(PATIENCE, || {
            let at_app: usize = api::get(self.app, "localhost", "/held")?.trim().parse()?;
            ensure!(
                at_app >= self.clients.len(),
                "the app holds {at_app} requests of {}",
                self.clients.len()
            );
            Ok(())
        })
    }

    /// Waits until all of them are answered.
    pub(crate) fn answered(self) -> anyhow::Result<()> {
        for mut client in self.clients {
            client.set_read_timeout(Some(Duration::from_secs(60)))?;
            let mut answer = [0; 512];
            let length = client.read(&mut answer).context("a held request was not answered")?;
            ensure!(answer[..length].starts_with(b"HTTP/1.1 200"), "a held request was refused");
        }
        Ok(())
    }
}
