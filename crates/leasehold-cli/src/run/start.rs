//! The starter: the process that becomes the command.
//!
//! The guard starts it in its own group. It waits for the guard's permission, takes the terminal if the command should have
//! it, and replaces itself with the command. On Linux it first asks the kernel to be killed when the guard dies. So the
//! command dies even if `leasehold` and the guard are killed at the same moment, but the processes that it started do not.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::Command;

use clap::Parser;
use rustix::process::Pid;

use super::channel::Channel;
use super::terminal;
use super::wire::{Go, Refusal};
use crate::exit::Exit;

/// The role's name on the command line.
pub(crate) const ROLE: &str = "start-command";

/// The starter's command line, written by the guard.
#[derive(Debug, Parser)]
#[command(name = "leasehold start-command")]
pub(crate) struct StartArgs {
    /// The process id of the guard.
    #[arg(long)]
    pub(crate) guard: u32,
    /// Take the terminal if this group still has it.
    #[arg(long)]
    pub(crate) foreground: Option<i32>,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Becomes the command; returns only if that failed.
pub(crate) fn main(args: &StartArgs) -> Exit {
    let Ok((mut guard, error)) = become_command(args) else { return Exit::Internal };
    // If the guard is gone, nothing can be reported.
    let _ = guard.send(&Refusal(error.raw_os_error().unwrap_or(0)));
    if error.kind() == io::ErrorKind::NotFound { Exit::NotFound } else { Exit::NotExecutable }
}

fn become_command(args: &StartArgs) -> io::Result<(Channel, io::Error)> {
    die_with_parent()?;
    if parent_id() != args.guard {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut guard = Channel::of_stdin()?;
    let (Go, input) = guard.receive_with_file()?;
    rustix::stdio::dup2_stdin(&input)?;
    if let Some(home) = args.foreground.and_then(Pid::from_raw) {
        terminal::take_from(home);
    }
    let (program, arguments) = args.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let error = Command::new(program).args(arguments).exec();
    Ok((guard, error))
}

fn die_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}
