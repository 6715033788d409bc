//! Who has the terminal: the shell's job that we are, or the command's group.

use std::cell::Cell;
use std::io::{self, stdin, stdout};
use std::time::Duration;

use lock_host::{Clock, HostClock};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::io::Errno;
use rustix::process::{Pid, getpgrp, kill_process_group, test_kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal on standard input. Where it was lent to the command it is taken back when this is dropped.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// The group of the shell's job.
    home: Pid,
    /// Whether the command is to have it whenever the job is in the foreground. Another part of the job may need it instead,
    /// such as a pager that the output goes to, so then the command has it once it has asked for it.
    is_wanted: Cell<bool>,
    lent: Cell<Lent>,
}

/// Who was lent the terminal.
#[derive(Clone, Copy, Debug)]
enum Lent {
    Nobody,
    /// The command, whose group is not known yet.
    Command,
    Group(Pid),
}

impl Terminal {
    /// The terminal of a job, which may be in the foreground or not.
    pub(crate) fn of_job(home: Pid) -> Self {
        let output_is_shown = tcgetpgrp(stdout()).is_ok() && tcgetpgrp(stdout()) == tcgetpgrp(stdin());
        Self { home, is_wanted: Cell::new(output_is_shown), lent: Cell::new(Lent::Nobody) }
    }

    /// The group that the command is to take the terminal from as it starts; this counts it as lent.
    pub(crate) fn lend_at_start(&self) -> Option<Pid> {
        let lends = self.is_wanted.get() && self.is_at_home();
        self.lent.set(if lends { Lent::Command } else { Lent::Nobody });
        lends.then_some(self.home)
    }

    /// The command's group is there.
    pub(crate) fn started(&self, group: Pid) {
        if let Lent::Command = self.lent.get() {
            self.lent.set(Lent::Group(group));
        }
    }

    /// Lends it to the group of the command, if that is to have it and the job is in the foreground.
    pub(crate) fn lend(&self, group: Pid) {
        // A terminal that has gone away meanwhile needs no owner.
        if self.is_wanted.get() && self.is_at_home() && hand_to(group).is_ok() {
            self.lent.set(Lent::Group(group));
        }
    }

    /// Lends it to the group of the command, which was stopped as it asked for it; whether that helps.
    pub(crate) fn lend_on_demand(&self, group: Pid) -> bool {
        let helps = !self.is_wanted.replace(true) && self.is_at_home();
        if helps {
            self.lend(group);
        }
        helps
    }

    /// Takes it back, if whom it was lent to still has it: the shell takes it when it continues another job.
    pub(crate) fn take_back(&self) {
        let Ok(owner) = tcgetpgrp(stdin()) else { return };
        let is_ours = match self.lent.replace(Lent::Nobody) {
            Lent::Nobody => false,
            Lent::Command => is_gone(owner),
            Lent::Group(group) => owner == group || is_gone(owner),
        };
        if is_ours {
            let _ = hand_to(self.home);
        }
    }

    /// Stops the job, which gives the terminal to the shell. Where no shell could continue it, the system lets it go on.
    pub(crate) fn stop_job(&self) {
        let _ = kill_process_group(self.home, rustix::process::Signal::TTIN);
    }

    fn is_at_home(&self) -> bool {
        has(self.home)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

fn has(group: Pid) -> bool {
    tcgetpgrp(stdin()).is_ok_and(|owner| owner == group)
}

fn is_gone(group: Pid) -> bool {
    test_kill_process_group(group) == Err(Errno::SRCH)
}

/// Takes the terminal for this process's own group, from a command that is killed and has nobody else to give it back.
pub(crate) fn take_from_the_dead(within: Duration) {
    let until = HostClock.now() + within;
    while let Ok(owner) = tcgetpgrp(stdin())
        && owner != getpgrp()
        && HostClock.now() < until
    {
        if is_gone(owner) {
            let _ = hand_to(getpgrp());
        }
        std::thread::sleep(Duration::from_millis(10));
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

/// Takes the terminal on standard input for this process's own group, before it becomes a command, if `home` has it.
pub(crate) fn take_from(home: Pid) {
    if has(home) {
        // Without the terminal the command can still do its work.
        let _ = hand_to(getpgrp());
    }
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
