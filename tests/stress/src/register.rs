//! What the locks protect: a number for each lock, which every turn reads at its beginning and writes back, one higher, at
//! its end. Each step is atomic, and a token that is lower than one seen before is refused.
//!
//! Reading takes the token, too: from then on a late write of an earlier turn is refused, which would otherwise go in
//! between this turn's reading and its writing, and be lost.
//!
//! Tickets pass from one worker to another here as well. The test itself serves the register, so no fault can reach it. Workers write whatever their guard says by then: a worker
//! that was suspended does not know yet that it is too late.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::ask::Ask;
use crate::hold::Hold;

/// The words that begin a line about tickets; other lines begin with a lock.
const LEAVE: &str = "leave";
const TAKE: &str = "take";

/// Whether the register took a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The value is now one above the base.
    Accepted,
    /// Its token was lower than one seen before; nothing changed.
    Refused,
}

/// One attempt to write, in order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The lock.
    pub lock: String,
    /// The writer's token.
    pub token: u64,
    /// What the writer had read.
    pub base: u64,
    /// The result.
    pub taken: Taken,
}

/// An accepted write that was not based on the result of the accepted write before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostUpdate {
    /// The write.
    pub entry: Entry,
    /// The result of the write before it.
    pub before: u64,
}

/// The updates that were overwritten without having been read.
pub fn lost_updates(entries: &[Entry]) -> Vec<LostUpdate> {
    let mut values: BTreeMap<&str, u64> = BTreeMap::new();
    let mut lost = Vec::new();
    for entry in entries.iter().filter(|entry| entry.taken == Taken::Accepted) {
        let value = values.entry(&entry.lock).or_default();
        if entry.base != *value {
            lost.push(LostUpdate { entry: entry.clone(), before: *value });
        }
        *value = entry.base + 1;
    }
    lost
}

/// The register, served on a socket as long as this process lives.
#[derive(Debug)]
pub struct Register {
    socket: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    numbers: BTreeMap<String, Number>,
    entries: Vec<Entry>,
    /// Tickets that were left for others, by what they are for.
    tickets: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default)]
struct Number {
    value: u64,
    highest: u64,
}

impl Number {
    fn takes(&mut self, token: u64) -> bool {
        let takes = token >= self.highest;
        self.highest = self.highest.max(token);
        takes
    }
}

impl State {
    fn read(&mut self, lock: &str, token: u64) -> Option<u64> {
        let number = self.numbers.entry(lock.to_owned()).or_default();
        number.takes(token).then_some(number.value)
    }

    fn write(&mut self, lock: &str, token: u64, base: u64) -> Taken {
        let number = self.numbers.entry(lock.to_owned()).or_default();
        let taken = if number.takes(token) { Taken::Accepted } else { Taken::Refused };
        if taken == Taken::Accepted {
            number.value = base + 1;
        }
        self.entries.push(Entry { lock: lock.to_owned(), token, base, taken });
        taken
    }

    /// The answer to a line: a number for a read, a ticket, or nothing for a refusal.
    fn answer(&mut self, line: &str) -> Option<String> {
        let mut words = line.split(' ');
        let (first, second) = (words.next().unwrap(), words.next().unwrap());
        match first {
            LEAVE => {
                self.tickets.entry(second.to_owned()).or_default().push(words.next().unwrap().to_owned());
                None
            }
            TAKE => self.tickets.get_mut(second)?.pop(),
            _ => self.number(&line.parse().unwrap()).map(|number| number.to_string()),
        }
    }

    fn number(&mut self, Ask { resource, token, base }: &Ask) -> Option<u64> {
        match base {
            None => self.read(resource, *token),
            Some(base) => (self.write(resource, *token, *base) == Taken::Accepted).then_some(base + 1),
        }
    }
}

impl Register {
    /// Serves a new register on a socket in this directory.
    pub fn serve(directory: &Path) -> Self {
        let socket = directory.join("register");
        let listener = UnixListener::bind(&socket).expect("the register's socket");
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for worker in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&shared, worker));
            }
        });
        Self { socket, state }
    }

    /// The path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What a turn of the test itself does first.
    pub fn begin(&self, name: &str, hold: &Hold) {
        for (resource, token) in hold.resources(name) {
            assert!(lock(&self.state).read(&resource, token).is_some(), "{resource} refuses {token}");
        }
    }

    /// All attempts to write so far.
    pub fn entries(&self) -> Vec<Entry> {
        lock(&self.state).entries.clone()
    }

    /// How many writes came too late so far, and were refused.
    pub fn refused(&self) -> u64 {
        lock(&self.state).entries.iter().filter(|entry| entry.taken == Taken::Refused).count() as u64
    }
}

