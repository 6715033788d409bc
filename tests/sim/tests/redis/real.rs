//! The scripts on a real Redis, asked and read without the backend.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::inspect::{REMEMBERED_MIN, Revoked};
use lock_core::{
    Answer, Certainty, Claim, Evidence, Fenced, FencingToken, Holder, Lease, LockName, Moment, Note, Owner,
    ReleaseRequest, Released, Renewed, Slots, Stamped, StoreEvent, Terms, TokenRange, Ttl,
};
use lock_redis::by_hand::texts;
use lock_sim::redis::trace::{Ask, Inbox, Refused, Said, Say, Seat, operator};
use redis::{Connection, PubSub, Value};

/// What the other keys of a lock begin with.
const LEAD: &str = "leasehold:{";
const FOREIGN_SET: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0";
const FOREIGN_DELETE: &str = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

const COUNTER: &str = "leasehold:counter";
/// Free locks are not granted while it is there.
const DWELL: &str = "leasehold:dwell";
/// What a client passes that does not heed it.
const NO_DWELL: &str = "leasehold:no-dwell";
/// How long a dwell would last, in milliseconds.
const LASTS: &str = "70000";
/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Said after each step where somebody listens: what was told before comes before.
const NO_MORE: &str = "no more";
/// The channel of all clients.
const ALL: &str = "leasehold:inbox:all";

/// The real side of a trace.
pub(crate) struct Real<'a> {
    connection: Connection,
    /// The key that keeps free locks from being granted.
    dwell: &'static str,
    inboxes: PubSub<'a>,
    listened_to: Vec<Inbox>,
}

impl<'a> Real<'a> {
    /// Verifies the counter, and listens to these inboxes.
    pub(crate) fn new(connection: Connection, listening: &'a mut Connection, inboxes: &[Inbox]) -> Self {
        let mut pubsub = listening.as_pubsub();
        pubsub.set_read_timeout(Some(PATIENCE)).unwrap();
        for inbox in inboxes {
            pubsub.subscribe(address(*inbox)).unwrap();
        }
        pubsub.subscribe(ALL).unwrap();
        let mut real = Self { connection, dwell: DWELL, inboxes: pubsub, listened_to: inboxes.into() };
        let incarnation = "run:history".to_owned();
        real.script(
            texts().verify,
            &[COUNTER, "leasehold:incarnation", DWELL, "leasehold:max_ttl"].map(str::to_owned),
            &[incarnation.as_str(), "", "unpromoted", "60000", "10000"].map(str::to_owned),
        );
        // The server has no marker, so it is taken for one that has forgotten.
        redis::cmd("DEL").arg(DWELL).exec(&mut real.connection).unwrap();
        real
    }

    /// From now on, its clients heed no dwell.
    pub(crate) fn heed_nothing(&mut self) {
        self.dwell = NO_DWELL;
    }

    /// Begins a dwell, and returns when.
    pub(crate) fn dwell(&mut self, life: Duration) -> Moment {
        let life = life.as_millis().to_string();
        self.script("return redis.call('SET', KEYS[1], '', 'PX', ARGV[1])", &[DWELL.to_owned()], &[life]).0
    }

    pub(crate) fn now(&mut self) -> Moment {
        self.script("return 1", &[], &[]).0
    }

    pub(crate) fn counter(&mut self) -> u64 {
        redis::cmd("GET").arg(COUNTER).query(&mut self.connection).unwrap()
    }

    /// Asks, and returns when the script ran and what it answered.
    pub(crate) fn ask(&mut self, ask: &Ask) -> (Moment, Said) {
        let (at, say) = match ask {
            Ask::Acquire(claim, seat) => self.acquire(claim, *seat),
            Ask::Renew(leases) => self.renew(leases),
            Ask::Release(request) => self.release(request),
            Ask::Fence(lease) => self.fence(lease),
            Ask::Revoke(name, token) => self.revoke(name, *token),
            Ask::Hello(_)
            | Ask::Join(..)
            | Ask::Beat
            | Ask::CatchUp
            | Ask::EndSession
            | Ask::Topology
            | Ask::Grant(_)
            | Ask::KeepAlive(_)
            | Ask::Look(_)
            | Ask::Txn(..)
            | Ask::Latch(..)
            | Ask::ForeignSet(..)
            | Ask::ForeignDelete(..) => {
                panic!("a trace asks otherwise: {ask:?}")
            }
        };
        let told = self.told();
        (at, Said { say, told })
    }

    fn acquire(&mut self, claim: &Claim, seat: Seat) -> (Moment, Say) {
        let inbox = match seat {
            Seat::Unwanted => String::new(),
            Seat::Silent => "-".to_owned(),
            Seat::Told(inbox) => address(inbox),
        };
        let keys = [COUNTER.to_owned(), self.dwell.to_owned(), claim.name.to_string()];
        let floor = claim.floor.map_or(0, FencingToken::get);
        let terms = format!("{} {} {inbox} {}", claim.terms.ttl.as_millis(), claim.width.get(), claim.note.to_wire());
        let arguments = [floor.to_string(), LASTS.to_owned(), LEAD.to_owned(), mine(claim.owner), terms];
        let (at, reply) = self.script(texts().acquire, &keys, &arguments);
        (at, Say::Acquire(acquired(claim, &reply)))
    }

