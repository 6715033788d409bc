//! Many clients that do all kinds of things at once: nobody is a victim of a deadlock, nothing is lost, and the tables agree with each other.

use std::thread;
use std::time::{Duration, Instant};

use lock_core::{Answer, BackendError, Claim, Lease, Limit, Mode, ReleaseRequest, Width, limit};

use crate::support::{
    Client, Place, SHORT, SOON, Session, claim, code, end, lasting, low, meanwhile, operator, permits, release_of,
};

const CLIENTS: usize = 8;
const TIME: Duration = Duration::from_secs(6);
const NAMES: [&str; 3] = ["a", "b", "c"];

/// One of the clients.
struct Rider {
    client: Client,
    user: Session,
    leases: Vec<(Claim, Lease)>,
    /// What went wrong.
    errors: Vec<String>,
    /// How often was it counted under an exclusive lease.
    counted: i64,
}

impl Rider {
    fn new(place: &Place, i: usize) -> Self {
        let user = place.session();
        let level = ["READ COMMITTED", "REPEATABLE READ"][i % 2];
        user.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).unwrap();
        Self { client: place.client(), user, leases: Vec::new(), errors: Vec::new(), counted: 0 }
    }

    /// Notes an error, unless it says that a transaction is in the way.
    fn note<T>(&mut self, answer: Result<T, BackendError>) -> Option<T> {
        let error = match answer {
            Ok(answer) => return Some(answer),
            Err(error) => error.to_string(),
        };
        if !error.contains("is still open") && !error.contains("in time") {
            self.errors.push(error);
        }
        None
    }

    fn acquire(&mut self) {
        let name = NAMES[fastrand::usize(..NAMES.len())];
        let claim = match fastrand::u8(..4) {
            0 => claim(name).in_mode(Mode::Shared),
            1 => permits("gpu", fastrand::u32(1..3), 4),
            _ => Claim { width: Width::for_waiters(2), ..claim(name) },
        };
        let queueing = if fastrand::bool() { lock_core::Queueing::Wanted } else { lock_core::Queueing::Unwanted };
        let claim = lasting(Duration::from_millis(fastrand::u64(100..600)), Claim { queueing, ..claim });
        self.wait(claim);
    }

    /// Asks for a while, and then leaves the queue.
    fn wait(&mut self, claim: Claim) {
        for _ in 0..20 {
            let answer = self.client.acquire(&claim, SHORT);
            match self.note(answer) {
                Some(Answer::Granted { lease, .. }) => return self.leases.push((claim, lease)),
                Some(Answer::Busy { .. }) => return,
                _ => thread::sleep(Duration::from_millis(10)),
            }
        }
        self.release_one(&claim);
    }

    fn release_one(&mut self, claim: &Claim) {
        let is_kept = claim.terms.mode == Mode::Exclusive && fastrand::u8(..8) == 0;
        let keep = is_kept.then_some(Duration::from_millis(100));
        let request = ReleaseRequest { keep, ..release_of(claim) };
        let answer = self.client.release(&request, SHORT);
        self.note(answer);
    }

    fn release(&mut self) {
        if let Some((claim, _)) = self.leases.pop() {
            self.release_one(&claim);
        }
    }

    fn renew(&mut self) {
        let leases: Vec<Lease> = self.leases.iter().map(|(_, lease)| lease.clone()).collect();
        let answer = self.client.renew(&leases, SHORT);
        self.note(answer);
        self.leases.truncate(4);
    }

    /// Counts in a fenced transaction.
    fn count(&mut self) {
        let Some((claim, lease)) = self.leases.last() else { return };
        let (name, is_alone) = (claim.name.as_str(), claim.terms.mode == Mode::Exclusive);
        match self.user.begin(name, low(lease)) {
            Ok(()) if is_alone => {
                let number: i64 = self.user.value(&format!("SELECT number FROM counter WHERE name = '{name}'"));
                thread::sleep(Duration::from_millis(fastrand::u64(..100)));
                let write = format!("UPDATE counter SET number = {number} + 1 WHERE name = '{name}'");
                self.user.run(&format!("{write}; COMMIT")).unwrap();
                self.counted += 1;
            }
            Ok(()) => {
                thread::sleep(Duration::from_millis(fastrand::u64(..100)));
                self.user.run("ROLLBACK").unwrap();
            }
            Err(error) => {
                let told = code(Err::<(), _>(error));
                if !["LH001", "LH002"].contains(&told.as_str()) {
                    self.errors.push(format!("a fence: {told}"));
                }
            }
        }
    }

    fn meddle(&mut self) {
        let act = limit::Act::Set(Limit::new(fastrand::u32(3..6)).unwrap());
        let request = limit::Request { name: "gpu".parse().unwrap(), known: Limit::new(4).unwrap(), act };
        let answer = self.client.limit(&request, SHORT);
        self.note(answer);
        if let Some((_, lease)) = self.leases.pop() {
            let answer = self.client.revoke(&lease.name, lease.tokens.high(), &operator(), SHORT);
            self.note(answer);
        }
        let answer = self.client.list(&lock_core::inspect::Query::all(), SOON);
        self.note(answer);
    }

    fn ride(mut self) -> (i64, Vec<String>) {
        let until = Instant::now() + TIME;
        while Instant::now() < until {
            match fastrand::u8(..16) {
                0..6 => self.acquire(),
                6..9 => self.release(),
                9..12 => self.renew(),
                12..15 => self.count(),
                _ => self.meddle(),
            }
        }
        (self.counted, self.errors)
    }
}