/// Until the worker ends.
fn serve(state: &Mutex<State>, worker: UnixStream) {
    let mut answers = worker.try_clone().unwrap();
    for line in BufReader::new(worker).lines() {
        let Ok(line) = line else { return };
        let answer = lock(state).answer(&line).unwrap_or_else(|| "refused".to_owned());
        if writeln!(answers, "{answer}").is_err() {
            return;
        }
    }
}

/// A worker's connection to the register.
#[derive(Debug)]
pub(crate) struct Desk(Mutex<BufReader<UnixStream>>);

impl Desk {
    pub(crate) fn connect(socket: &Path) -> Self {
        Self(Mutex::new(BufReader::new(UnixStream::connect(socket).expect("the register"))))
    }

    /// The number then; `None` if a higher token has been seen.
    pub(crate) fn number(&self, ask: &Ask) -> Option<u64> {
        self.ask(&format!("{ask}\n")).parse().ok()
    }

    /// Leaves a ticket for others that want the same.
    pub(crate) fn leave(&self, purpose: &str, ticket: &str) {
        self.ask(&format!("{LEAVE} {purpose} {ticket}\n"));
    }

    /// Takes a ticket that others have left.
    pub(crate) fn take(&self, purpose: &str) -> Option<String> {
        Some(self.ask(&format!("{TAKE} {purpose}\n"))).filter(|answer| answer != "refused")
    }

    fn ask(&self, line: &str) -> String {
        let mut stream = lock(&self.0);
        stream.get_mut().write_all(line.as_bytes()).expect("the register takes a line");
        let mut answer = String::new();
        stream.read_line(&mut answer).expect("the register answers");
        answer.trim_end().to_owned()
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} token {} from {} {:?}", self.lock, self.token, self.base, self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(lock: &str, token: u64, base: u64) -> Entry {
        Entry { lock: lock.into(), token, base, taken: Taken::Accepted }
    }

    #[test]
    fn a_late_write_is_refused_once_the_next_turn_has_read() {
        let directory = test_support::temp_dir();
        let register = Register::serve(directory.path());
        let [paused, other] = [(); 2].map(|()| Desk::connect(register.socket()));
        let asks = |desk: &Desk, ask: &str| desk.number(&ask.parse().unwrap());
        assert_eq!([asks(&paused, "hot 7"), asks(&other, "hot 8")], [Some(0); 2]);
        assert_eq!([asks(&paused, "hot 7 0"), asks(&other, "hot 8 0")], [None, Some(1)]);
        assert_eq!([asks(&paused, "hot 7"), asks(&paused, "cool 7"), asks(&other, "hot 9")], [None, Some(0), Some(1)]);
        let refused = Entry { taken: Taken::Refused, ..accepted("hot", 7, 0) };
        assert_eq!(register.entries(), [refused, accepted("hot", 8, 0)]);
        assert_eq!((register.refused(), lost_updates(&register.entries())), (1, Vec::new()));
    }

    #[test]
    fn a_ticket_is_taken_once_and_for_what_it_was_left_for() {
        let mut state = State::default();
        assert_eq!(state.answer("leave hot/write lht1:x"), None);
        let takes = ["take cool/write", "take hot/write", "take hot/write"].map(|line| state.answer(line));
        assert_eq!(takes, [None, Some("lht1:x".to_owned()), None]);
    }

    #[test]
    fn without_the_token_at_reading_a_late_write_is_lost() {
        let mut state = State::default();
        let base = state.read("hot", 7).unwrap();
        let unfenced = state.numbers["hot"].value;
        state.write("hot", 7, base);
        state.write("hot", 8, unfenced);
        assert_eq!(lost_updates(&state.entries), [LostUpdate { entry: accepted("hot", 8, 0), before: 1 }]);
    }

    #[test]
    fn updates_that_were_overwritten_are_found() {
        let well = [accepted("hot", 1, 0), accepted("cool", 2, 0), accepted("hot", 3, 1)];
        assert_eq!(lost_updates(&well), []);
        let refused = Entry { taken: Taken::Refused, ..accepted("hot", 2, 0) };
        assert_eq!(lost_updates(&[accepted("hot", 3, 0), refused, accepted("hot", 4, 1)]), []);
        // Two with one token.
        let twice = [accepted("hot", 3, 0), accepted("hot", 3, 0)];
        assert_eq!(lost_updates(&twice), [LostUpdate { entry: accepted("hot", 3, 0), before: 1 }]);
    }
}
