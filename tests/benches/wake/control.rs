//! What a wake cannot be faster than: the same two processes, started by hand and asked as soon as they
//! answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tests::bench::clock;
use tests::bench::machine::Cores;
use tests::bench::process::Process;
use tests::bench::proxies::queue_proxy_environment;
use tests::ports::unused_port;

use crate::journey::{self, Seen};

/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest wait for a start: more than any takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn start_and_ask(ebb: &Path, app: &Path, folder: &Path) -> anyhow::Result<Seen> {
    let cores = Cores::divide()?.all();
    let port = unused_port();
    let began = clock::now();
    let mut command = Command::new(app);
    command.env("PORT", port.to_string());
    let mut app = Process::start(command, "control-app", folder, &cores)?;
    let mut command = Command::new(ebb);
    command.arg("queue-proxy").env_clear().envs(queue_proxy_environment(port, 0));
    let mut queue_proxy = Process::start(command, "control-queue-proxy", folder, &cores)?;
    let ports: Value = serde_json::from_str(&queue_proxy.first_line()?)?;
    let requests = ports["requests"].as_u64().and_then(|port| u16::try_from(port).ok());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, requests.context("a port for requests")?));
    loop {
        match journey::send(address, "localhost") {
            Ok(seen) => return Ok(Seen { began, ..seen }),
            Err(error) if clock::since(began) > PATIENCE => return Err(error),
            Err(_) => thread::sleep(PAUSE),
        }
        app.check_alive()?;
        queue_proxy.check_alive()?;
    }
}
