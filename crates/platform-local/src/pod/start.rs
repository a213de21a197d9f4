//! What is `ebb pod` told before it starts anything? One line of JSON, and with it the outputs of containers
//! beside the app.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use anyhow::{Context, ensure};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::{LONGEST_LINE, PodSpec};

/// Two for each container beside the app.
const DESCRIPTORS_MAX: usize = 2 * crate::manifest::MOST_SIDECARS;

/// Sends what containers beside the app print to, in their order. To be called before the line is written.
pub(crate) fn send_outputs(socket: &UnixStream, outputs: &[OwnedFd]) -> io::Result<()> {
    if outputs.is_empty() {
        return Ok(());
    }
    let borrowed: Vec<BorrowedFd<'_>> = outputs.iter().map(OwnedFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::Error::other("there are too many containers"));
    }
    // A byte must go with them, and before JSON a space means nothing.
    sendmsg(socket, &[IoSlice::new(b" ")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Reads both from standard input. Nothing follows the line until the end, so reading ahead loses nothing.
pub(super) fn read() -> anyhow::Result<(PodSpec, Vec<OwnedFd>)> {
    let (line, descriptors) = receive(io::stdin().as_fd()).context("reading what to run")?;
    let spec = serde_json::from_slice(&line)
        .context("`ebb pod` is started by `ebb up`, which tells it what to run")?;
    Ok((spec, descriptors))
}

fn receive(socket: BorrowedFd<'_>) -> anyhow::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (mut line, mut descriptors) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 16 * 1024];
    while !line.ends_with(b"\n") {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(socket, &mut [IoSliceMut::new(&mut buffer)], &mut control, flags);
        let received = match received {
            Err(rustix::io::Errno::INTR) => continue,
            received => received?,
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                descriptors.extend(some);
            }
        }
        if received.bytes == 0 {
            break;
        }
        line.extend_from_slice(&buffer[..received.bytes]);
        ensure!(line.len() <= LONGEST_LINE, "it is longer than {LONGEST_LINE} bytes");
    }
    Ok((line, descriptors))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn outputs_arrive_with_the_line_however_long_it_is() {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let outputs: Vec<OwnedFd> = vec![writer.into()];
        let line = format!("{:?}\n", "x".repeat(100_000));
        let sending = std::thread::spawn({
            let line = line.clone();
            move || {
                send_outputs(&ours, &outputs).expect("there is room");
                ours.write_all(line.as_bytes()).expect("it is read");
            }
        });
        let (received, descriptors) = receive(theirs.as_fd()).expect("all of it");
        sending.join().expect("no panic");
        assert_eq!(received, format!(" {line}").into_bytes());
        let [output] = <[OwnedFd; 1]>::try_from(descriptors).expect("one came");
        std::fs::File::from(output).write_all(b"printed").expect("it is open");
        let mut printed = String::new();
        reader.read_to_string(&mut printed).expect("it can be read");
        assert_eq!(printed, "printed", "and no other process holds it open");
    }
}
