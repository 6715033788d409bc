//! Who has the terminal: the shell's job that we are, or the command's group.

use std::io::{self, stdin};

use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal on standard input, which was ours when we started. Taken back when dropped.
#[derive(Debug)]
pub(crate) struct Terminal(());

impl Terminal {
    /// The terminal, where standard input is one and this process's group has it.
    pub(crate) fn in_foreground() -> Option<Self> {
        (tcgetpgrp(stdin()).ok()? == getpgrp()).then(|| Self(()))
    }

    /// Lends it to the group of a command.
    pub(crate) fn lend(&self, group: Pid) {
        // A terminal that has gone away meanwhile needs no owner.
        let _ = hand_to(group);
    }

    /// Takes it back.
    pub(crate) fn take_back(&self) {
        let _ = hand_to(getpgrp());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Takes the terminal on standard input for this process's own group, before it becomes a command.
pub(crate) fn take_for_this_group() -> io::Result<()> {
    hand_to(getpgrp())
}

/// With SIGTTOU blocked: a group without the terminal that hands it on would be stopped otherwise.
fn hand_to(group: Pid) -> io::Result<()> {
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGTTOU);
    let before = blocked.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
    let handed = tcsetpgrp(stdin(), group);
    before.thread_set_mask()?;
    Ok(handed?)
}
