//! Who has the terminal: the shell's job that we are, or the command's group.

use std::cell::Cell;
use std::io::{self, stdin};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::process::{Pid, getpgrp, kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal on standard input. Where it was lent to the command it is taken back when this is dropped.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// The group of the shell's job.
    home: Pid,
    is_lent: Cell<bool>,
}

impl Terminal {
    /// The terminal of a job, which may be in the foreground or not.
    pub(crate) fn of_job(home: Pid) -> Self {
        Self { home, is_lent: Cell::new(false) }
    }

    /// Whether the job is in the foreground; the command is to take the terminal then, and this counts it as lent.
    pub(crate) fn lend_at_start(&self) -> bool {
        self.is_lent.set(self.is_at_home());
        self.is_lent.get()
    }

    /// Lends it to the group of the command, if the job is in the foreground.
    pub(crate) fn lend(&self, group: Pid) {
        if self.is_at_home() {
            // A terminal that has gone away meanwhile needs no owner.
            self.is_lent.set(hand_to(group).is_ok());
        }
    }

    /// Takes it back, if it is lent.
    pub(crate) fn take_back(&self) {
        if self.is_lent.replace(false) {
            let _ = hand_to(self.home);
        }
    }

    /// Stops the job, which gives the terminal to the shell. Where no shell could continue it, the system lets it go on.
    pub(crate) fn stop_job(&self) {
        let _ = kill_process_group(self.home, rustix::process::Signal::TTIN);
    }

    fn is_at_home(&self) -> bool {
        tcgetpgrp(stdin()).is_ok_and(|group| group == self.home)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Lets this thread, and those that it starts, write to the terminal from the background, even if it is set to stop who
/// does (`stty tostop`).
pub(crate) fn write_from_background() {
    // Without, messages may have to wait.
    let _ = only(Signal::SIGTTOU).thread_block();
}

/// Undoes [`write_from_background`] for this thread and the processes that it starts.
pub(crate) fn stop_in_background() {
    let _ = only(Signal::SIGTTOU).thread_unblock();
}

/// Takes the terminal on standard input for this process's own group, before it becomes a command.
pub(crate) fn take_for_this_group() -> io::Result<()> {
    hand_to(getpgrp())
}

/// With SIGTTOU blocked: a group without the terminal that hands it on would be stopped otherwise.
fn hand_to(group: Pid) -> io::Result<()> {
    let before = only(Signal::SIGTTOU).thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let handed = tcsetpgrp(stdin(), group);
    before.thread_set_mask()?;
    Ok(handed?)
}

fn only(signal: Signal) -> SigSet {
    let mut set = SigSet::empty();
    set.add(signal);
    set
}
