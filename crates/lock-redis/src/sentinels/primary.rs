//! Which server is the primary now, as its sentinels say.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_core::{Effect, ErrorKind, Listeners, StoreEvent};
use redis::ConnectionInfo;

use super::sentinel::{Named, ask};
use crate::address::Address;
use crate::config::Servers;
use crate::connect::nobody_answered;
use crate::failure::Failure;
use crate::span::Span;

/// Follows one primary for a client and its keeper.
pub(crate) struct Primary {
    servers: Servers,
    known: Mutex<Known>,
    /// Whether all sentinels are being asked.
    pub(super) asking_all: AtomicBool,
    pub(super) listeners: Listeners,
    /// The clients that close their connections when the primary moves.
    pub(super) clients: Listeners,
}

#[derive(Default)]
struct Known {
    /// The newest that any sentinel has named.
    named: Option<Named>,
    /// Where the primary is. It is a new one with each move, also to the same address.
    address: Option<Arc<Address>>,
    /// The sentinel to ask first: the one that answered last.
    first: usize,
}

impl Primary {
    pub(crate) fn new(servers: Servers) -> Self {
        let (known, asking_all) = (Mutex::default(), AtomicBool::new(false));
        Self { servers, known, asking_all, listeners: Listeners::default(), clients: Listeners::default() }
    }

    /// The name under which the sentinels know it.
    pub(super) fn name(&self) -> &str {
        &self.servers.master
    }

    /// How the sentinels are reached.
    pub(super) fn sentinels(&self) -> &[ConnectionInfo] {
        &self.servers.guides
    }

    /// Asks the sentinels in turn, until one names a primary that is not outdated.
    pub(super) fn find(&self, span: Span) -> Result<(), Failure> {
        let mut failures = Vec::new();
        for (left, number) in self.in_turn() {
            match self.ask(number, span.at_most(span.left() / left)) {
                Ok(()) => return Ok(()),
                Err(failure) => failures.push(failure),
            }
        }
        let remedy = "check that the sentinels run at these addresses, and use rediss+sentinel:// if, and only if, they speak TLS";
        Err(nobody_answered(&format!("sentinel of \"{}\"", self.name()), remedy, &failures, span))
    }

    /// Asks all sentinels, the one that answered last at the end: it may have missed a fail-over. Not while that is done already.
    pub(super) fn ask_all(&self, span: Span) {
        let numbers: Vec<_> = self.in_turn().map(|(_, number)| number).collect();
        for (left, number) in (1..).zip(numbers).collect::<Vec<_>>().into_iter().rev() {
            _ = self.ask(number, span.at_most(span.left() / left));
        }
    }

    /// Asks one sentinel, and remembers its answer.
    pub(super) fn ask(&self, number: usize, span: Span) -> Result<(), Failure> {
        let sentinel = self.sentinels().get(number).filter(|_| !span.left().is_zero());
        let sentinel = sentinel.ok_or_else(|| Failure::no_connection("a sentinel", span.within))?;
        self.learn(number, ask(sentinel, self.name(), span)?)
    }

    /// The sentinels in the order of asking. Before each, how many are left.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = (u32, usize)> + use<> {
        let (first, count) = (self.known().first, self.servers.guides.len());
        (0..count).map(move |turn| (u32::try_from(count - turn).unwrap_or(u32::MAX), (first + turn) % count))
    }

    /// Remembers what a sentinel said, and tells all clients if the primary has moved.
    fn learn(&self, number: usize, named: Named) -> Result<(), Failure> {
        let mut known = self.known();
        let last = known.named.as_ref();
        if let Some(last) = last.filter(|last| named.epoch < last.epoch) {
            return Err(outdated(&named, last));
        }
        let has_moved = last.is_some_and(|last| named.has_moved_since(last));
        if has_moved || last.is_none() {
            known.address = Some(Arc::new(named.address.clone()));
        }
        (known.named, known.first) = (Some(named), number);
        drop(known);
        if has_moved {
            self.clients.deliver(&StoreEvent::RecheckAll);
            self.listeners.deliver(&StoreEvent::RecheckAll);
        }
        Ok(())
    }

    /// Where it is now.
    pub(super) fn address(&self) -> Option<Arc<Address>> {
        self.known().address.clone()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sentinel has missed a fail-over.
fn outdated(named: &Named, last: &Named) -> Failure {
    let message = format!(
        "a sentinel names {} as the primary in epoch {}, but epoch {} has begun",
        named.address, named.epoch, last.epoch
    );
    Failure::new(ErrorKind::Unavailable, Effect::None, message)
        .remedy("if the sentinels were set up anew, restart this client; otherwise they catch up by themselves")
        .dropping()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redis::Client;
    use test_support::Sentinel;
    use test_support::bounds::wait_for;
    use test_support::sentinels::{MASTER, PASSWORDS, server, url_of};

    use super::*;
    use crate::RedisConfig;

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
        let primary = Primary::new(config.servers.clone());
        let ask = |node| {
            let asked = primary.ask(node, Span::from_now(Duration::from_secs(5)));
            asked.map_err(|failure| failure.message().to_owned()).unwrap();
            primary.address().unwrap()
        };
        let (address, alias) = (ask(0), ask(1));
        assert!(Arc::ptr_eq(&address, &alias), "it is the same server");
        // An operator has named another one, without a fail-over.
        monitor(&sentinels[0], "127.0.0.1", elsewhere.port());
        assert_eq!(ask(0).port, elsewhere.port());
    }

    #[test]
    fn a_primary_has_moved_with_the_epoch_or_to_another_run() {
        let named = |epoch, run_id: &str, host: &str| Named {
            epoch,
            run_id: (!run_id.is_empty()).then(|| run_id.to_owned()),
            address: Address { host: host.to_owned(), port: 6379 },
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