    fn renew(&mut self, leases: &[Lease]) -> (Moment, Say) {
        let keys: Vec<_> = leases.iter().map(|lease| lease.name.to_string()).collect();
        let mut arguments = vec![leases.len().to_string(), LEAD.to_owned()];
        arguments.extend(leases.iter().map(of_lease));
        let ttls =
            leases.iter().zip(1..).flat_map(|(lease, last): (_, u32)| [lease.terms.ttl.as_millis(), last.into()]);
        arguments.extend(ttls.map(|number| number.to_string()));
        let (at, reply) = self.script(texts().renew, &keys, &arguments);
        let lost: BTreeMap<usize, Option<String>> =
            redis::from_redis_value::<Vec<_>>(reply).unwrap().into_iter().collect();
        let renewed = |(index, lease): (usize, &Lease)| match lost.get(&(index + 1)) {
            Some(None) => Renewed::NotHeld,
            Some(Some(by)) => Renewed::Revoked { by: Note::from_wire(by) },
            None => Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false },
        };
        (at, Say::Renew(leases.iter().enumerate().map(renewed).collect()))
    }

    fn release(&mut self, request: &ReleaseRequest) -> (Moment, Say) {
        let keys = [COUNTER.to_owned(), self.dwell.to_owned(), request.name.to_string()];
        let mut arguments = vec![LEAD.to_owned(), mine(request.owner)];
        arguments.push(if request.evidence == Evidence::ValidHold { "valid" } else { "doubtful" }.to_owned());
        if request.certainty == Certainty::Unknown {
            arguments.push(request.terms.ttl.as_millis().max(10_000).to_string());
        }
        let (at, reply) = self.script(texts().release, &keys, &arguments);
        let released: usize = redis::from_redis_value(reply).unwrap();
        let released = [Released::NotHeld, Released::Released, Released::Left][released];
        (at, Say::Release(Ok(released)))
    }

    fn fence(&mut self, lease: &Lease) -> (Moment, Say) {
        let (at, reply) = self.script(texts().look, &[lease.name.to_string()], &[]);
        let [(value, _, _, _)]: [(Option<String>, i64, i64, Vec<Value>); 1] = redis::from_redis_value(reply).unwrap();
        let fenced = match value.as_deref().and_then(parsed) {
            Some((owner, tokens, _)) if owner == lease.owner && tokens == lease.tokens => Fenced::Acknowledged,
            Some((_, tokens, _)) if tokens.low() > lease.tokens.high() => Fenced::Higher(tokens.low()),
            Some(_) | None => Fenced::NotHeld,
        };
        (at, Say::Fence(fenced))
    }

    fn revoke(&mut self, name: &LockName, token: FencingToken) -> (Moment, Say) {
        let (lock, queue, waiters) = keys(name);
        let (at, reply) = self.script(
            texts().revoke,
            &[COUNTER.to_owned(), self.dwell.to_owned(), lock, queue, waiters],
            &[token.to_string(), operator().to_wire().to_owned(), REMEMBERED_MIN.as_millis().to_string()],
        );
        let revoked = if reply == Value::Int(1) { Revoked::Revoked } else { Revoked::NotHeld };
        (at, Say::Revoke(revoked))
    }

    pub(crate) fn foreign_set(&mut self, name: &LockName, value: u64, life: Duration) -> (Moment, bool) {
        let arguments = [value.to_string(), life.as_millis().to_string()];
        let (at, reply) = self.script(FOREIGN_SET, &[name.to_string()], &arguments);
        (at, reply == Value::Int(1))
    }

    pub(crate) fn foreign_delete(&mut self, name: &LockName, value: u64) -> (Moment, bool) {
        let (at, reply) = self.script(FOREIGN_DELETE, &[name.to_string()], &[value.to_string()]);
        (at, reply == Value::Int(1))
    }

    /// All messages since this was last called.
    fn told(&mut self) -> Vec<(Inbox, StoreEvent)> {
        let Some(inbox) = self.listened_to.first() else { return Vec::new() };
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(address(*inbox)).arg(NO_MORE).exec(&mut self.connection).unwrap();
        let mut told = Vec::new();
        loop {
            let message = self.inboxes.get_message().unwrap();
            let payload: String = message.get_payload().unwrap();
            if payload == NO_MORE {
                return told;
            }
            if message.get_channel_name() == ALL {
                told.extend(self.listened_to.iter().map(|inbox| (*inbox, revoked(&payload))));
                continue;
            }
            let inbox = self.listened_to.iter().find(|inbox| address(**inbox) == message.get_channel_name()).unwrap();
            told.push((*inbox, handed_over(&payload)));
        }
    }

    /// Runs a script, and returns the server's clock at its beginning.
    fn script(&mut self, text: &str, keys: &[String], arguments: &[String]) -> (Moment, Value) {
        // An error in the middle of an array would be taken for one of the whole command.
        let timed = format!(
            "local time = redis.call('TIME')\nlocal function script()\n{text}\nend\nlocal said = script()\n\
             if type(said) == 'table' and said.err then said = {{'refused', said.err}} end\n\
             return {{time[1], time[2], said}}"
        );
        let mut command = redis::cmd("EVAL");
        command.arg(timed).arg(keys.len()).arg(keys).arg(arguments);
        let reply: Value = command.query(&mut self.connection).unwrap();
        let Value::Array(parts) = reply else { panic!("{reply:?}") };
        let mut parts = parts.into_iter();
        let mut number = || redis::from_redis_value::<u64>(parts.next().unwrap()).unwrap();
        let (seconds, micros) = (number(), number());
        // A `nil` at the end is missing altogether.
        (Moment::from_nanos(seconds * 1_000_000_000 + micros * 1000), parts.next().unwrap_or(Value::Nil))
    }
}

