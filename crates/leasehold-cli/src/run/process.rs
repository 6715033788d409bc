//! Our own binary, started again in another role.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock, Moment};
use rustix::process::Signal;

use super::tty;

/// How often a process that has not started yet is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The binary that runs now, even if its file was replaced meanwhile: on Linux, a link to the program itself and not its path.
///
/// # Errors
/// If the system does not say, such as Linux without `/proc`.
pub(crate) fn our_program() -> io::Result<PathBuf> {
    program_behind(Path::new("/proc/self/exe"))
}

fn program_behind(link: &Path) -> io::Result<PathBuf> {
    match (link.try_exists(), cfg!(target_os = "linux")) {
        (Ok(true), _) => Ok(link.to_owned()),
        (Ok(false), true) => Err(io::ErrorKind::NotFound.into()),
        (Err(error), true) => Err(error),
        (_, false) => std::env::current_exe(),
    }
}

/// This program in another role, in its own process group.
pub(crate) fn ourselves(role: &str) -> io::Result<Command> {
    let mut command = Command::new(our_program()?);
    command.arg0("leasehold").arg(role).process_group(0);
    Ok(command)
}

/// Starts a process, or gives up at `until`.
///
/// The system blocks the caller until the new process has executed its program. One that is stopped before that
/// (Ctrl-Z at a bad moment) would block the caller forever, with the lock held, so it is continued.
pub(crate) fn spawn(mut command: Command, until: Moment) -> io::Result<Child> {
    let (sender, started) = channel();
    thread::Builder::new().name("start".to_owned()).spawn(move || {
        tty::stop_in_background();
        let child = command.spawn();
        // Closes the files that were for the child only.
        drop(command);
        let _ = sender.send(child);
        // On Linux, the parent is this thread: a child that asked to die with its parent dies with the thread.
        loop {
            thread::park();
        }
    })?;
    loop {
        match started.recv_timeout(LOOK_EVERY) {
            Ok(child) => return child,
            Err(RecvTimeoutError::Timeout) if HostClock.now() < until => signal_stopped_children(Signal::CONT),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                signal_stopped_children(Signal::KILL);
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn signal_stopped_children(signal: Signal) {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    use rustix::process::{Pid, kill_process};
    let stopped = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
    while let Some(pid) = waitid(Id::All, stopped).ok().and_then(|status| status.pid()) {
        // It may have died meanwhile.
        let _ = Pid::from_raw(pid.as_raw()).map(|pid| kill_process(pid, signal));
    }
}

#[cfg(not(target_os = "linux"))]
fn signal_stopped_children(_signal: Signal) {}

/// Shows this process under the name of its role, for example in `ps`.
pub(crate) fn set_name(name: &std::ffi::CStr) {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(name);
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use rustix::process::{Pid, kill_process};

    use super::*;

    /// Chosen: some of them are stopped before they execute their program.
    const RUNS: u32 = 200;
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn without_proc_there_is_no_program() {
        assert!(program_behind(Path::new("/proc/self/exe")).is_ok());
        assert!(program_behind(Path::new("/no/such/link")).is_err());
    }

    /// The children of the threads of [`spawn`] that have not executed their program yet.
    fn unexecuted() -> Vec<i32> {
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
        let starters = tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "start\n"));
        let lines = starters.filter_map(|task| fs::read_to_string(task.join("children")).ok());
        let children: Vec<i32> = lines.collect::<String>().split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        let ours = fs::read_link("/proc/self/exe").unwrap();
        let is_ours = |pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == ours);
        children.into_iter().filter(is_ours).collect()
    }

    #[test]
    fn a_child_that_is_stopped_before_it_executes_holds_nobody() {
        static OVER: AtomicBool = AtomicBool::new(false);
        static STOPS: AtomicU32 = AtomicU32::new(0);
        thread::spawn(|| {
            while !OVER.load(Ordering::Relaxed) {
                for pid in unexecuted() {
                    STOPS.fetch_add(1, Ordering::Relaxed);
                    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP);
                }
            }
        });
        for run in 0..RUNS {
            let mut child = spawn(Command::new("true"), HostClock.now() + PATIENCE).unwrap();
            let until = HostClock.now() + PATIENCE;
            // Some are stopped just afterwards.
            while child.try_wait().unwrap().is_none() {
                assert!(HostClock.now() < until, "run {run} does not end");
                signal_stopped_children(Signal::CONT);
            }
        }
        OVER.store(true, Ordering::Relaxed);
        assert!(STOPS.load(Ordering::Relaxed) > 0, "nothing was stopped in time");
    }
}
