//! Signals to processes that the test started.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::must;

/// Ends the process at once; it cannot object (`SIGKILL`).
pub fn kill_now(pid: u32) {
    send(pid, Signal::SIGKILL);
}

/// Asks the process to end (`SIGTERM`).
pub fn terminate(pid: u32) {
    send(pid, Signal::SIGTERM);
}

/// Freezes the process: the kernel still accepts its connections and bytes, nobody reads them (`SIGSTOP`).
pub fn stop(pid: u32) {
    send(pid, Signal::SIGSTOP);
}

/// Lets a frozen process go on (`SIGCONT`).
pub fn resume(pid: u32) {
    send(pid, Signal::SIGCONT);
}

/// Sends a signal to one process.
pub fn send(pid: u32, signal: Signal) {
    let pid = must("take the process id", i32::try_from(pid));
    must("send a signal", kill(Pid::from_raw(pid), signal));
}