/// What must not be in the tables, and how to count it.
const WRONG: [(&str, &str); 5] = [
    (
        "a hold without an identity",
        "leasehold_hold h LEFT JOIN leasehold_identity i ON i.name = h.name AND i.low = h.low WHERE NOT h.kept AND i.owner IS NULL",
    ),
    (
        "an identity without a hold",
        "leasehold_identity i LEFT JOIN leasehold_hold h ON h.name = i.name AND h.owner = i.owner WHERE h.owner IS NULL OR h.kept",
    ),
    (
        "a wrong count of permits",
        "leasehold_lock l WHERE l.permits <> (SELECT COALESCE(SUM(h.count), 0) FROM leasehold_hold h WHERE h.name = l.name)",
    ),
    (
        "a token above the last one",
        "leasehold_lock l JOIN leasehold_hold h ON h.name = l.name WHERE h.high > l.last_token AND NOT h.kept",
    ),
    (
        "a slot that is free and taken",
        "leasehold_hold h JOIN leasehold_free_slot f ON f.name = h.name WHERE JSON_CONTAINS(h.slots, CAST(f.slot AS CHAR))",
    ),
];

#[test]
fn many_clients_at_once_disturb_nobody_and_lose_nothing() {
    let place = Place::new();
    let session = place.session();
    session.run("CREATE TABLE counter (name VARCHAR(9) PRIMARY KEY, number BIGINT)").unwrap();
    session.run("INSERT INTO counter VALUES ('a', 0), ('b', 0), ('c', 0)").unwrap();
    let riders: Vec<_> = (0..CLIENTS).map(|i| Rider::new(&place, i)).map(|rider| meanwhile(|| rider.ride())).collect();
    let (counted, errors): (Vec<i64>, Vec<Vec<String>>) = riders.into_iter().map(end).unzip();
    assert_eq!(errors.concat(), Vec::<String>::new());
    let counted: i64 = counted.iter().sum();
    assert!(counted > 0);
    assert_eq!(session.value::<i64>("SELECT CAST(SUM(number) AS SIGNED) FROM counter"), counted);
    for (what, rows) in WRONG {
        assert_eq!(session.value::<i64>(&format!("SELECT COUNT(*) FROM {rows}")), 0, "{what}");
    }
}
