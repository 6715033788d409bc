//! The process group of a command.

use std::io;
use std::time::Duration;

use lock_core::Moment;
use lock_host::{Clock, HostClock};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, kill_process_group, waitid, waitpgid,
};

use super::wire::Status;

const BURY_POLL: Duration = Duration::from_millis(5);

/// A process group whose leader is a child of this process, or becomes one when its parent dies (see [`adopt`]).
///
/// The leader is not reaped before the group is buried, so that its number means this group and no other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    leader: Pid,
}

/// What became of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    /// Nothing new.
    Unchanged,
    /// It was stopped.
    Stopped,
    /// It goes on.
    Continued,
    /// It ended.
    Ended(Status),
}

impl Group {
    /// The group that this process leads.
    pub(crate) fn led_by(leader: Pid) -> Self {
        Self { leader }
    }

    /// Its number.
    pub(crate) fn id(self) -> Pid {
        self.leader
    }

    /// Sends a signal to all of the group. Signals that ask for an end wake a stopped group, which could not follow.
    pub(crate) fn signal(self, signal: Signal) {
        // Only a group that is gone, or that runs as somebody else, cannot be signalled: nothing more can be done.
        let _ = kill_process_group(self.leader, signal);
        if [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal) {
            let _ = kill_process_group(self.leader, Signal::CONT);
        }
    }

    /// Looks what became of the leader, without reaping it.
    pub(crate) fn look(self) -> io::Result<Leader> {
        reap_strangers(self.leader);
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let Some(status) = waitid(WaitId::Pid(self.leader), ended)?.and_then(|end| status_of(&end)) {
            return Ok(Leader::Ended(status));
        }
        let changed = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        Ok(match waitid(WaitId::Pid(self.leader), changed)? {
            Some(change) if change.stopped() => Leader::Stopped,
            Some(change) if change.continued() => Leader::Continued,
            Some(_) | None => Leader::Unchanged,
        })
    }

    /// Reaps the group until nothing of it is left, or `until`.
    ///
    /// Outside of Linux, processes whose parent died are not ours to reap: there, only the leader is waited for.
    pub(crate) fn bury(self, until: Moment) {
        while HostClock.now() < until {
            match waitpgid(self.leader, WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => std::thread::sleep(BURY_POLL),
                Err(_) => return,
            }
        }
    }
}

fn status_of(end: &WaitIdStatus) -> Option<Status> {
    let code = end.exit_status().map(|code| Status::Code(u8::try_from(code).unwrap_or(u8::MAX)));
    code.or_else(|| end.terminating_signal().map(Status::Signal))
}

/// Makes this process the parent of descendants whose own parent dies, so that a group can be reaped to its last.
///
/// # Errors
/// Those of the system.
pub(crate) fn adopt() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Reaps adopted processes that ended, so that they do not pile up while the leader lives.
#[cfg(target_os = "linux")]
fn reap_strangers(leader: Pid) {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Some(ended) = waitid(Id::All, peek).ok().and_then(|status| status.pid()) {
        if ended.as_raw() == leader.as_raw_pid() {
            return;
        }
        let _ = waitid(Id::Pid(ended), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG);
    }
}

#[cfg(not(target_os = "linux"))]
fn reap_strangers(_leader: Pid) {}
