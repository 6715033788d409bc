//! Signals to `leasehold`, as events to poll for.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH, SIGXFSZ,
};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use signal_hook::low_level::{emulate_default_handler, signal_name};

/// The signals that are passed on to the command.
pub(crate) const FORWARDED: [i32; 9] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP];

/// Signals that were caught.
#[derive(Debug)]
pub(crate) struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
    /// Those that were not taken yet, each once.
    waiting: BTreeSet<i32>,
    /// All that have arrived.
    arrived: BTreeSet<i32>,
}

impl Signals {
    /// Catches [`FORWARDED`] from now on, except for signals that were ignored when this process started (`nohup`, a
    /// background job of a script): they stay ignored, here and in the command.
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
        // A signal between the installation of the handler and that of its action would be lost.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, caught);
        before.thread_set_mask()?;
        let delivery = delivery?;
        Ok(Self { delivery, waiting: BTreeSet::new(), arrived: BTreeSet::new() })
    }

    /// Takes the signals since the last call, each once.
    pub(crate) fn take(&mut self) -> BTreeSet<i32> {
        self.receive();
        std::mem::take(&mut self.waiting)
    }

    /// What [`take`](Self::take) will return, for now.
    pub(crate) fn peek(&mut self) -> &BTreeSet<i32> {
        self.receive();
        &self.waiting
    }

    /// Whether this signal has arrived, at any time.
    pub(crate) fn has_had(&mut self, signal: i32) -> bool {
        self.receive();
        self.arrived.contains(&signal)
    }

    fn receive(&mut self) {
        self.waiting.extend(self.delivery.pending());
        self.arrived.extend(&self.waiting);
    }
}

/// Makes a write beyond the file size limit fail instead of ending this process. The command is not affected.
pub(crate) fn survive_file_limit() -> io::Result<()> {
    // A signal that is caught, not ignored, has its default effect again in an executed program.
    if !ignored_at_start().contains(SIGXFSZ) {
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    }
    Ok(())
}

/// Ends this process by a signal, as if it had never been caught. Returns only where that signal ends no process.
pub(crate) fn die_by(signal: i32) {
    // If the signal dumps core, only the core of the command is of interest.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    let _ = emulate_default_handler(signal);
}

/// The name of a signal, for display.
pub(crate) fn name_of(signal: i32) -> &'static str {
    signal_name(signal).unwrap_or("a signal")
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
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

/// Outside Linux, where this is unknown, nothing counts as ignored.
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