fn acquired(claim: &Claim, reply: &Value) -> Result<Answer, Refused> {
    let granted = |low: i64, high: i64| {
        let lease = claim.lease(range(low, high));
        Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted: false })
    };
    if let Value::Int(low) = reply {
        return granted(*low, low + i64::try_from(claim.width.get()).unwrap() - 1);
    }
    let Value::Array(parts) = reply else { panic!("{reply:?}") };
    match parts.as_slice() {
        [word, Value::Int(low), Value::Int(high)] if is(word, "granted") => granted(*low, *high),
        [word, value, Value::Int(left)] if is(word, "held") => {
            Ok(Answer::Busy { remaining: Some(millis(*left)), holder: holder(value), drawn: None })
        }
        [word, value, Value::Int(left), Value::Int(position), Value::Int(place), Value::Int(unheard)]
            if is(word, "queued") =>
        {
            // As the backend says it.
            let valid_for = millis(if *unheard == 1 { (*place).min(300.max(30 * *position)) } else { *place });
            let (remaining, position) = (Some(millis(*left)), u32::try_from(*position).unwrap());
            Ok(Answer::Queued { position, remaining, valid_for, holder: holder(value), drawn: None })
        }
        [word, Value::BulkString(why)] if is(word, "refused") && why.starts_with(b"GIVENUP ") => Err(Refused::GivenUp),
        [word, Value::Int(_)] if is(word, "dwells") => Err(Refused::Dwells),
        other => panic!("{other:?}"),
    }
}

fn is(value: &Value, word: &str) -> bool {
    *value == Value::BulkString(word.into())
}

fn holder(value: &Value) -> Holder {
    let text: String = redis::from_redis_value(value.clone()).unwrap();
    parsed(&text).map_or(Holder::Foreign, |(_, tokens, note)| Holder::Leasehold { tokens, note })
}

/// What `lh1:<owner>:<low>:<high>:<note>` says.
fn parsed(value: &str) -> Option<(Owner, TokenRange, Note)> {
    let mut parts = value.splitn(5, ':');
    if parts.next() != Some("lh1") {
        return None;
    }
    let owner = parts.next()?.parse().ok()?;
    let (low, high) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((owner, range(low, high), Stamped::from_wire(parts.next()?).note))
}

/// What `revoked <key>` says.
fn revoked(message: &str) -> StoreEvent {
    let key = message.strip_prefix("revoked ").unwrap_or_else(|| panic!("{message}"));
    StoreEvent::Revoked { name: key.parse().unwrap() }
}

/// What `granted <owner> <low>:<high> <ttl> <place> <key>` says.
fn handed_over(message: &str) -> StoreEvent {
    let [word, owner, tokens, ttl, place, key] = message.splitn(6, ' ').collect::<Vec<_>>()[..] else {
        panic!("{message}")
    };
    assert_eq!(word, "granted");
    let (low, high) = tokens.split_once(':').unwrap();
    let number = |text: &str| millis(text.parse().unwrap());
    let (owner, tokens) = (owner.parse().unwrap(), range(low.parse().unwrap(), high.parse().unwrap()));
    let terms = Terms::exclusive(Ttl::new(number(ttl)).unwrap());
    let lease = Lease { name: key.parse().unwrap(), owner, tokens, terms, slots: Slots::NONE };
    StoreEvent::Granted { lease, valid_for: number(place), wanted: false }
}

fn range(low: i64, high: i64) -> TokenRange {
    TokenRange::new(low.try_into().unwrap(), high.try_into().unwrap()).unwrap()
}

fn millis(number: i64) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap())
}

fn keys(name: &LockName) -> (String, String, String) {
    (name.to_string(), format!("leasehold:{{{name}}}:q"), format!("leasehold:{{{name}}}:w"))
}

fn mine(owner: Owner) -> String {
    format!("lh1:{}:", owner.to_wire())
}

fn of_lease(lease: &Lease) -> String {
    format!("{}{}:{}:", mine(lease.owner), lease.tokens.low(), lease.tokens.high())
}

fn address(inbox: Inbox) -> String {
    format!("leasehold:inbox:{:032x}", inbox.0)
}
