//! Signals that reach `leasehold`, as something to poll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH, SIGXFSZ,
};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// What is passed on to the command.
pub(crate) const FORWARDED: [i32; 9] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP];

/// Signals that were caught and not yet looked at.
#[derive(Debug)]
pub(crate) struct Signals(SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    /// Catches [`FORWARDED`] from now on, except for what was ignored when this process started (`nohup`, a shell's
    /// background): that stays ignored, here and in the command.
    pub(crate) fn forwarded() -> io::Result<Self> {
        Self::catch(&FORWARDED)
    }

    /// The same, and the ends of child processes.
    pub(crate) fn forwarded_and_children() -> io::Result<Self> {
        let mut all = FORWARDED.to_vec();
        all.push(SIGCHLD);
        Self::catch(&all)
    }

    fn catch(wanted: &[i32]) -> io::Result<Self> {
        let ignored = ignored_at_start();
        let caught: Vec<_> = wanted.iter().filter(|&&signal| !ignored.contains(signal)).collect();
        let (read, write) = UnixStream::pair()?;
        Ok(Self(SignalDelivery::with_pipe(read, write, SignalOnly, caught)?))
    }

    /// The signals since the last call, in no order, each once.
    pub(crate) fn pending(&mut self) -> Vec<i32> {
        self.0.pending().collect()
    }
}

/// Has a write beyond the limit on file sizes fail, in place of ending this process, here and not in the command.
pub(crate) fn survive_file_limit() -> io::Result<()> {
    // What is caught, and not ignored, has its default effect again in a program that is executed.
    if !ignored_at_start().contains(SIGXFSZ) {
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    }
    Ok(())
}

/// A signal, for people.
pub(crate) fn name_of(signal: i32) -> &'static str {
    signal_hook::low_level::signal_name(signal).unwrap_or("a signal")
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }
}

/// A set of signals as the kernel writes it: bit n - 1 stands for signal n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mask(u64);

impl Mask {
    fn contains(self, signal: i32) -> bool {
        signal != SIGCHLD && u32::try_from(signal - 1).is_ok_and(|bit| self.0.checked_shr(bit).unwrap_or(0) & 1 == 1)
    }

    fn parse(status: &str) -> Option<Self> {
        let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(digits.trim(), 16).ok().map(Self)
    }
}

/// Where the system does not tell (outside of Linux), nothing counts as ignored.
fn ignored_at_start() -> Mask {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|status| Mask::parse(&status)).unwrap_or(Mask(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let mask = Mask::parse("Name:\tx\nSigIgn:\t0000000000000003\nSigCgt:\t00\n").unwrap();
        assert!(mask.contains(SIGHUP) && mask.contains(SIGINT));
        assert!(!mask.contains(SIGTERM));
        assert_eq!(Mask::parse("nothing"), None);
    }
}
