//! The process group of a command.

use std::io;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock, Moment};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, getpgid, kill_process, kill_process_group, waitid,
    waitpgid, waitpid,
};

use crate::command_end::CommandEnd;

const BURY_POLL: Duration = Duration::from_millis(5);

/// A process group whose leader is a child of this process, or becomes one when its parent dies (see [`adopt`]).
///
/// The leader is not reaped before the rest of the group, so that the number cannot belong to another group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    leader: Pid,
}

/// The state of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    /// Nothing new.
    Unchanged,
    /// It was stopped, by this signal.
    Stopped(i32),
    /// It continued.
    Continued,
    /// It ended.
    Ended(CommandEnd),
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

    /// Sends a signal to the whole group, and to its leader even if that has left the group. After a signal that asks for an
    /// end, a stopped group is continued so that it can react.
    pub(crate) fn signal(self, signal: Signal) {
        self.send(signal);
        if [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal) {
            self.send(Signal::CONT);
        }
    }

    fn send(self, signal: Signal) {
        // This fails only for a group that has ended or runs as another user: nothing more can be done.
        let _ = kill_process_group(self.leader, signal);
        // Not reaped yet, so the number is still the leader's.
        if getpgid(Some(self.leader)).is_ok_and(|group| group != self.leader) {
            let _ = kill_process(self.leader, signal);
        }
    }

    /// Looks at the state of the leader, without reaping it.
    pub(crate) fn look(self) -> io::Result<Leader> {
        reap_strangers(self.leader);
        match self.end()? {
            Some(status) => Ok(Leader::Ended(status)),
            None => self.change(),
        }
    }

    fn end(self) -> io::Result<Option<CommandEnd>> {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.leader), ended)?.and_then(|end| status_of(&end)))
    }

    fn change(self) -> io::Result<Leader> {
        let changed = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.leader), changed) {
            Ok(Some(change)) if change.stopped() => Ok(Leader::Stopped(change.stopping_signal().unwrap_or_default())),
            Ok(Some(change)) if change.continued() => Ok(Leader::Continued),
            Ok(Some(_) | None) => Ok(Leader::Unchanged),
            // It has ended since the previous look: an ended child cannot be stopped or continued.
            Err(Errno::CHILD) => Ok(self.end()?.map_or(Leader::Unchanged, Leader::Ended)),
            Err(error) => Err(error.into()),
        }
    }

    /// Reaps the group and its leader until none of them is left, or `until`.
    ///
    /// Outside Linux, this process cannot reap orphans and waits for the leader only.
    pub(crate) fn bury(self, until: Moment) {
        while HostClock.now() < until {
            let left = waitpgid(self.leader, WaitOptions::NOHANG).or_else(|_| {
                // A leader that had left the group.
                waitpid(Some(self.leader), WaitOptions::NOHANG)
            });
            match left {
                Ok(Some(_)) => {}
                Ok(None) => std::thread::sleep(BURY_POLL),
                Err(_) => return,
            }
        }
    }
}

fn status_of(end: &WaitIdStatus) -> Option<CommandEnd> {
    let code = end.exit_status().map(|code| CommandEnd::Code(u8::try_from(code).unwrap_or(u8::MAX)));
    code.or_else(|| end.terminating_signal().map(CommandEnd::Signal))
}

/// Makes this process the parent of descendants whose own parent dies, so that a whole group can be reaped.
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

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::*;

    /// Chosen: about one end in ten falls between the two polls.
    const RUNS: u32 = 300;

    fn lead(program: &str) -> (Child, Group) {
        let leader = Command::new(program).spawn().unwrap();
        let group = Group::led_by(Pid::from_child(&leader));
        (leader, group)
    }

    #[test]
    fn a_leader_that_ends_between_two_looks_has_ended() {
        for run in 0..RUNS {
            let (mut leader, group) = lead("true");
            let until = Instant::now() + Duration::from_secs(30);
            while group.end().unwrap().is_none() && group.change().unwrap() == Leader::Unchanged {
                assert!(Instant::now() < until, "run {run}: the end was not seen");
            }
            assert_eq!(group.end().unwrap(), Some(CommandEnd::Code(0)), "run {run}");
            leader.wait().unwrap();
        }
    }

    #[test]
    fn a_leader_that_is_gone_for_good_is_an_error() {
        let (mut leader, group) = lead("true");
        leader.wait().unwrap();
        assert!(group.end().is_err() && group.change().is_err());
    }
}
