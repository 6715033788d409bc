//! A holder is suspended between its read and its update, and both are in the database of its lock.

use std::time::Duration;

use postgres::Client;
use test_support::PostgresServer;

use crate::failures::by_hand::{unplanned, until};
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::holder::{Holder, LOCK, Lanes, Work};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::failures::sql::{ask, connect, unanswered};
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "transaction-fence",
    title: "Late transaction",
    what_happens: "The account has 100. A pays in 50 and B pays in 20, each under a lock in the database of the account. A is suspended \
                   between its read and its update, and its lease ends. The database knows that, but nobody asks it when A updates the \
                   row.",
    locks: [
        "by hand: a row with an owner and an expiry",
        "leasehold with postgres://, and a fence in each transaction",
    ],
    without,
    with,
};

const TTL: Duration = Duration::from_millis(1500);
const READ: &str = "SELECT balance FROM account";

/// A database with an account.
struct Bank {
    server: PostgresServer,
    observer: Client,
    lane: Lane,
}

/// A client that sends plain statements.
struct Session {
    lane: Lane,
    client: Client,
}

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, postgres, b] = story.lanes(["A", "PostgreSQL", "B"]);
    let mut bank = Bank::start(postgres)?;
    bank.ask("CREATE TABLE lock (owner text, until timestamptz); INSERT INTO lock VALUES ('', 'epoch')")?;
    let (mut first, mut second) = (bank.by_hand(a)?, bank.by_hand(b)?);
    first.send(story, postgres, &take("A", TTL), "1 row")?;
    story.granted(postgres, a);
    first.send(story, postgres, READ, "100")?;
    story.suspends(a);
    bank.until_expired(story, "SELECT until < now() FROM lock")?;
    story.end(postgres, Kind::Stored(a));
    story.end(a, Kind::Valid);
    second.send(story, postgres, &take("B", Duration::from_secs(30)), "1 row")?;
    story.granted(postgres, b);
    second.send(story, postgres, READ, "100")?;
    second.send(story, postgres, &update(120), "1 row")?;
    story.resumes_deceived(a);
    first.send(story, postgres, &update(150), "1 row")?;
    story.judge_last(Tone::Wrong);
    match bank.ask(READ)?.as_str() {
        "150" => {
            Ok(Ended::violation("the account has 150 and not 170: A overwrote the 20 of B, and nobody saw an error"))
        }
        other => Err(unplanned("the balance", other)),
    }
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, postgres, b] = story.lanes(["A", "PostgreSQL", "B"]);
    let mut bank = Bank::start(postgres)?;
    let (mut first, mut second) = (bank.holder(a)?, bank.holder(b)?);
    first.acquire(story)?;
    first.begin_fenced(story)?;
    first.asks_for(story, READ, "100")?;
    first.pause(story)?;
    let has_expired =
        format!("SELECT count(*) = 0 FROM leasehold.hold WHERE name = '{LOCK}' AND until > leasehold.clock()");
    bank.until_expired(story, &has_expired)?;
    second.is_refused(story)?;
    first.resume(story)?;
    first.asks_for(story, &format!("{}; COMMIT", update(150)), "1 row")?;
    story.end(postgres, Kind::Stored(a));
    second.acquire(story)?;
    second.begin_fenced(story)?;
    first.is_fenced_off(story)?;
    first.notices_loss(story)?;
    second.asks_for(story, READ, "150")?;
    second.asks_for(story, &format!("{}; COMMIT", update(170)), "1 row")?;
    match bank.ask(READ)?.as_str() {
        "170" => Ok(Ended::prevented(
            "B was refused while the fenced transaction of A was open, and the database refused the next one of A",
        )),
        other => Err(unplanned("the balance", other)),
    }
}

fn take(owner: &str, ttl: Duration) -> String {
    let millis = ttl.as_millis();
    format!("UPDATE lock SET owner = '{owner}', until = now() + '{millis} ms' WHERE until < now()")
}

fn update(balance: u32) -> String {
    format!("UPDATE account SET balance = {balance}")
}

impl Bank {
    fn start(lane: Lane) -> Result<Self, Failure> {
        let server = PostgresServer::start();
        let observer = connect(&server.url())?;
        let mut bank = Self { server, observer, lane };
        bank.ask("CREATE TABLE account (balance int); INSERT INTO account VALUES (100)")?;
        Ok(bank)
    }

    fn by_hand(&self, lane: Lane) -> Result<Session, Failure> {
        Ok(Session { lane, client: connect(&self.server.url())? })
    }

    fn holder(&self, lane: Lane) -> Result<Holder, Failure> {
        let (url, lanes) = (self.server.url(), Lanes { store: self.lane, resource: self.lane });
        Holder::start(lane, lanes, &Work { locks: &url, resource: &url, key: "unused", ttl: TTL })
    }

    /// Sends statements that are not part of the story.
    fn ask(&mut self, statements: &str) -> Result<String, Failure> {
        ask(&mut self.observer, statements).map_err(|error| unanswered(&error))
    }

    /// Waits until the database says so.
    fn until_expired(&mut self, story: &mut Recorder, has_expired: &str) -> Result<(), Failure> {
        until("a lease to expire", || Ok(self.ask(has_expired)? == "t"))?;
        story.note(self.lane, "the lease ends", Tone::Fault);
        Ok(())
    }
}

impl Session {
    /// Sends a statement, and records it with its reply, which has to be this one.
    fn send(&mut self, story: &mut Recorder, to: Lane, statement: &str, expected: &str) -> Result<(), Failure> {
        let reply = ask(&mut self.client, statement).map_err(|error| unanswered(&error))?;
        story.message(self.lane, to, format!("{statement} → {reply}"), Tone::Plain);
        if reply == expected { Ok(()) } else { Err(unplanned(statement, &reply)) }
    }
}
