//! The front: the process that the shell sees as its job.
//!
//! A shell takes the terminal back when its job stops, but a stopped process cannot renew a lease. So with a terminal,
//! `leasehold run` is two processes: the front, which stops and continues as the shell wants, and the worker behind it, in
//! its own group, which holds the lock. The front passes signals on and ends as the worker does. If the front is killed, so
//! is the worker, and the guard ends the command.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::parent_id;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgid, getpgrp, kill_process, waitid};
use signal_hook::consts::{SIGCHLD, SIGTSTP};

use super::channel::sleep_on;
use super::process;
use super::signals::{FORWARDED, Signals};
use super::terminal;
use super::tty::Tty;
use crate::exit::Exit;
use crate::report::say_error;

/// The worker's role on the command line, followed by the front's process id and the front's own arguments.
pub(crate) const ROLE: &str = "run-behind";
/// Chosen: long enough for any machine.
const START_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long to wait for the end of a command whose worker was killed. Chosen: its guard ends it within milliseconds.
const RECOVER_WITHIN: Duration = Duration::from_secs(1);

/// Whether a shell may stop and continue this process: if there is a terminal, whatever standard input is.
pub(super) fn is_needed() -> bool {
    Tty::open().is_some()
}

/// Starts a worker that does the work, and returns how it ended.
///
/// # Errors
/// If there is no worker; nothing was done then.
pub(super) fn stand() -> io::Result<Exit> {
    let mut signals = Signals::forwarded_and_children()?;
    let mut command = process::ourselves(ROLE)?;
    command.arg(std::process::id().to_string()).args(std::env::args_os().skip(1));
    let in_foreground = Tty::open().is_some_and(|tty| tty.owner() == Some(getpgrp()));
    let worker = match process::spawn(command, HostClock.now() + START_WITHIN) {
        Ok(worker) => Pid::from_child(&worker),
        // It may exist all the same; it ends with this process, which must not do the work as well.
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(failed("start its worker", &error)),
        Err(error) => return Err(error),
    };
    loop {
        for signal in signals.take().into_iter().filter(|&signal| signal != SIGCHLD) {
            pass_on(worker, Signal::from_named_raw(signal));
        }
        match look(worker) {
            Ok(None) => {}
            Ok(Some(exit)) => {
                if in_foreground && matches!(exit, Exit::Signalled(_)) {
                    terminal::take_from_the_dead(RECOVER_WITHIN);
                }
                return Ok(exit);
            }
            Err(error) => return Ok(failed("wait for its worker", &error)),
        }
        sleep_on(&[signals.as_fd()], LOOK_EVERY);
    }
}

fn failed(what: &str, error: &io::Error) -> Exit {
    say_error(&format!("cannot {what}: {error}; run it again"));
    Exit::Internal
}

fn pass_on(worker: Pid, signal: Option<Signal>) {
    if let Some(signal) = signal {
        // If it has ended, that is noticed elsewhere.
        let _ = kill_process(worker, signal);
    }
}

/// How the worker ended, if it did. A worker that was stopped is continued along with the front.
fn look(worker: Pid) -> io::Result<Option<Exit>> {
    let changes = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let Some(change) = waitid(WaitId::Pid(worker), changes)? else { return Ok(None) };
    if change.stopped() {
        // It does not catch signals yet, so the signal that was passed on stopped it.
        if change.stopping_signal() == Some(SIGTSTP) {
            terminal::stop(getpgrp());
        }
        pass_on(worker, Some(Signal::CONT));
        return Ok(None);
    }
    let code = change.exit_status().and_then(|code| u8::try_from(code).ok()).map(Exit::Command);
    Ok(code.or_else(|| change.terminating_signal().map(by_signal)).or(Some(Exit::Internal)))
}

/// The worker catches the signals that are passed on, and dies of one only on purpose.
fn by_signal(signal: i32) -> Exit {
    if FORWARDED.contains(&signal) { Exit::SignalledAlike(signal) } else { Exit::Signalled(signal) }
}

/// The front's own command line, from that of its worker: without the role and the front's process id.
pub(crate) fn line_of_worker(line: &[OsString]) -> Vec<OsString> {
    line.iter().take(1).chain(line.iter().skip(3)).cloned().collect()
}

/// The group of this worker's front; `None` if the front is gone.
pub(super) fn home(front: u32) -> Option<Pid> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok()?;
    if parent_id() != front {
        return None;
    }
    getpgid(Pid::from_raw(i32::try_from(front).ok()?)).ok()
}
