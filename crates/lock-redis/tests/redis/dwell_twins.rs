//! The rules of a dwell, each broken in one client: then a lock has two holders, although all others follow the rules.

use std::thread;
use std::time::{Duration, Instant};

use lock_core::{Answer, Certainty, Claim, ReleaseRequest, Released};
use lock_redis::by_hand::texts;
use test_support::{RedisOptions, RedisServer};

use crate::dwell::{DWELL, MAX_TTL, asks, dwelling, end_dwell, queues, takes, valid};
use crate::promotions::info;
use crate::support::{BOTH, Client, SOON, eventually, granted, release_of};

/// The first client that connects after a loss. Its ttls are a second, and the others' are five. To keep the test short, it adds
/// nothing to the longest of them.
struct Verifier {
    what: &'static str,
    /// In the script, and what it has instead.
    rule: (&'static str, &'static str),
    holders: usize,
}

const VERIFIERS: [Verifier; 3] = [
    Verifier { what: "it follows the rules", rule: ("", ""), holders: 1 },
    Verifier { what: "it begins no dwell", rule: ("not is_untouched or ", ""), holders: 2 },
    Verifier { what: "it ignores the stored ttl", rule: ("math.max(stored, max_ttl)", "max_ttl"), holders: 2 },
];

/// How long another client asks for the lock: longer than the verifier's ttl, and not as long as the lease.
const ASKS_FOR: Duration = Duration::from_millis(2500);

impl Verifier {
    fn verify(&self, server: &RedisServer) {
        let (rule, instead) = self.rule;
        assert!(texts().verify.contains(rule), "the script has no {rule:?}");
        let text = texts().verify.replacen(rule, instead, 1);
        let incarnation = format!("{}:{}", info(server, "run_id:"), info(server, "master_replid:"));
        let seen = server.command::<Option<String>>(&["GET", "leasehold:incarnation"]).unwrap_or_default();
        let keys = ["leasehold:counter", "leasehold:incarnation", DWELL, MAX_TTL];
        let values = [incarnation.as_str(), &seen, "promoted", "1000", "0"];
        let (is_another, _): (u8, u64) = server.command(&[&["EVAL", &text, "4"][..], &keys, &values].concat());
        assert_eq!(is_another, 1, "not the first");
    }

    /// How many have the lock after a lease was forgotten.
    fn holders(&self, connect: fn(&str) -> Client) -> usize {
        let mut server = RedisServer::start_with(RedisOptions::default().append_only());
        let (url, holder) = (dwelling(&server), connect(&dwelling(&server)));
        end_dwell(&server);
        let before = server.copy_data();
        takes(&holder, "job");
        drop(holder);
        server.restart_from(&before);
        self.verify(&server);
        holders_with(&connect(&url))
    }
}

/// How many have the lock, which somebody has, after another client has asked for it for some time.
fn holders_with(other: &Client) -> usize {
    let until = Instant::now() + ASKS_FOR;
    loop {
        if matches!(other.acquire(&asks("job"), SOON), Ok(Answer::Granted { .. })) {
            return 2;
        }
        if Instant::now() > until {
            return 1;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_client_that_breaks_a_rule_when_it_verifies_a_server_is_found() {
    thread::scope(|scope| {
        for (verifier, (_, connect)) in VERIFIERS.iter().zip(BOTH.into_iter().cycle()) {
            scope.spawn(move || assert_eq!(verifier.holders(connect), verifier.holders, "{}", verifier.what));
        }
    });
}

/// The first client that claims a lock after a loss under live connections. It names a dwell of a second.
struct Claimer {
    what: &'static str,
    /// In the script, and what it has instead.
    rule: (&'static str, &'static str),
    /// The keys that were lost, besides the lock of the holder.
    loses: &'static [&'static str],
    holders: usize,
}

const FOLLOWS: (&str, &str) = ("", "");
const COUNTER: &str = "leasehold:counter";

const CLAIMERS: [Claimer; 4] = [
    Claimer { what: "it follows the rules", rule: FOLLOWS, loses: &[COUNTER], holders: 1 },
    Claimer {
        what: "it ignores the stored ttl",
        rule: ("math.max(tonumber(lasts or 70000) - 10000, stored)", "lasts - 10000"),
        loses: &[COUNTER],
        holders: 2,
    },
    Claimer { what: "it sets the marker", rule: FOLLOWS, loses: &[COUNTER, "leasehold:incarnation"], holders: 1 },
    Claimer {
        what: "it sets the marker and begins no dwell",
        rule: ("redis.call('PTTL', key) < ttl + 10000", "false"),
        loses: &[COUNTER, "leasehold:incarnation"],
        holders: 2,
    },
];

impl Claimer {
    fn claim(&self, server: &RedisServer) {
        let (rule, instead) = self.rule;
        assert!(texts().acquire.contains(rule), "the script has no {rule:?}");
        let (text, mine) =
            (texts().acquire.replacen(rule, instead, 1), format!("lh1:{}:", asks("other").owner.to_wire()));
        let keys = [COUNTER, "leasehold:no-dwell", "other"];
        let values = ["0", "1000", "leasehold:{", &mine, "1000 1  note"];
        server.command::<u64>(&[&["EVAL", &text, "3"][..], &keys, &values].concat());
    }

    /// How many have the lock after a lease was forgotten.
    fn holders(&self, connect: fn(&str) -> Client) -> usize {
        let server = RedisServer::start();
        let url = dwelling(&server);
        let holder = connect(&url);
        end_dwell(&server);
        takes(&holder, "job");
        server.command::<u64>(&[&["DEL", "job"], self.loses].concat());
        self.claim(&server);
        holders_with(&connect(&url))
    }
}

#[test]
fn a_client_that_breaks_a_rule_when_it_finds_the_counter_missing_is_found() {
    thread::scope(|scope| {
        for (claimer, (_, connect)) in CLAIMERS.iter().zip(BOTH.into_iter().cycle()) {
            scope.spawn(move || assert_eq!(claimer.holders(connect), claimer.holders, "{}", claimer.what));
        }
    });
}

/// How many have the lock after a release was repeated at a server that forgot the first attempt.
fn holders_after(repeated: fn(&Claim) -> ReleaseRequest, connect: fn(&str) -> Client) -> usize {
    let mut server = RedisServer::start_with(RedisOptions::default().append_only());
    let client = connect(&dwelling(&server));
    end_dwell(&server);
    let (held, first, second) = (takes(&client, "job"), queues("job"), queues("job"));
    let before = server.copy_data();
    assert!(matches!(client.acquire(&first, SOON), Ok(Answer::Queued { .. })));
    assert_eq!(client.release(&valid(&held), SOON).unwrap(), Released::Released);
    granted(client.acquire(&first, SOON));
    server.restart_from(&before);
    eventually("the other is in the queue", || matches!(client.acquire(&second, SOON), Ok(Answer::Queued { .. })));
    assert_eq!(client.release(&repeated(&held), SOON).unwrap(), Released::Released);
    1 + usize::from(matches!(client.acquire(&second, SOON), Ok(Answer::Granted { .. })))
}

#[test]
fn a_client_that_hands_over_when_it_repeats_a_release_is_found() {
    for (facade, connect) in BOTH {
        assert_eq!(holders_after(|held| release_of(held, Certainty::Unknown), connect), 1, "{facade}");
        let hands_over = |held: &Claim| ReleaseRequest { certainty: Certainty::Unknown, ..valid(held) };
        assert_eq!(holders_after(hands_over, connect), 2, "{facade}");
    }
}
