//! The guard: a small process that ends the command before a lease that is not renewed can expire.
//!
//! It starts the command in its own process group, and `leasehold` tells it each new end of the lease. If no news arrives
//! (`leasehold` was stopped) or the channel breaks (it was killed), the guard ends the group in time: SIGTERM first, SIGKILL
//! after the grace period. It knows no store and keeps no lease. If the guard dies, `leasehold` ends the group. If the guard
//! is stopped, `leasehold` continues it, and ends the group itself if that does not help.
//!
//! Not covered: a lock that an operator breaks, processes that left the group (daemons, `setsid`, jobs of an interactive
//! shell), processes of another user (`sudo`), and processes that are blocked in the kernel (a dead network file system). If
//! `leasehold` and the guard are killed at the same moment, the kernel kills the command on Linux, but not the processes that it
//! started. If both are stopped at the same moment, nothing ends the command. After a suspend beyond the deadline, the command
//! ends within about a second of the resume. A virtual machine that its host pauses may have a clock that stands still
//! meanwhile: its command ends late by as long.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use clap::Parser;
use leasehold::clock::{Clock, HostClock, Moment};
use leasehold::kit::Budget;
use rustix::process::{Pid, Signal};

use super::channel::{Channel, sleep_on};
use super::group::{self, Group, Leader};
use super::process;
use super::signals::Signals;
use super::start;
use super::watch::{Step, Watch};
use super::wire::{Cause, Event, Go, Order, Refusal};
use crate::command_end::CommandEnd;
use crate::durations::duration;
use crate::exit::Exit;

/// The role's name on the command line.
pub(crate) const ROLE: &str = "guard-command";

/// The guard's command line, written by `leasehold run`. Its standard input is the channel to `leasehold`.
#[derive(Debug, Parser)]
#[command(name = "leasehold guard-command")]
pub(crate) struct GuardArgs {
    /// See [`Budget::grace`].
    #[arg(long, value_parser = duration("duration"))]
    pub(crate) grace: Duration,
    /// See [`Budget::margin`].
    #[arg(long, value_parser = duration("duration"))]
    pub(crate) margin: Duration,
    /// The group from which the command takes the terminal.
    #[arg(long)]
    pub(crate) foreground: Option<i32>,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Guards one command until it and its group are gone.
pub(crate) fn main(args: &GuardArgs) -> Exit {
    process::set_name(c"leasehold-guard");
    match Guard::begin(args).and_then(Guard::serve) {
        Ok(()) => Exit::Done,
        Err(_) => Exit::Internal,
    }
}

struct Guard {
    /// The channel to `leasehold`, until it breaks.
    line: Option<Channel>,
    /// The channel to the starter, until that becomes the command.
    starter: Option<Channel>,
    group: Group,
    watch: Watch,
    signals: Signals,
}

/// Whether the guard still has something to do.
enum Duty {
    Goes,
    IsOver,
}

impl Guard {
    fn begin(args: &GuardArgs) -> io::Result<Self> {
        group::adopt()?;
        // Caught and ignored: a signal to all of our processes is meant for the command, and leasehold passes it on.
        let signals = Signals::forwarded_and_children()?;
        let mut line = Channel::of_stdin()?;
        let (Order::Deadline(nanos), input) = line.receive_with_file()? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let budget = Budget { grace: args.grace, margin: args.margin };
        let deadline = Moment::from_nanos(nanos);
        let watch = Watch::new(budget, deadline);
        let start_by = deadline - budget.kept();
        let (starter, group) = start(args, start_by)?;
        let mut guard = Self { line: Some(line), starter: Some(starter), group, watch, signals };
        guard.tell(&Event::Started(group.id().as_raw_pid()));
        // This process may have been stopped meanwhile. Then the starter is not released, and ends with the lease.
        if let Some(starter) = &mut guard.starter
            && HostClock.now() < start_by
        {
            starter.send_with_file(&Go, input.as_fd())?;
        }
        Ok(guard)
    }

    fn serve(mut self) -> io::Result<()> {
        loop {
            self.hear_leasehold();
            self.signals.take();
            if let Duty::IsOver = self.look_at_command()? {
                return Ok(());
            }
            match self.watch.step(HostClock.now()) {
                Step::Terminate => self.group.signal(Signal::TERM),
                Step::Kill => self.group.signal(Signal::KILL),
                Step::Sleep(within) => self.sleep(within),
            }
        }
    }

    fn sleep(&self, within: Duration) {
        let lines = [self.line.as_ref(), self.starter.as_ref()].into_iter().flatten().map(Channel::as_fd);
        let files: Vec<BorrowedFd<'_>> = lines.chain([self.signals.as_fd()]).collect();
        sleep_on(&files, within);
    }

    fn hear_leasehold(&mut self) {
        let Some(line) = &mut self.line else { return };
        match line.receive() {
            Ok(orders) => orders.into_iter().for_each(|order| self.follow(order)),
            // Killed, or not leasehold at all: no more renewals will be reported.
            Err(_) => {
                self.line = None;
                self.watch.end(HostClock.now());
            }
        }
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Deadline(nanos) => self.watch.extend(Moment::from_nanos(nanos)),
            Order::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.group.signal(signal);
                }
            }
            Order::End => self.watch.end(HostClock.now()),
        }
    }

    fn look_at_command(&mut self) -> io::Result<Duty> {
        let leader = self.group.look()?;
        // In this order: the starter reports its failure before it ends.
        if let Some(refusal) = self.hear_starter() {
            self.tell(&Event::Refused(refusal.0));
            self.group.bury(self.watch.deadline());
            return Ok(Duty::IsOver);
        }
        match leader {
            Leader::Unchanged => Ok(Duty::Goes),
            Leader::Stopped(signal) => Ok(self.tell(&Event::Stopped(signal))),
            Leader::Continued => Ok(self.tell(&Event::Continued)),
            Leader::Ended(status) => Ok(self.bury(status)),
        }
    }

    fn hear_starter(&mut self) -> Option<Refusal> {
        match self.starter.as_mut()?.receive() {
            Ok(refusals) => refusals.first().copied(),
            // The channel ends when the command begins.
            Err(_) => {
                self.starter = None;
                None
            }
        }
    }

    /// Ends the processes that the command left behind. The leader is not reaped before, see [`Group`].
    fn bury(&mut self, status: CommandEnd) -> Duty {
        self.group.signal(Signal::KILL);
        let cause = if self.watch.is_ending() { Cause::Lease } else { Cause::Itself };
        self.tell(&Event::Ended { status, cause });
        self.group.bury(self.watch.deadline());
        Duty::IsOver
    }

    fn tell(&mut self, event: &Event) -> Duty {
        if let Some(line) = &mut self.line {
            // A broken channel is noticed where it is read.
            let _ = line.send(event);
        }
        Duty::Goes
    }
}

fn start(args: &GuardArgs, by: Moment) -> io::Result<(Channel, Group)> {
    let (starter, input): (Channel, OwnedFd) = Channel::pair()?;
    let mut command = process::ourselves(start::ROLE)?;
    command.arg("--guard").arg(std::process::id().to_string());
    if let Some(home) = args.foreground {
        command.arg(format!("--foreground={home}"));
    }
    command.arg("--").args(&args.command).stdin(Stdio::from(input));
    let child = process::spawn(command, by)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    Ok((starter, Group::led_by(pid)))
}
