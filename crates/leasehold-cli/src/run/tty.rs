//! The controlling terminal, wherever standard input and output lead.

use std::io;
use std::os::fd::OwnedFd;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal of this process's session.
#[derive(Debug)]
pub(crate) struct Tty(OwnedFd);

impl Tty {
    /// The terminal, if there is one.
    pub(crate) fn open() -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open("/dev/tty", flags, Mode::empty()).ok().map(Self)
    }

    /// The group in the foreground; `None` if the terminal is gone.
    pub(crate) fn owner(&self) -> Option<Pid> {
        tcgetpgrp(&self.0).ok()
    }

    /// Puts a group in the foreground.
    ///
    /// SIGTTOU is blocked meanwhile: it would stop this process if it is in the background itself.
    pub(crate) fn hand_to(&self, group: Pid) -> io::Result<()> {
        let before = only(Signal::SIGTTOU).thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let handed = tcsetpgrp(&self.0, group);
        before.thread_set_mask()?;
        Ok(handed?)
    }
}

/// Lets this thread, and threads that it starts, write to the terminal from the background, even under `stty tostop`.
pub(crate) fn write_from_background() {
    // If this fails, messages may have to wait.
    let _ = only(Signal::SIGTTOU).thread_block();
}

/// Undoes [`write_from_background`] for this thread and the processes that it starts.
pub(crate) fn stop_in_background() {
    let _ = only(Signal::SIGTTOU).thread_unblock();
}

fn only(signal: Signal) -> SigSet {
    let mut set = SigSet::empty();
    set.add(signal);
    set
}
