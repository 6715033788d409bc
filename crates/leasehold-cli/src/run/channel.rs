//! A pair of sockets between two of our processes; when one process ends, the other reads an end of file.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest line that is accepted; we send no longer ones.
const LINE_MAX: usize = 4096;

/// One end.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    unread: Vec<u8>,
}

impl Channel {
    /// Both ends: a channel, and a file for the standard input of another process.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self { stream: ours, unread: Vec::new() }, theirs.into()))
    }

    /// The other end, in the process that got it as its standard input.
    ///
    /// The duplicate is closed when a command is executed; that command's standard input arrives through
    /// [`Channel::receive_with_file`].
    pub(crate) fn of_stdin() -> io::Result<Self> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Sends one message. Never blocks for long: messages are few and short.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.stream.write_all(&line(message)?)
    }

    /// Sends one message and an open file with it.
    pub(crate) fn send_with_file(&mut self, message: &impl Serialize, file: BorrowedFd<'_>) -> io::Result<()> {
        let line = line(message)?;
        let files = [file];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let sent = sendmsg(&self.stream, &[IoSlice::new(&line)], &mut control, SendFlags::empty())?;
        if sent == line.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
    }

    /// Waits for a message with an open file. Call it once, before any [`Channel::receive`], which does not block.
    pub(crate) fn receive_with_file<T: DeserializeOwned>(&mut self) -> io::Result<(T, OwnedFd)> {
        let mut bytes = [0; LINE_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let count =
            rustix::io::retry_on_intr(|| recvmsg(&self.stream, &mut parts, &mut control, RecvFlags::empty()))?.bytes;
        let mut file = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                file = files.last();
            }
        }
        let file = file.ok_or(ErrorKind::UnexpectedEof)?;
        fcntl_setfd(&file, FdFlags::CLOEXEC)?;
        self.unread.extend_from_slice(&bytes[..count]);
        self.stream.set_nonblocking(true)?;
        let message = self.next_line()?.ok_or(ErrorKind::InvalidData)?;
        Ok((message, file))
    }

    /// The messages that have arrived. An end of file is the error `UnexpectedEof`, once all messages were read.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Vec<T>> {
        let ended = self.fill()?;
        let mut messages = Vec::new();
        while let Some(message) = self.next_line()? {
            messages.push(message);
        }
        if messages.is_empty() && ended == Fill::EndOfFile {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(messages)
    }

    fn fill(&mut self) -> io::Result<Fill> {
        let mut bytes = [0; LINE_MAX];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(Fill::EndOfFile),
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Fill::Drained),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Fill::EndOfFile),
                Err(error) => return Err(error),
            }
        }
    }

    fn next_line<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        match self.unread.iter().position(|&byte| byte == b'\n') {
            Some(end) => {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                Ok(Some(serde_json::from_slice(&line)?))
            }
            None if self.unread.len() > LINE_MAX => Err(ErrorKind::InvalidData.into()),
            None => Ok(None),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Drained,
    EndOfFile,
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Sleeps until one of `files` can be read, a signal arrives, or `within` is over.
pub(crate) fn sleep_on(files: &[BorrowedFd<'_>], within: Duration) {
    let mut polled: Vec<_> = files.iter().map(|file| PollFd::from_borrowed_fd(*file, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(within).ok();
    // The only expected failure is an interruption, after which the caller polls again anyway.
    let _ = poll(&mut polled, timeout.as_ref());
}
