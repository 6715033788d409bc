//! The command as `leasehold run` sees it: a guard process at the other end of a line, and the group it started.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::time::Duration;

use humantime::format_duration;
use lock_core::Moment;
use lock_host::{Clock, HostClock};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::budget::Budget;
use super::channel::Channel;
use super::group::{self, Group};
use super::guard;
use super::process::{self, ourselves};
use super::wire::{Event, Order};

/// Smaller movements of the deadline than this are rounding, not renewals.
const NEWS_MIN: Duration = Duration::from_millis(1);
const BURY_POLL: Duration = Duration::from_millis(2);

/// What to run, and how.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// The command and its arguments.
    pub(crate) command: &'a [OsString],
    /// What is added to its environment.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// What is kept of each lease.
    pub(crate) budget: Budget,
    /// The group that the command is to take the terminal on standard input from.
    pub(crate) foreground: Option<Pid>,
}

/// A command under guard.
#[derive(Debug)]
pub(crate) struct Child {
    guard: std::process::Child,
    line: Channel,
    group: Option<Group>,
    told: Moment,
}

impl Child {
    /// Starts the guard, which starts the command under a lease that ends at `deadline`.
    pub(crate) fn start(plan: &Plan<'_>, deadline: Moment) -> io::Result<Self> {
        group::adopt()?;
        let (mut line, theirs) = Channel::pair()?;
        let mut command = ourselves(guard::ROLE)?;
        command.arg(format!("--grace={}", format_duration(plan.budget.grace)));
        command.arg(format!("--margin={}", format_duration(plan.budget.margin)));
        if let Some(home) = plan.foreground {
            command.arg(format!("--foreground={}", home.as_raw_pid()));
        }
        command.arg("--").args(plan.command).envs(plan.environment.iter().cloned());
        command.stdin(Stdio::from(theirs));
        let guard = process::spawn(command, deadline - plan.budget.kept())?;
        // Sent after the guard was forked and before it looks: an early death of it is seen as the end of the line.
        let sent = line.send_with_file(&Order::Deadline(deadline.as_nanos()), io::stdin().as_fd());
        let child = Self { guard, line, group: None, told: deadline };
        sent.map(|()| child)
    }

    /// Tells the guard the end of the lease, if it has moved.
    pub(crate) fn extend(&mut self, deadline: Moment) {
        if deadline.since(self.told).max(self.told.since(deadline)) >= NEWS_MIN {
            self.told = deadline;
            self.order(Order::Deadline(deadline.as_nanos()));
        }
    }

    /// Gives the guard an order.
    pub(crate) fn order(&mut self, order: Order) {
        // A guard that cannot be told is dead, which is seen where its events are read, or stopped, which is what
        // `kill` is for.
        let _ = self.line.send(&order);
    }

    /// What the guard has to tell; an error means that it is dead.
    pub(crate) fn events(&mut self) -> io::Result<Vec<Event>> {
        let events = self.line.receive()?;
        for event in &events {
            if let Event::Started(number) = event {
                self.group = Pid::from_raw(*number).map(Group::led_by);
            }
        }
        Ok(events)
    }

    /// The group of the command, once it is there.
    pub(crate) fn group(&self) -> Option<Group> {
        self.group
    }

    /// Sets a guard going again that somebody stopped: nobody else would end the command in time, or tell of its end.
    pub(crate) fn wake_guard(&self) {
        let Some(pid) = i32::try_from(self.guard.id()).ok().and_then(Pid::from_raw) else { return };
        let stopped = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        if let Ok(Some(_)) = stopped {
            // It may have died between the two; then there is nothing to wake.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// Ends the group without the guard. Not to be called once the guard told of the end: the group's number may then
    /// be another's.
    pub(crate) fn kill(&self) {
        if let Some(group) = self.group {
            group.signal(Signal::KILL);
        }
    }

    /// Waits until the guard and what it left to us are gone, or `until`.
    pub(crate) fn bury(mut self, until: Moment) {
        while let Ok(None) = self.guard.try_wait() {
            if HostClock.now() >= until {
                return;
            }
            std::thread::sleep(BURY_POLL);
        }
        if let Some(group) = self.group {
            group.bury(until);
        }
    }
}

impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}
