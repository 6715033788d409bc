//! The requests about locks: acquire, fence, release.

use std::time::Duration;

use lock_core::node::Told;
use lock_core::{Certainty, Effect, ErrorKind, Fenced, FencingToken, Holder, Released, TokenRange, Ttl, Width};
use lock_redis::by_hand::NodeByHand;

use super::{BOTH, EPOCH, OTHER_EPOCH, Voter, acquire, fence, granted, lease, release, token, tombstone};
use crate::support::{SOON, claim, owner, without_time};

/// In microseconds.
const SECOND: u64 = 1_000_000;

#[test]
fn a_grant_draws_above_the_counter_the_wish_and_the_floor() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let draw = |claim, wish| {
            let (token, clock) = granted(voter.acquire(&claim, wish));
            assert_eq!(voter.counter(), token, "{facade}: F becomes f");
            (token, clock)
        };
        let first = voter.counter();
        let (token, clock) = draw(claim("first"), 1);
        assert_eq!(token, first + 1, "{facade}: above the counter");
        assert!(clock > first && clock <= voter.clock());
        let mut wide = claim("wide");
        (wide.width, wide.owner) = (Width::for_waiters(3), owner(0xab));
        assert_eq!(draw(wide.clone(), token + 1).0, token + 3, "{facade}: a wish that is too low");
        let value = voter.value(wide.name.as_str()).unwrap();
        assert_eq!(without_time(&value), format!("lh1:{}:{}:{}:1@here testing", "ab".repeat(16), token + 1, token + 3));
        assert!((20_000..=30_000).contains(&voter.left(wide.name.as_str())));

        let wish = voter.clock() + SECOND / 2;
        assert_eq!(draw(claim("third"), wish).0, wish, "{facade}: a wish");
        let (token, clock) = draw(claim("fourth"), voter.clock() + 3600 * SECOND);
        assert_eq!(token, clock + SECOND, "{facade}: a wish far ahead");
        let mut knowing = claim("fifth");
        let floor = voter.clock() + 60 * SECOND;
        (knowing.width, knowing.floor) = (Width::for_waiters(3), FencingToken::new(floor).ok());
        assert_eq!(draw(knowing, voter.clock()).0, floor + 3, "{facade}: a floor");
        let mut absurd = claim("sixth");
        absurd.floor = Some(FencingToken::MAX);
        let (token, clock) = draw(absurd, 1);
        assert_eq!(token, clock + 86_400 * SECOND + 1, "{facade}: a floor far ahead");
    }
}

#[test]
fn the_last_token_is_the_last() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        voter.set("fence", FencingToken::MAX.get() - 1);
        assert_eq!(granted(voter.acquire(&claim("job"), 1)).0, FencingToken::MAX.get());
        let error = voter.acquire(&claim("another"), 1).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None), "{facade}: {error}");
        assert!(error.to_string().contains("used up"), "{error}");
        assert_eq!(voter.value("another"), None);
    }
}

#[test]
fn asking_again_gives_the_stored_token_and_rearms_the_ttl() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let mut job = claim("job");
        let token = granted(voter.acquire(&job, 1)).0;
        assert_eq!(voter.view().longest, job.terms.ttl.get());
        voter.server.command::<()>(&["PEXPIRE", "job", "1000"]);
        job.terms.ttl = Ttl::new(Duration::from_secs(90)).unwrap();
        let wish = voter.clock();
        let again = granted(voter.acquire(&job, wish));
        assert_eq!((again.0, voter.counter()), (token, token), "{facade}");
        assert!(again.1 >= wish && voter.left("job") > 60_000);
        assert_eq!(voter.view().longest, job.terms.ttl.get(), "{facade}: the longest ttl in use");
        voter.take("a shorter one");
        assert_eq!(voter.view().longest, job.terms.ttl.get(), "{facade}: it never falls");
    }
}

#[test]
fn a_claim_on_a_held_lock_names_the_holder_and_changes_nothing() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let (_, held) = voter.take("job");
        let counter = voter.counter();
        let told = voter.acquire(&claim("job"), voter.clock()).unwrap();
        let Told::Held { holder: Holder::Leasehold { tokens, note }, remaining: Some(left) } = told else {
            panic!("{facade}: {told:?}")
        };
        assert_eq!((tokens, note.why()), (held.tokens, "testing"));
        assert!(left > Duration::from_secs(20) && left <= Duration::from_secs(30));
        voter.server.command::<()>(&["SET", "report", "c2VjcmV0"]);
        let told = voter.acquire(&claim("report"), 1).unwrap();
        assert_eq!(told, Told::Held { holder: Holder::Foreign, remaining: None }, "{facade}");
        assert_eq!(voter.counter(), counter);
    }
}

