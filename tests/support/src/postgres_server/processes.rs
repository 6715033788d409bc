//! A process and its children, as the system lists them.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bounds::wait_for;

/// What the system says of a process.
struct Row {
    pid: u32,
    parent: u32,
    state: char,
}

/// Suspends a process, and then its children, to which it can add none any more.
pub(super) fn stop(parent: u32) {
    send(parent, Signal::SIGSTOP);
    wait_for("a process stops", || is_still(parent));
    let children = children(parent);
    children.iter().for_each(|child| send(*child, Signal::SIGSTOP));
    wait_for("the children of a process stop", || children.iter().all(|child| is_still(*child)));
}

/// Resumes a process and its children.
pub(super) fn resume(parent: u32) {
    children(parent).into_iter().for_each(|child| send(child, Signal::SIGCONT));
    send(parent, Signal::SIGCONT);
}

/// Kills a process and its children, all of which are suspended. Waits until the children have ended.
pub(super) fn kill_all(parent: u32) {
    let children = children(parent);
    send(parent, Signal::SIGKILL);
    children.iter().for_each(|child| send(*child, Signal::SIGKILL));
    wait_for("the children of a process end", || children.iter().all(|child| has_ended(*child)));
}

/// Sends a signal to a process that may have ended.
pub(super) fn send(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        kill(Pid::from_raw(pid), signal).ok();
    }
}

/// Where the system does not tell (outside of Linux), a process has none. They notice when their parent has gone.
fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(row).filter(|row| row.parent == parent).map(|row| row.pid).collect()
}

/// Whether a process is suspended or has ended.
fn is_still(pid: u32) -> bool {
    row(pid).is_none_or(|row| matches!(row.state, 'T' | 't' | 'Z' | 'X'))
}

/// One that nobody has waited for has ended, too.
fn has_ended(pid: u32) -> bool {
    row(pid).is_none_or(|row| matches!(row.state, 'Z' | 'X'))
}

/// Reads `PID (NAME) STATE PARENT ...`.
fn row(pid: u32) -> Option<Row> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some(Row { pid, state: words.next()?.chars().next()?, parent: words.next()?.parse().ok()? })
}
