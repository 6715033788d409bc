//! Waits that end: each has a bound and says what it waited for.

use std::fmt::Display;
use std::io::{Read, Write, stderr};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::must;

/// No step of a test takes this long on any machine; it only bounds a hang.
pub const PATIENCE: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(5);

/// What is asked again and again until it is there.
pub trait Awaited {
    /// What is there in the end.
    type Value;

    /// What is there now, or why it is not there yet.
    ///
    /// # Errors
    /// Why it is not there yet; empty if it cannot say.
    fn arrived(self) -> Result<Self::Value, String>;
}

impl Awaited for bool {
    type Value = ();

    fn arrived(self) -> Result<(), String> {
        self.then_some(()).arrived()
    }
}

impl<T> Awaited for Option<T> {
    type Value = T;

    fn arrived(self) -> Result<T, String> {
        self.ok_or_else(String::new)
    }
}

impl<T, E: Display> Awaited for Result<T, E> {
    type Value = T;

    fn arrived(self) -> Result<T, String> {
        self.map_err(|error| format!("; the last answer: {error}"))
    }
}

/// Polls until there is an answer.
///
/// # Panics
/// After [`PATIENCE`], with the last error.
#[track_caller]
pub fn wait_for<A: Awaited>(what: &str, ask: impl FnMut() -> A) -> A::Value {
    wait_at_most(PATIENCE, what, ask)
}

/// Polls until there is an answer.
///
/// # Panics
/// After this time, with the last error.
#[track_caller]
pub fn wait_at_most<A: Awaited>(patience: Duration, what: &str, mut ask: impl FnMut() -> A) -> A::Value {
    let until = Instant::now() + patience;
    loop {
        match ask().arrived() {
            Ok(answer) => return answer,
            Err(why) => assert!(Instant::now() < until, "{}{why}", in_vain(patience, what)),
        }
        thread::sleep(POLL);
    }
}

/// Runs something that blocks and cannot be cancelled, such as joining a thread.
///
/// After [`PATIENCE`] the whole process ends, because nothing else would end the wait.
pub fn within<T>(what: &str, run: impl FnOnce() -> T) -> T {
    within_at_most(PATIENCE, what, run)
}

/// The same for this time, for what has many steps.
pub fn within_at_most<T>(patience: Duration, what: &str, run: impl FnOnce() -> T) -> T {
    let _watchdog = Watchdog::over_for(patience, what);
    run()
}

/// Ends the whole process, and says why, unless it is dropped in time.
#[derive(Debug)]
pub struct Watchdog {
    _done: Sender<()>,
}

impl Watchdog {
    /// Starts the watch; `what` is reported if it does not happen within [`PATIENCE`].
    pub fn over(what: &str) -> Self {
        Self::over_for(PATIENCE, what)
    }

    fn over_for(patience: Duration, what: &str) -> Self {
        let (done, watched) = channel::<()>();
        let said = in_vain(patience, what);
        thread::spawn(move || {
            if watched.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                // Not by a macro, whose text the test harness keeps to itself.
                let _ = writeln!(stderr(), "{said}; the other tests of this program end with it");
                std::process::exit(101);
            }
        });
        Self { _done: done }
    }

    /// Watches the test that runs in this thread. Waits inside it end before, and say more.
    pub fn over_this_test() -> Self {
        Self::over_for(2 * PATIENCE, &format!("the end of the test {}", thread::current().name().unwrap_or_default()))
    }
}

/// Running commands to completion.
pub trait Finish {
    /// Runs a command to completion and captures its output. Replaces `Command::output`, which has no bound.
    ///
    /// # Panics
    /// After [`PATIENCE`], with the command's output so far; the command is killed.
    #[track_caller]
    fn finish(&mut self) -> Output;
}

impl Finish for Command {
    #[track_caller]
    fn finish(&mut self) -> Output {
        let what = format!("{self:?}");
        let child = must(&what, self.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn());
        output_of(child, &what)
    }
}

/// Waits until a process has ended and its output is complete.
///
/// # Panics
/// As [`Finish::finish`].
#[track_caller]
pub fn output_of(mut child: Child, what: &str) -> Output {
    drop(child.stdin.take());
    let (stdout, stderr) = (Pipe::read(child.stdout.take()), Pipe::read(child.stderr.take()));
    let until = Instant::now() + PATIENCE;
    let status = ended_by(&mut child, until);
    let complete = stdout.ended_by(until) && stderr.ended_by(until);
    let (Some(status), true) = (status, complete) else {
        child.kill().ok();
        panic!("{}; it said: {}{}", in_vain(PATIENCE, &format!("the end of {what}")), stdout.text(), stderr.text());
    };
    Output { status, stdout: stdout.take(), stderr: stderr.take() }
}

/// Waits until a process has ended.
///
/// # Panics
/// After [`PATIENCE`]; the process is killed.
#[track_caller]
pub fn status_of(child: &mut Child, what: &str) -> ExitStatus {
    ended_by(child, Instant::now() + PATIENCE).unwrap_or_else(|| {
        child.kill().ok();
        panic!("{}", in_vain(PATIENCE, &format!("the end of {what}")))
    })
}

fn in_vain(patience: Duration, what: &str) -> String {
    format!("waited {} s in vain for {what}", patience.as_secs())
}

fn ended_by(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        let ended = must("look at a process", child.try_wait());
        if ended.is_some() || Instant::now() >= until {
            return ended;
        }
        thread::sleep(POLL);
    }
}

/// The output of a process, read by a thread that nobody has to wait for.
struct Pipe {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Closed when everything has been read.
    reading: Receiver<()>,
}

impl Pipe {
    fn read(source: Option<impl Read + Send + 'static>) -> Self {
        let (reader, reading) = channel();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        if let Some(mut source) = source {
            let bytes = Arc::clone(&bytes);
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = source.read(&mut piece) {
                    bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..count]);
                }
                drop(reader);
            });
        }
        Self { bytes, reading }
    }

    fn ended_by(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        self.reading.recv_timeout(left) == Err(RecvTimeoutError::Disconnected)
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.take()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_a_process_is_whole() {
        let output = Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]).finish();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[test]
    #[should_panic(expected = "waited 0 s in vain for a tide; the last answer: it is low")]
    fn a_wait_that_ends_in_vain_says_the_last_answer() {
        wait_at_most::<Result<(), &str>>(Duration::ZERO, "a tide", || Err("it is low"));
    }

    #[test]
    fn what_blocks_and_ends_is_no_matter() {
        assert_eq!(within("a short sleep", || thread::spawn(|| 7).join().unwrap_or(0)), 7);
        assert_eq!(wait_for("nothing", || Some(7)), 7);
    }
}
