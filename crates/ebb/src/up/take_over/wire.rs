//! Messages and descriptors over a Unix socket: a head of eight bytes (how long, how many descriptors), the
//! message as JSON, and the descriptors, some with each of a few more bytes.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use anyhow::{Context, bail, ensure};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::messages::TakeOverMessage;

/// Descriptors in one piece; the kernel takes up to 253.
const AT_ONCE: usize = 64;
/// A template may be a megabyte, and there may be hundreds.
const LONGEST: usize = 256 << 20;
/// More than any limit of open files that machines have.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// Sends one message with descriptors, which stay open here.
pub(super) fn send(
    mut stream: &UnixStream,
    message: &TakeOverMessage,
    descriptors: &[OwnedFd],
) -> anyhow::Result<()> {
    let text = serde_json::to_vec(message).context("messages are plain data")?;
    let (length, count) = (u32::try_from(text.len())?, u32::try_from(descriptors.len())?);
    stream.write_all(&[length.to_be_bytes(), count.to_be_bytes()].concat())?;
    stream.write_all(&text)?;
    for some in descriptors.chunks(AT_ONCE) {
        let borrowed: Vec<BorrowedFd<'_>> = some.iter().map(OwnedFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        ensure!(control.push(SendAncillaryMessage::ScmRights(&borrowed)), "there is room for {AT_ONCE}");
        // On a stream descriptors travel only beside data, of which one byte is enough.
        sendmsg(stream, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL).map_err(io::Error::from)?;
    }
    Ok(())
}

/// Receives one message with its descriptors.
pub(super) fn receive(mut stream: &UnixStream) -> anyhow::Result<(TakeOverMessage, Vec<OwnedFd>)> {
    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    let number = |bytes: &[u8]| bytes.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
    let (length, count) = (number(&head[..4]), number(&head[4..]));
    ensure!(
        length <= LONGEST && count <= DESCRIPTORS_MAX,
        "{length} bytes and {count} descriptors are announced"
    );
    let mut text = vec![0; length];
    stream.read_exact(&mut text)?;
    let mut descriptors = Vec::new();
    while descriptors.len() < count {
        let before = descriptors.len();
        receive_some(stream, &mut descriptors)?;
        // The kernel closes those for which this process has no room, and the read succeeds all the same.
        ensure!(descriptors.len() > before, "descriptors were announced and did not come");
    }
    let message = serde_json::from_slice(&text).context("the message is not understood")?;
    Ok((message, descriptors))
}

fn receive_some(stream: &UnixStream, descriptors: &mut Vec<OwnedFd>) -> anyhow::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    // Without the flag every program that is started from here on would inherit the descriptors, and keep
    // open what is closed here.
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received =
        recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, flags).map_err(io::Error::from)?;
    if received.bytes == 0 {
        bail!("the other process has closed the connection");
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn descriptors_arrive_in_their_order_behind_their_message() {
        let (here, there) = UnixStream::pair().expect("a pair");
        let folder = tempfile::tempdir().expect("a folder");
        let path = |number: usize| folder.path().join(number.to_string());
        let numbers = 0..150;
        for number in numbers.clone() {
            std::fs::write(path(number), number.to_string()).expect("it can be written");
        }
        let sender = std::thread::spawn({
            let descriptors: Vec<OwnedFd> =
                numbers.map(|number| File::open(path(number)).expect("it is there").into()).collect();
            move || {
                send(&here, &TakeOverMessage::Refused { reason: "x".repeat(1 << 20) }, &descriptors)?;
                send(&here, &TakeOverMessage::Yours, &[])
            }
        });
        let (message, descriptors) = receive(&there).expect("the first");
        assert!(matches!(message, TakeOverMessage::Refused { reason } if reason.len() == 1 << 20));
        let read = |file: OwnedFd| std::io::read_to_string(File::from(file)).expect("it can be read");
        let read: Vec<String> = descriptors.into_iter().map(read).collect();
        assert_eq!(read, (0..150).map(|number| number.to_string()).collect::<Vec<_>>());
        assert!(matches!(receive(&there), Ok((TakeOverMessage::Yours, none)) if none.is_empty()));
        sender.join().expect("no panic").expect("all was sent");
        assert!(receive(&there).is_err(), "the other side is gone");
    }
}
