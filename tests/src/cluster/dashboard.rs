//! `kubectl ebb dashboard` as a person runs it, and the answers of its API.

use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout};

use super::{PATIENCE, TestNamespace, plugin_of_kubectl};
use crate::client::answer_until;

/// A running `kubectl ebb dashboard`, which ends with this.
#[derive(Debug)]
pub struct PluginDashboard {
    _process: Child,
    /// It prints on, and ends where its output has no reader.
    _output: Lines<BufReader<ChildStdout>>,
    _folder: TempDir,
    address: String,
    token: String,
}

impl PluginDashboard {
    /// Starts it, and takes the address and the token that it prints.
    pub async fn open(namespace: &TestNamespace) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = plugin_of_kubectl(namespace, folder.path());
        command.args(["dashboard", "--print-only"]).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it runs");
        let output = process.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines();
        let first = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it prints in time");
        let line = first.expect("it can be read").expect("it prints its address");
        let parts = line.strip_prefix("http://").and_then(|rest| rest.split_once("/#"));
        let (address, token) = parts.expect("an address and a token");
        let (address, token) = (address.to_owned(), token.to_owned());
        Self { _process: process, _output: lines, _folder: folder, address, token }
    }

    /// What has come of the answer to `GET path` once a text is in it, for a reader with the token.
    pub async fn asked(&self, path: &str, until: &str) -> String {
        self.asked_with(&self.token, path, until).await
    }

    /// The same for a reader without the token.
    pub async fn asked_by_stranger(&self, path: &str, until: &str) -> String {
        self.asked_with("", path, until).await
    }

    async fn asked_with(&self, token: &str, path: &str, until: &str) -> String {
        let address = &self.address;
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is open");
        answer_until(&mut stream, until, PATIENCE).await
    }
}