#[test]
fn a_key_of_another_type_is_left_alone() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        voter.server.command::<()>(&["HSET", "job", "redisson", "1"]);
        let (counter, job) = (voter.counter(), claim("job"));
        let error = voter.acquire(&job, voter.clock()).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::OtherKind, Effect::None), "{facade}: {error}");
        assert_eq!(voter.counter(), counter, "{facade}: something was written");
        assert_eq!(voter.fence(&[lease(&job, counter)]), [Fenced::NotHeld]);
        assert_eq!(voter.release(&job, Certainty::Unknown), Released::NotHeld);
        assert_eq!(voter.server.command::<String>(&["HGET", "job", "redisson"]), "1");
    }
}

#[test]
fn a_fence_acknowledges_a_grant_that_is_not_above_it_and_stores_its_token() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let mut job = claim("job");
        job.note = lock_core::Note::new("here", 1, "a: note").unwrap();
        let drawn = granted(voter.acquire(&job, 1)).0;
        let mut higher = lease(&job, drawn + 10);
        higher.tokens = TokenRange::new(token(drawn + 8), token(drawn + 10)).unwrap();
        higher.terms.ttl = Ttl::new(Duration::from_secs(90)).unwrap();
        let expected = format!("lh1:{}:{}:{}:1@here a: note", job.owner.to_wire(), drawn + 8, drawn + 10);
        for _ in 0..2 {
            assert_eq!(voter.fence(std::slice::from_ref(&higher)), [Fenced::Acknowledged], "{facade}");
            assert_eq!(without_time(&voter.value("job").unwrap()), expected);
            assert!(voter.left("job") > 60_000);
            assert_eq!((voter.counter(), voter.view().longest), (drawn + 10, Duration::from_secs(90)));
        }
        // The same lease under a lower token, as a late duplicate would bring it.
        let late = voter.fence(&[lease(&job, drawn)]);
        assert_eq!(late, [Fenced::Higher(token(drawn + 10))], "{facade}");
        let value = without_time(&voter.value("job").unwrap());
        assert_eq!((value, voter.counter()), (expected, drawn + 10));
        assert!(voter.left("job") > 60_000, "{facade}: re-armed by what was refused");
        let other = claim("job");
        assert_eq!(voter.fence(&[lease(&other, drawn + 20)]), [Fenced::NotHeld]);
        assert_eq!(voter.counter(), drawn + 20, "{facade}: raised whatever is answered");
        voter.release(&job, Certainty::Answered);
        assert_eq!(voter.fence(std::slice::from_ref(&higher)), [Fenced::NotHeld]);
        assert_eq!(voter.value("job"), None, "{facade}: a fence created something");
        let mut next = claim("job");
        next.width = Width::for_waiters(3);
        let token_of_next = granted(voter.acquire(&next, 1)).0;
        voter.server.command::<()>(&["PEXPIRE", "job", "20000"]);
        let told = voter.fence(&[higher.clone()]);
        assert_eq!(told, [Fenced::Higher(token(token_of_next - 2))], "{facade}: the first of somebody who came after");
        higher.tokens = TokenRange::above(token_of_next, Width::ONE).unwrap();
        assert_eq!(voter.fence(&[higher]), [Fenced::NotHeld], "{facade}");
        assert!(voter.left("job") <= 20_000);
    }
}

#[test]
fn a_fence_under_another_epoch_changes_nothing() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let (job, held) = voter.take("job");
        voter.server.command::<()>(&["PEXPIRE", "job", "20000"]);
        let ahead = lease(&job, held.tokens.high().get() + 10);
        assert_eq!(voter.ask(&fence(&[ahead], OTHER_EPOCH)).unwrap(), Told::Abstains, "{facade}");
        assert_eq!(voter.counter(), held.tokens.high().get());
        assert!(voter.left("job") <= 20_000);
    }
}

