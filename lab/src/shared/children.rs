//! Processes that work for a scene. They end before its data are removed, or they would write some again.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// The running processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children(Arc<Mutex<Vec<Pid>>>);

impl Children {
    /// A child was started.
    pub(crate) fn add(&self, child: Pid) {
        self.lock().push(child);
    }

    /// A child ends. Said before it is waited for: afterwards, its number may be another process's.
    pub(crate) fn forget(&self, child: Pid) {
        self.lock().retain(|known| *known != child);
    }

    /// Kills all of them, and returns once they are dead.
    pub(crate) fn kill(&self) {
        for child in self.lock().iter() {
            // One that has ended is what is wanted.
            kill_process(*child, Signal::KILL).ok();
            waitid(WaitId::Pid(*child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// This program, to be started again.
pub(crate) fn this_program() -> io::Result<Command> {
    let this = Path::new("/proc/self/exe");
    let mut command = if this.exists() { Command::new(this) } else { Command::new(std::env::current_exe()?) };
    // In its own group, so that Ctrl-Z and fg do not affect it.
    command.process_group(0);
    Ok(command)
}

/// Said by a child of itself: if it is stopped and never continued, it would stay forever.
pub(crate) fn die_with_parent() {
    #[cfg(target_os = "linux")]
    // Without it, the kernel still ends a stopped orphan by SIGHUP and SIGCONT.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok();
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn those_that_run_are_killed_and_no_others() {
        let mut sleepers = ["60", "61"].map(|seconds| Command::new("sleep").arg(seconds).spawn().unwrap());
        let children = Children::default();
        sleepers.iter().for_each(|child| children.add(Pid::from_child(child)));
        children.forget(Pid::from_child(&sleepers[0]));
        children.kill();
        assert_eq!(sleepers[1].try_wait().unwrap().and_then(|status| status.signal()), Some(9));
        assert!(sleepers[0].try_wait().unwrap().is_none());
        sleepers[0].kill().unwrap();
        sleepers[0].wait().unwrap();
    }
}
