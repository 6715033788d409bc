//! Which server is the primary now, as its sentinels say.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lock_core::{Effect, ErrorKind};
use redis::{Client, ConnectionInfo};

use super::sentinel::{Named, ask};
use crate::classify::classify;
use crate::config::Sentinels;
use crate::connect::at;
use crate::connect::connecting;
use crate::failure::Failure;
use crate::span::Span;

/// Follows one primary for all connections of a client.
pub(crate) struct Primary {
    pub(crate) sentinels: Sentinels,
    /// How the servers are reached, but for the address.
    server: ConnectionInfo,
    known: Mutex<Known>,
    /// How often the primary has moved.
    moves: Arc<AtomicU64>,
    followers: Mutex<Vec<Weak<dyn Follower>>>,
    /// Whether all sentinels are being asked.
    asking_all: AtomicBool,
}

#[derive(Default)]
struct Known {
    /// The newest that any sentinel has named.
    named: Option<Named>,
    /// The sentinel to ask first: the one that answered last.
    first: usize,
}

/// Connections that end when the primary moves.
pub(crate) trait Follower: Send + Sync {
    /// Another server is the primary now.
    fn moved(&self);
}

/// Whether a primary is where it was. Does not keep the primary from being forgotten with its client: a connection with
/// unanswered requests can outlive that.
#[derive(Clone)]
pub(crate) struct Place {
    moves: u64,
    moves_now: Arc<AtomicU64>,
}

impl Place {
    /// Whether no other server has become the primary since.
    pub(crate) fn is_current(&self) -> bool {
        self.moves_now.load(Ordering::Acquire) == self.moves
    }
}

impl Primary {
    pub(crate) fn new(sentinels: Sentinels, server: ConnectionInfo) -> Self {
        let (known, moves, followers) = (Mutex::default(), Arc::default(), Mutex::default());
        Self { sentinels, server, known, moves, followers, asking_all: AtomicBool::new(false) }
    }

    /// Tells these connections when the primary moves, for as long as they exist.
    pub(crate) fn follow(&self, follower: Weak<dyn Follower>) {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(follower);
    }

    /// Asks the sentinels in turn, until one names a primary that is not outdated.
    pub(crate) fn find(&self, span: Span) -> Result<(Client, Place), Failure> {
        let count = self.sentinels.nodes.len();
        let mut failures = Vec::new();
        for (tried, node) in self.in_turn().enumerate() {
            let left = u32::try_from(count - tried).unwrap_or(u32::MAX);
            match self.ask(node, span.at_most(span.left() / left)) {
                Ok(found) => return Ok(found),
                Err(failure) => failures.push(failure),
            }
        }
        Err(self.none(failures, span))
    }

    /// Begins to ask all sentinels, unless somebody does that already.
    pub(crate) fn begin_asking_all(&self) -> bool {
        !self.asking_all.swap(true, Ordering::AcqRel)
    }

    /// Asks all sentinels, the one that answered last at the end: it may have missed a fail-over.
    pub(crate) fn ask_all(&self, span: Span) {
        let mut nodes: Vec<_> = (1..).zip(self.in_turn()).collect();
        while let Some((left, node)) = nodes.pop() {
            _ = self.ask(node, span.at_most(span.left() / left));
        }
    }

    /// Others may begin again.
    pub(crate) fn end_asking_all(&self) {
        self.asking_all.store(false, Ordering::Release);
    }

    /// Asks one sentinel, and remembers its answer.
    pub(crate) fn ask(&self, node: usize, span: Span) -> Result<(Client, Place), Failure> {
        let Some(sentinel) = self.sentinels.nodes.get(node) else { return Err(Failure::strange_answer()) };
        if span.left().is_zero() {
            return Err(Failure::no_connection("a sentinel", span.within));
        }
        let named = ask(sentinel, &self.sentinels.master, span)?;
        let place = self.learn(node, &named)?;
        let server = self.server.clone().set_addr(at(&self.server, &named.host, named.port));
        let client = Client::open(server).map_err(|error| classify(connecting(&named.host, span.within), &error))?;
        Ok((client, place))
    }

