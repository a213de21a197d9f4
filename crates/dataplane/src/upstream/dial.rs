//! Establishes a TCP connection, within a limit.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;

use super::SendErrorKind;
use crate::socket_options::set_options;

pub(super) async fn dial(to: SocketAddr, limit: Duration) -> Result<TcpStream, SendErrorKind> {
    let stream = match tokio::time::timeout(limit, TcpStream::connect(to)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(SendErrorKind::ConnectRefused);
        }
        Ok(Err(error)) => return Err(SendErrorKind::ConnectFailed(error.kind().to_string())),
        Err(_elapsed) => return Err(SendErrorKind::ConnectTimedOut),
    };
    set_options(&stream).map_err(|error| SendErrorKind::ConnectFailed(error.kind().to_string()))?;
    Ok(stream)
}
