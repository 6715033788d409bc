//! Waiting for the lock, and giving up on a signal.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lock_host::{Clock, HostClock};
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};
use signal_hook::low_level::emulate_default_handler;

use super::channel::sleep_on;
use super::signals::{self, Signals};
use super::spinner::Spinner;
use super::troubles::Troubles;
use crate::exit::{Exit, Failure};
use crate::locks::{Hold, Locks, Wish};
use crate::report::Voice;

const TURN: Duration = Duration::from_millis(200);
/// How long a wait that was given up may take to leave the queue.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);

/// Acquires the lock; a signal that asks for an end leaves the queue instead.
pub(crate) fn acquire(locks: &Locks, wish: &Wish, signals: &mut Signals, voice: &mut Voice) -> Result<Hold, Failure> {
    let asking = Asking::begin(locks, wish).map_err(|error| Failure::system("cannot start a thread", error))?;
    let mut spinner = Spinner::new(wish, voice);
    let mut troubles = Troubles::default();
    loop {
        sleep_on(&[asking.done.as_fd(), signals.as_fd()], TURN);
        if let Ok(answer) = asking.answer.try_recv() {
            return answer;
        }
        for signal in signals.pending() {
            match signal {
                SIGWINCH | SIGCONT => {}
                SIGTSTP => stop_here(),
                _ => return Err(asking.give_up(locks, signal)),
            }
        }
        if let Some(error) = troubles.news(HostClock.now(), locks.store_error(&wish.name)) {
            spinner.aside(|| voice.warn(&format!("still waiting for {}, but {error}", wish.name)));
        }
        spinner.turn(voice, || locks.obstacle(&wish.name));
    }
}

/// A thread that waits for the lock, since a blocking wait does not hear signals.
struct Asking {
    answer: Receiver<Result<Hold, Failure>>,
    /// Becomes readable when the answer is there.
    done: UnixStream,
}

impl Asking {
    fn begin(locks: &Locks, wish: &Wish) -> io::Result<Self> {
        let (sender, answer) = channel();
        let (done, end) = UnixStream::pair()?;
        let (locks, wish) = (locks.clone(), wish.clone());
        std::thread::Builder::new().name("acquire".to_owned()).spawn(move || {
            // Where nobody takes the answer any more, the hold in it is dropped, and so released.
            let _ = sender.send(locks.acquire(&wish));
            drop(end);
        })?;
        Ok(Self { answer, done })
    }

    fn give_up(self, locks: &Locks, signal: i32) -> Failure {
        locks.close();
        if let Ok(Ok(hold)) = self.answer.recv_timeout(LEAVE_WITHIN) {
            // The ttl ends it otherwise.
            let _ = hold.release();
        }
        let name = signals::name_of(signal);
        Failure::new(Exit::Interrupted(signal), format!("gave up waiting on {name}; the command was not started"))
    }
}

/// Stops this process as if the signal had not been caught: while waiting, nothing is held that could be lost.
fn stop_here() {
    // If it cannot be stopped, it goes on.
    let _ = emulate_default_handler(SIGTSTP);
}