    /// The sentinels in the order of asking.
    pub(crate) fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.known().first, self.sentinels.nodes.len());
        (0..count).map(move |number| (first + number) % count)
    }

    /// Remembers what a sentinel said, and tells all connections if the primary has moved.
    fn learn(&self, node: usize, named: &Named) -> Result<Place, Failure> {
        let mut known = self.known();
        let last = known.named.as_ref();
        if let Some(last) = last.filter(|last| named.epoch < last.epoch) {
            return Err(outdated(named, last));
        }
        let has_moved = last.is_some_and(|last| named.has_moved_since(last));
        *known = Known { named: Some(named.clone()), first: node };
        let moves = self.moves.load(Ordering::Relaxed) + u64::from(has_moved);
        self.moves.store(moves, Ordering::Release);
        drop(known);
        if has_moved {
            self.tell_all();
        }
        Ok(Place { moves, moves_now: Arc::clone(&self.moves) })
    }

    fn tell_all(&self) {
        let followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        followers.iter().filter_map(Weak::upgrade).for_each(|follower| follower.moved());
    }

    /// Why no sentinel named a primary: what one of them answered, or that none did.
    fn none(&self, failures: Vec<Failure>, span: Span) -> Failure {
        if let Some(answered) = failures.iter().find(|failure| failure.is_an_answer()) {
            return answered.clone();
        }
        let told: Vec<_> = failures.iter().map(Failure::message).collect();
        if told.is_empty() {
            return Failure::no_connection("the sentinels", span.within);
        }
        let message = format!("no sentinel of \"{}\" answered: {}", self.sentinels.master, told.join(", "));
        Failure::new(ErrorKind::Unreachable, Effect::None, message)
            .remedy("check that the sentinels run at these addresses, and use rediss+sentinel:// if, and only if, they speak TLS")
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sentinel has missed a fail-over.
fn outdated(named: &Named, last: &Named) -> Failure {
    let message = format!(
        "a sentinel names {}:{} as the primary in epoch {}, but epoch {} was seen",
        named.host, named.port, named.epoch, last.epoch
    );
    Failure::new(ErrorKind::Unavailable, Effect::None, message)
        .remedy("if the sentinels were set up anew, restart this client; otherwise they catch up by themselves")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use test_support::Sentinel;
    use test_support::bounds::wait_for;
    use test_support::sentinels::{MASTER, PASSWORDS, server, url_of};

    use super::*;
    use crate::RedisConfig;
    use crate::config::Deployment;

    /// Has a sentinel name the server at another address.
    fn monitor(sentinel: &Sentinel, host: &str, port: u16) {
        let url = format!("redis://:{}@127.0.0.1:{}", PASSWORDS.1, sentinel.port());
        let mut connection = Client::open(url).unwrap().get_connection().unwrap();
        let port = port.to_string();
        for words in [
            &["REMOVE", MASTER][..],
            &["MONITOR", MASTER, host, &port, "2"],
            &["SET", MASTER, "auth-pass", PASSWORDS.0],
        ] {
            redis::cmd("SENTINEL").arg(words).exec(&mut connection).unwrap();
        }
        wait_for("the sentinel has asked the server who it is", || {
            let about = redis::cmd("SENTINEL").arg("MASTER").arg(MASTER).query::<Vec<String>>(&mut connection).unwrap();
            about.chunks(2).any(|pair| pair[0] == "runid" && !pair[1].is_empty()).then_some(())
        });
    }

    #[test]
    fn a_server_with_two_addresses_does_not_move_between_them() {
        let (here, elsewhere) = (server(&["--bind", "127.0.0.1", "127.0.0.2"]), server(&[]));
        let sentinels = [Sentinel::watching(&here), Sentinel::watching(&here)];
        monitor(&sentinels[0], "127.0.0.1", here.port());
        monitor(&sentinels[1], "127.0.0.2", here.port());
        let config = RedisConfig::from_url(&url_of(&sentinels.each_ref().map(Sentinel::port))).unwrap();
        let Deployment::Sentinels(named) = config.deployment() else { panic!("{config:?}") };
        let primary = Primary::new(named.clone(), config.server().clone());
        let ask = |node| {
            primary.ask(node, Span::from_now(Duration::from_secs(5))).map_err(|failure| failure.message().to_owned())
        };
        let (_, place) = ask(0).unwrap();
        let (client, alias) = ask(1).unwrap();
        assert!(client.get_connection_info().addr().to_string().starts_with("127.0.0.2"));
        assert!(place.is_current() && alias.is_current(), "it is the same server");
        // An operator has named another one, without a fail-over.
        monitor(&sentinels[0], "127.0.0.1", elsewhere.port());
        let (_, moved) = ask(0).unwrap();
        assert!(!place.is_current() && !alias.is_current() && moved.is_current());
    }

    #[test]
    fn a_primary_has_moved_with_the_epoch_or_to_another_run() {
        let named = |epoch, run_id: &str, host: &str| Named {
            epoch,
            run_id: (!run_id.is_empty()).then(|| run_id.to_owned()),
            host: host.to_owned(),
            port: 6379,
        };
        let last = named(3, "ab", "one");
        for (now, has_moved) in [
            (named(3, "ab", "one"), false),
            (named(3, "ab", "two"), false),
            // It was restarted, or the sentinel does not know it yet.
            (named(3, "cd", "one"), false),
            (named(3, "", "one"), false),
            (named(3, "cd", "two"), true),
            (named(3, "", "two"), true),
            (named(4, "ab", "two"), true),
            // It was replaced, and has replaced that server again.
            (named(4, "ab", "one"), true),
        ] {
            assert_eq!(now.has_moved_since(&last), has_moved, "{now:?}");
        }
    }
}