#[test]
fn fences_of_many_leases_go_in_parts() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let name = |i: usize| format!("{facade}:{i}");
        let mut leases: Vec<_> = (0..250).map(|i| voter.take(&name(i)).1).collect();
        voter.server.command::<()>(&["DEL", &name(7)]);
        voter.server.command::<()>(&["SET", &name(120), "somebody else"]);
        let stored = leases[249].tokens.high();
        leases[249].tokens = TokenRange::above(stored.get() - 2, Width::ONE).unwrap();
        let answers = voter.fence(&leases);
        for (i, answer) in answers.iter().enumerate() {
            let expected = match i {
                7 | 120 => Fenced::NotHeld,
                249 => Fenced::Higher(stored),
                _ => Fenced::Acknowledged,
            };
            assert_eq!(*answer, expected, "{facade}: {i}");
        }
        assert_eq!(answers.len(), 250);
        assert_eq!(voter.fence(&[]), []);
        assert_eq!(voter.ask(&fence(&leases, OTHER_EPOCH)).unwrap(), Told::Abstains);
    }
}

#[test]
fn a_release_ends_the_owners_hold_and_no_other() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let (first, _) = voter.take("job");
        assert_eq!(voter.release(&claim("job"), Certainty::Unknown), Released::NotHeld);
        assert_eq!(voter.release(&first, Certainty::Answered), Released::Released);
        voter.take("job");
        let stored = voter.value("job");
        // A late duplicate finds another holder.
        assert_eq!(voter.release(&first, Certainty::Answered), Released::NotHeld);
        assert_eq!((voter.value("job"), stored.is_some()), (stored, true), "{facade}");
        assert_eq!(voter.server.command::<u8>(&["EXISTS", &tombstone(&first)]), 0);
    }
}

#[test]
fn an_owner_that_was_given_up_gets_nothing() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        for (ttl, lives) in [(2, 9_000..=10_000), (60, 50_000..=60_000)] {
            let mut given_up = claim("job");
            given_up.terms.ttl = Ttl::new(Duration::from_secs(ttl)).unwrap();
            for _ in 0..2 {
                assert_eq!(voter.release(&given_up, Certainty::Unknown), Released::NotHeld);
                assert!(lives.contains(&voter.left(&tombstone(&given_up))), "{facade}");
            }
            let counter = voter.counter();
            let error = voter.acquire(&given_up, voter.clock()).unwrap_err();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None), "{facade}: {error}");
            assert!(error.to_string().contains("given up"), "{error}");
            assert_eq!((voter.value("job"), voter.counter()), (None, counter), "{facade}");
            let (next, _) = voter.take("job");
            assert!(matches!(voter.acquire(&given_up, 1), Ok(Told::Held { .. })), "{facade}");
            voter.release(&next, Certainty::Answered);
        }
    }
}

#[test]
fn prefixes_share_the_node() {
    for (_, connect) in BOTH {
        let voter = Voter::start(connect);
        let shop = connect(&format!("{}?prefix=shop", voter.server.url()));
        let (bare, ours) = (claim("job"), claim("job"));
        let first = granted(voter.acquire(&bare, 1)).0;
        assert_eq!(granted(shop.ask(&acquire(&ours, 1, EPOCH), SOON)).0, first + 1);
        assert!(voter.value("shop:job").is_some_and(|value| value.contains(&ours.owner.to_wire())));
        let released = shop.ask(&release(&ours, Certainty::Answered), SOON).unwrap();
        assert_eq!((released, voter.value("shop:job")), (Told::Released(Released::Released), None));
    }
}
#[test]
fn requests_built_by_hand_equal_those_of_a_node() {
    let voter = Voter::start(super::on_threads);
    let client = redis::Client::open(voter.server.url()).unwrap();
    let (mut connection, hand) = (client.get_connection().unwrap(), NodeByHand::new(&client, &voter.view().run.0));
    NodeByHand::load().exec(&mut connection).unwrap();
    let (job, wish) = (claim("job"), voter.clock() + SECOND / 2);
    let clock: u64 = hand.ask(&acquire(&job, wish, EPOCH)).unwrap().query(&mut connection).unwrap();
    assert!(clock > wish - SECOND && voter.counter() == wish);
    let told: Vec<u64> = hand.ask(&fence(&[lease(&job, wish)], EPOCH)).unwrap().query(&mut connection).unwrap();
    assert_eq!(told, [1]);
    let told: u64 = hand.ask(&release(&job, Certainty::Answered)).unwrap().query(&mut connection).unwrap();
    assert_eq!((told, voter.value("job")), (1, None));
}
