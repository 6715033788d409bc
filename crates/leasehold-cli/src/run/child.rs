//! The command as `leasehold run` sees it: a guard process at the other end of a channel, and the group that it started.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::time::Duration;

use humantime::format_duration;
use leasehold::clock::{Clock, HostClock, Moment};
use leasehold::kit::Budget;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::channel::Channel;
use super::group::{self, Group};
use super::guard;
use super::process::{self, ourselves};
use super::wire::{Event, Order};

/// Smaller changes of the deadline than this are rounding, not renewals.
const NEWS_MIN: Duration = Duration::from_millis(1);
const BURY_POLL: Duration = Duration::from_millis(2);

/// What to run, and how.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// The command and its arguments.
    pub(crate) command: &'a [OsString],
    /// What is changed in its environment; `None` removes what an enclosing run has set.
    pub(crate) environment: Vec<(&'static str, Option<String>)>,
    /// The part of each lease that is reserved for ending the command.
    pub(crate) budget: Budget,
    /// The group from which the command takes the terminal as it starts.
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
        command.arg("--").args(plan.command);
        for (variable, value) in &plan.environment {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        command.stdin(Stdio::from(theirs));
        let guard = process::spawn(command, deadline - plan.budget.kept())?;
        // If the guard has died already, the broken channel is noticed later.
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

    /// Sends the guard an order.
    pub(crate) fn order(&mut self, order: Order) {
        // A guard that cannot be reached is dead, which is noticed where its events are read, or stopped, which is why
        // there is `kill`.
        let _ = self.line.send(&order);
    }

    /// The events from the guard; an error means that it is dead.
    pub(crate) fn events(&mut self) -> io::Result<Vec<Event>> {
        let events = self.line.receive()?;
        for event in &events {
            if let Event::Started(number) = event {
                self.group = Pid::from_raw(*number).map(Group::led_by);
            }
        }
        Ok(events)
    }

    /// The group of the command, once it exists.
    pub(crate) fn group(&self) -> Option<Group> {
        self.group
    }

    /// Continues a guard that was stopped: it has to end the command in time and to report its end.
    pub(crate) fn wake_guard(&self) {
        let Some(pid) = i32::try_from(self.guard.id()).ok().and_then(Pid::from_raw) else { return };
        let stopped = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        if let Ok(Some(_)) = stopped {
            // It may have died in the meantime.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// Kills the group without the guard. Do not call it after the guard has reported the end: the group's number may then
    /// belong to another group.
    pub(crate) fn kill(&self) {
        if let Some(group) = self.group {
            group.signal(Signal::KILL);
        }
    }

    /// Waits until the guard and the processes that it left to us have ended, or `until`.
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
