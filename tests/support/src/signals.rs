//! Signals to processes that the test started.

use std::sync::{Arc, Once};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};

use crate::must;

/// Kills the process (`SIGKILL`).
pub fn kill_now(pid: u32) {
    send(pid, Signal::SIGKILL);
}

/// Asks the process to exit (`SIGTERM`).
pub fn terminate(pid: u32) {
    send(pid, Signal::SIGTERM);
}

/// Suspends the process (`SIGSTOP`): the kernel still accepts its connections and bytes, but nothing reads them.
pub fn stop(pid: u32) {
    send(pid, Signal::SIGSTOP);
}

/// Resumes a suspended process (`SIGCONT`).
pub fn resume(pid: u32) {
    send(pid, Signal::SIGCONT);
}

/// Sends a signal to one process.
pub fn send(pid: u32, signal: Signal) {
    let pid = must("take the process id", i32::try_from(pid));
    must("send a signal", kill(Pid::from_raw(pid), signal));
}

/// Keeps signals from this thread, so that none interrupts its reads: other threads of the process get them.
pub fn keep_from_this_thread() {
    must("block signals", SigSet::all().thread_block());
}

/// The signals that tests send and rely on.
const RELIED_ON: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2];

/// Makes child processes start with the default dispositions, even if this process was started with signals ignored (by
/// cron, `nohup`, or in a shell's background). In this process the signals stay without effect.
pub fn default_in_children() {
    static ONCE: Once = Once::new();
    // What is ignored stays so when a program is executed; what is caught goes back to its default.
    ONCE.call_once(|| {
        for signal in RELIED_ON.into_iter().filter(|signal| is_ignored(*signal)) {
            must("catch a signal", signal_hook::flag::register(signal, Arc::default()));
        }
    });
}

/// Where the system does not tell (outside of Linux), nothing counts as ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    u64::from_str_radix(digits.trim(), 16).is_ok_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;
    use crate::Finish;

    const AMONG_THE_DEAF: &str = "TEST_SUPPORT_INTERRUPT_IS_IGNORED";

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_ignored_here_has_its_effect_in_children() {
        let this = env::current_exe().unwrap();
        let line = "trap '' INT; exec \"$0\" --exact signals::tests::an_interrupt_ends_a_child";
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", line]).arg(this).env(AMONG_THE_DEAF, "").finish();
        assert!(output.status.success(), "{output:?}");
    }

    /// Run again by the test above, where interrupts are ignored.
    #[test]
    #[cfg(target_os = "linux")]
    fn an_interrupt_ends_a_child() {
        assert!(env::var_os(AMONG_THE_DEAF).is_none() || is_ignored(SIGINT));
        default_in_children();
        let ended = Command::new("sh").args(["-c", "kill -INT $$; exit 7"]).finish().status;
        assert_eq!(ended.signal(), Some(SIGINT), "{ended:?}");
    }
}
