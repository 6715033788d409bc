//! Supervises a running command: passes renewals to the guard and signals to the command, and reports its end.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock, Moment};
use leasehold::kit::Budget;
use signal_hook::consts::{SIGCONT, SIGINT, SIGKILL, SIGTTIN, SIGTTOU};

use super::channel::sleep_on;
use super::child::Child;
use super::signals::Signals;
use super::terminal::Terminal;
use super::wire::{Cause, Event, Order};
use crate::command_end::CommandEnd;
use crate::hold::{Hold, Lease};
use crate::report::Voice;

/// How often the lease is checked. Chosen: an order of magnitude under the smallest grace and margin.
const TICK: Duration = Duration::from_millis(50);

/// How long after the lease a killed command may take until its end is reported. Chosen: a machine that was suspended resumes
/// with all its processes at once, and this one may run before the guard.
const REPORT_WITHIN: Duration = Duration::from_secs(2);

/// Interrupts closer together than this count as one: a signal to both processes arrives twice, once through the front.
const ANOTHER_AFTER: Duration = Duration::from_millis(200);

/// How the command and its lease ended.
#[derive(Debug)]
pub(crate) enum CommandResult {
    /// The command ended by itself, or by a signal that was passed on.
    Ended(CommandEnd),
    /// The lease was lost, for this reason, and the command was ended.
    Lost(String),
    /// The lease ended before the end of the command was reported. The command was killed from here, if possible.
    Unreported,
    /// The system did not execute the command.
    Refused(io::Error),
    /// The guard died, and the command was killed.
    Unguarded,
}

impl CommandResult {
    /// Why the lease was lost, if that ended the command.
    pub(crate) fn loss(&self) -> Option<&str> {
        match self {
            Self::Lost(reason) => Some(reason),
            Self::Unreported => Some("it could not be renewed in time"),
            Self::Ended(_) | Self::Refused(_) | Self::Unguarded => None,
        }
    }
}

/// Everything that is needed to supervise a running command.
#[derive(Debug)]
pub(crate) struct Supervisor<'a> {
    child: Child,
    hold: &'a Hold,
    signals: &'a mut Signals,
    terminal: Option<&'a Terminal>,
    voice: &'a mut Voice,
    budget: Budget,
    deadline: Moment,
    lost: Option<String>,
    /// When the lease was first seen to have ended before the command.
    overdue_since: Option<Moment>,
    /// When the first interrupt arrived.
    interrupted_at: Option<Moment>,
}

impl<'a> Supervisor<'a> {
    /// Supervises `child`, which was started under a lease that ends at `deadline`.
    pub(crate) fn new(
        child: Child,
        deadline: Moment,
        budget: Budget,
        hold: &'a Hold,
        signals: &'a mut Signals,
        terminal: Option<&'a Terminal>,
        voice: &'a mut Voice,
    ) -> Self {
        Self {
            child,
            hold,
            signals,
            terminal,
            voice,
            budget,
            deadline,
            lost: None,
            overdue_since: None,
            interrupted_at: None,
        }
    }

    /// Watches until the command and its group are gone, or the lease is.
    pub(crate) fn watch(mut self) -> CommandResult {
        let result = self.watch_to_result();
        self.child.bury(self.deadline);
        result
    }

    fn watch_to_result(&mut self) -> CommandResult {
        loop {
            match self.child.events() {
                Ok(events) => {
                    if let Some(result) = events.into_iter().find_map(|event| self.handle(event)) {
                        return result;
                    }
                }
                Err(_) => {
                    self.child.kill();
                    return CommandResult::Unguarded;
                }
            }
            self.pass_signals_on();
            self.follow_lease();
            self.child.wake_guard();
            if let Some(result) = self.backstop() {
                return result;
            }
            sleep_on(&[self.child.as_fd(), self.signals.as_fd()], TICK);
        }
    }

    fn handle(&mut self, event: Event) -> Option<CommandResult> {
        match event {
            Event::Started(_) => {
                if let (Some(terminal), Some(group)) = (self.terminal, self.child.group()) {
                    terminal.started(group.id());
                }
                None
            }
            Event::Stopped(signal) => {
                if !self.lends_on_demand(signal) {
                    self.stopped();
                }
                None
            }
            Event::Continued => {
                self.lend_terminal();
                None
            }
            Event::Refused(number) => Some(CommandResult::Refused(io::Error::from_raw_os_error(number))),
            Event::Ended { status, cause } => Some(match (self.lost.take(), cause) {
                (Some(reason), _) => CommandResult::Lost(reason),
                (None, Cause::Itself) if self.overdue_since.is_none() => CommandResult::Ended(status),
                (None, Cause::Lease | Cause::Itself) => {
                    CommandResult::Lost("it could not be renewed in time".to_owned())
                }
            }),
        }
    }

    /// The job stops with the command, so that the shell continues. This process does not stop: it renews the lease.
    fn stopped(&mut self) {
        if let Some(terminal) = self.terminal {
            terminal.take_back();
        }
        self.tell_of_stop();
        if let Some(terminal) = self.terminal {
            terminal.stop_job();
        }
    }

    /// Whether the command was stopped because it needed the terminal, and has it now.
    fn lends_on_demand(&mut self, signal: i32) -> bool {
        let (Some(terminal), Some(group)) = (self.terminal, self.child.group()) else { return false };
        let lends = [SIGTTIN, SIGTTOU].contains(&signal) && terminal.lend_on_demand(group.id());
        if lends {
            self.child.order(Order::Signal(SIGCONT));
        }
        lends
    }

    fn lend_terminal(&self) {
        if let (Some(terminal), Some(group)) = (self.terminal, self.child.group()) {
            terminal.lend(group.id());
        }
    }

    fn tell_of_stop(&mut self) {
        let group = self.child.group().map_or(0, |group| group.id().as_raw_pid());
        self.voice.warn(&format!(
            "the command was stopped and the lock stays held; continue it with fg, bg or kill -CONT -- -{group}, or end it \
             with Ctrl-C or kill %JOB"
        ));
    }

    fn pass_signals_on(&mut self) {
        for signal in self.signals.take() {
            if signal == SIGCONT {
                self.lend_terminal();
            }
            let insists = signal == SIGINT && self.insists();
            self.child.order(Order::Signal(if insists { SIGKILL } else { signal }));
        }
    }

    /// Whether this is a second interrupt, and not the first one again by another route.
    fn insists(&mut self) -> bool {
        let now = HostClock.now();
        now.since(*self.interrupted_at.get_or_insert(now)) >= ANOTHER_AFTER
    }

    fn follow_lease(&mut self) {
        if self.lost.is_some() {
            return;
        }
        match self.hold.lost() {
            Some(reason) => {
                self.lost = Some(reason);
                self.child.order(Order::End);
            }
            None => {
                self.deadline = self.hold.deadline();
                self.child.extend(self.deadline);
            }
        }
    }

    /// Ends the command from here if the guard did not do so in time, for example because it was stopped.
    fn backstop(&mut self) -> Option<CommandResult> {
        let now = HostClock.now();
        if now >= self.deadline - self.budget.margin / 2 {
            self.child.kill();
        }
        if now < self.deadline {
            return None;
        }
        let since = *self.overdue_since.get_or_insert(now);
        (now.since(since) >= REPORT_WITHIN).then_some(CommandResult::Unreported)
    }
}
