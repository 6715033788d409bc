//! Who has the terminal: the shell's job that we are, or the command's group.

use std::cell::Cell;
use std::io::{stdin, stdout};
use std::time::Duration;

use leasehold::clock::{Clock, HostClock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, kill_process_group, test_kill_process_group};
use rustix::termios::tcgetpgrp;

use super::tty::Tty;

/// What the terminal sends for Ctrl-C and Ctrl-\.
const TYPED: [Signal; 2] = [Signal::INT, Signal::QUIT];

/// The terminal of a shell's job. If it was lent to the command, it is taken back when this is dropped.
#[derive(Debug)]
pub(crate) struct Terminal {
    tty: Tty,
    /// The group of the shell's job.
    home: Pid,
    /// Whether the command has it whenever the job is in the foreground. If another part of the job may need it, such as a
    /// pager that reads the output, the command gets it on demand.
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

/// Who had the terminal when it was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// The command. Signals from the keyboard reached no other part of the job.
    Command,
    /// The job, the shell, or another one of its jobs.
    Others,
}

impl Terminal {
    /// The terminal of a job, which may be in the foreground or not; `None` if the job has no terminal.
    pub(crate) fn of_job(home: Pid) -> Option<Self> {
        let is_wanted = Cell::new(tcgetpgrp(stdin()).is_ok() && tcgetpgrp(stdout()).is_ok());
        Some(Self { tty: Tty::open()?, home, is_wanted, lent: Cell::new(Lent::Nobody) })
    }

    /// The group from which the command takes the terminal as it starts. From now on it counts as lent.
    pub(crate) fn lend_at_start(&self) -> Option<Pid> {
        let lends = self.is_wanted.get() && self.is_at_home();
        self.lent.set(if lends { Lent::Command } else { Lent::Nobody });
        lends.then_some(self.home)
    }

    /// The command's group exists.
    pub(crate) fn started(&self, group: Pid) {
        if let Lent::Command = self.lent.get() {
            self.lent.set(Lent::Group(group));
        }
    }

    /// Lends it to the group of the command, if the command wants it and the job is in the foreground.
    pub(crate) fn lend(&self, group: Pid) {
        // A terminal that is gone needs no owner.
        if self.is_wanted.get() && self.is_at_home() && self.tty.hand_to(group).is_ok() {
            self.lent.set(Lent::Group(group));
        }
    }

    /// Lends it to the group of the command, which was stopped because it needed it; says whether that helps.
    pub(crate) fn lend_on_demand(&self, group: Pid) -> bool {
        let helps = !self.is_wanted.replace(true) && self.is_at_home();
        if helps {
            self.lend(group);
        }
        helps
    }

    /// Takes it back if the command still has it. If not, the shell has taken it, for itself or another job.
    pub(crate) fn take_back(&self) -> User {
        let Some(owner) = self.tty.owner() else { return User::Others };
        let is_ours = match self.lent.replace(Lent::Nobody) {
            Lent::Nobody => false,
            Lent::Command => is_gone(owner),
            Lent::Group(group) => owner == group || is_gone(owner),
        };
        if !is_ours {
            return User::Others;
        }
        let _ = self.tty.hand_to(self.home);
        User::Command
    }

    /// Stops the job, so that the shell takes the terminal. If no shell could continue the job, the system does not stop it.
    pub(crate) fn stop_job(&self) {
        stop(self.home);
    }

    /// Sends the whole job a signal that ended the command while that had the terminal, if it may have been typed. Returns whether
    /// it may.
    pub(crate) fn signal_job_if_typed(&self, signal: i32) -> bool {
        let Some(signal) = TYPED.into_iter().find(|typed| typed.as_raw() == signal) else { return false };
        // A job that is gone needs no signal.
        let _ = kill_process_group(self.home, signal);
        true
    }

    fn is_at_home(&self) -> bool {
        self.tty.owner() == Some(self.home)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Stops a group as the terminal would. If no shell could continue it, the system does not stop it.
pub(crate) fn stop(group: Pid) {
    let _ = kill_process_group(group, Signal::TTIN);
}

fn is_gone(group: Pid) -> bool {
    test_kill_process_group(group) == Err(Errno::SRCH)
}

/// Takes the terminal for this process's own group from a command that was killed and whose worker cannot return it.
pub(crate) fn take_from_the_dead(within: Duration) {
    let Some(tty) = Tty::open() else { return };
    let until = HostClock.now() + within;
    while let Some(owner) = tty.owner()
        && owner != getpgrp()
        && HostClock.now() < until
    {
        if is_gone(owner) {
            let _ = tty.hand_to(getpgrp());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Takes the terminal for this process's own group, before it becomes a command, if `home` has it.
pub(crate) fn take_from(home: Pid) {
    if let Some(tty) = Tty::open()
        && tty.owner() == Some(home)
    {
        // Without the terminal the command can still do its work.
        let _ = tty.hand_to(getpgrp());
    }
}
