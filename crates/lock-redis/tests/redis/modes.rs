//! Leases that share a name: readers, permits, and what an exclusive lease has to do with them.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use lock_core::inspect::{Query, Revoked};
use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, Effect, ErrorKind, EventSink, Fenced, FencingToken,
    Holder, Lease, LockName, Mode, Owner, Queueing, Released, Renewed, StoreEvent, Terms, TokenRange, Ttl, Width,
};
use lock_redis::RedisConfig;
use test_support::{RedisOptions, RedisServer, RedisVersion};

use crate::support::{Client, SOON, both, claim, eventually, granted, is_busy, operator, release_of};

/// A ttl after which a test does not want to wait long.
const SHORT: Duration = Duration::from_secs(2);
/// How long something may take that must happen.
const PATIENCE: Duration = Duration::from_secs(20);

fn permits(count: u32, limit: u32) -> Mode {
    Mode::permits(count, limit).unwrap()
}

fn asks(name: &str, mode: Mode) -> Claim {
    let width = Width::for_waiters(usize::try_from(mode.count()).unwrap());
    Claim { terms: Terms { mode, ttl: Ttl::DEFAULT }, width, ..claim(name) }
}

fn brief(claim: Claim) -> Claim {
    Claim { terms: Terms { ttl: Ttl::new(SHORT).unwrap(), ..claim.terms }, ..claim }
}

fn waits(claim: &Claim) -> Claim {
    Claim { queueing: Queueing::Wanted, ..claim.clone() }
}

#[track_caller]
fn take(client: &Client, claim: &Claim) -> Lease {
    granted(client.acquire(claim, SOON))
}

#[track_caller]
fn queue(client: &Client, claim: Claim, expected: u32) -> Claim {
    let claim = waits(&claim);
    match client.acquire(&claim, SOON) {
        Ok(Answer::Queued { position, .. }) if position == expected => claim,
        other => panic!("not queued at {expected}: {other:?}"),
    }
}

#[track_caller]
fn give_back(client: &Client, claim: &Claim) {
    assert_eq!(client.release(&release_of(claim, Certainty::Answered), SOON), Ok(Released::Released));
}

#[track_caller]
fn refused(answer: Result<Answer, BackendError>, kind: ErrorKind, text: &str) {
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

/// Everything that is stored, but for counters.
fn everything(server: &RedisServer) -> Vec<(String, Vec<u8>)> {
    let dumps = server.keys().into_iter().map(|key| (key.clone(), server.command::<Vec<u8>>(&["DUMP", &key])));
    // What expires meanwhile is nothing.
    dumps.filter(|(_, dump)| !dump.is_empty()).collect()
}

/// `SET NX`, as other libraries acquire.
fn others_get(server: &RedisServer, name: &str) -> bool {
    server.command::<Option<String>>(&["SET", name, "theirs", "NX", "PX", "1"]).is_some()
}

#[test]
fn readers_share_and_a_writer_goes_before_later_readers() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let [first, second, third] = [(); 3].map(|()| asks(facade, Mode::Shared));
        let leases = [take(&client, &first), take(&client, &second)];
        assert!(leases[1].tokens.low() > leases[0].tokens.high(), "{facade}");
        assert!(!others_get(&server, facade), "{facade}: a plain client");
        let writer = queue(&client, claim(facade), 1);
        is_busy(client.acquire(&third, SOON));
        let third = queue(&client, third, 2);
        give_back(&client, &first);
        queue(&client, writer.clone(), 1);
        give_back(&client, &second);
        let written = take(&client, &writer);
        queue(&client, third.clone(), 1);
        give_back(&client, &writer);
        let read = take(&client, &third);
        assert!(read.tokens.low() > written.tokens.high(), "{facade}");
        give_back(&client, &third);
        assert!(others_get(&server, facade), "{facade}: it is free");
    }
}

#[test]
fn each_reader_ends_alone_and_the_key_with_the_last() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (dying, living) = (brief(asks(facade, Mode::Shared)), asks(facade, Mode::Shared));
        let (dead, lease) = (take(&client, &dying), take(&client, &living));
        let renewed = client.renew(std::slice::from_ref(&lease), SOON).unwrap();
        assert!(matches!(renewed[..], [Renewed::Renewed { wanted: false, .. }]), "{renewed:?}");
        thread::sleep(SHORT);
        let both_leases = [dead.clone(), lease.clone()];
        let renewed = client.renew(&both_leases, SOON).unwrap();
        assert!(matches!(renewed[..], [Renewed::NotHeld, Renewed::Renewed { .. }]), "{facade}: {renewed:?}");
        assert_eq!(
            (client.fence(&dead, SOON), client.fence(&lease, SOON)),
            (Ok(Fenced::NotHeld), Ok(Fenced::Acknowledged))
        );
        let writer = queue(&client, claim(facade), 1);
        assert_eq!(client.release(&release_of(&dying, Certainty::Answered), SOON), Ok(Released::NotHeld));
        let renewed = client.renew(std::slice::from_ref(&lease), SOON).unwrap();
        assert!(matches!(renewed[..], [Renewed::Renewed { wanted: true, .. }]), "{facade}: {renewed:?}");
        give_back(&client, &living);
        let lease = take(&client, &writer);
        assert_eq!(client.fence(&both_leases[1], SOON), Ok(Fenced::Higher(lease.tokens.low())), "{facade}");
        give_back(&client, &writer);
        // The longest lease goes first: the key ends with the other one.
        let (short, long) = (brief(asks(facade, Mode::Shared)), asks(facade, Mode::Shared));
        [&long, &short].into_iter().for_each(|claim| _ = take(&client, claim));
        give_back(&client, &long);
        let left: i64 = server.command(&["PTTL", facade]);
        assert!((1..=2000).contains(&left), "{facade}: {left}");
        eventually("it is free", || others_get(&server, facade));
    }
}

#[test]
fn batches_of_renewals_mix_modes_and_revive_nothing() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let name = |part: &str| format!("{facade}:{part}");
        let modes = [("w", Mode::Exclusive), ("r", Mode::Shared), ("p", permits(3, 4))];
        let claims = modes.map(|(part, mode)| brief(asks(&name(part), mode)));
        let leases = claims.each_ref().map(|claim| take(&client, claim));
        let renewed = client.renew(&leases, SOON).unwrap();
        assert!(renewed.iter().all(|renewed| matches!(renewed, Renewed::Renewed { wanted: false, .. })), "{renewed:?}");
        let others = leases.clone().map(|lease| Lease { owner: lock_host::new_owner().unwrap(), ..lease });
        assert_eq!(client.renew(&others, SOON).unwrap(), vec![Renewed::NotHeld; 3], "{facade}");
        let later = leases.clone().map(|lease| {
            let tokens = TokenRange::above(lease.tokens.high().get(), Width::ONE).unwrap();
            Lease { tokens, ..lease }
        });
        assert_eq!(client.renew(&later, SOON).unwrap(), vec![Renewed::NotHeld; 3], "{facade}");
        thread::sleep(SHORT + SHORT / 4);
        let before = everything(&server);
        assert_eq!(client.renew(&leases, SOON).unwrap(), vec![Renewed::NotHeld; 3], "{facade}");
        assert_eq!(everything(&server), before);
        // A lock that was taken away by hand is lost, although its holders are still written down.
        let claim = asks(&name("r"), Mode::Shared);
        let lease = take(&client, &claim);
        server.command::<()>(&["DEL", &name("r")]);
        assert_eq!(client.renew(&[lease], SOON).unwrap(), [Renewed::NotHeld], "{facade}");
        take(&client, &asks(&name("r"), Mode::Exclusive));
    }
}

#[test]
fn slots_are_the_lowest_that_are_free() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let asked = [2, 1, 2].map(|count| asks(facade, permits(count, 6)));
        let leases = asked.each_ref().map(|claim| take(&client, claim));
        assert_eq!(leases.each_ref().map(|lease| lease.slots.get().to_vec()), [vec![0, 1], vec![2], vec![3, 4]]);
        assert_eq!(leases[2].tokens.width(), Width::for_waiters(2));
        // Asking again gives the same.
        assert_eq!(take(&client, &asked[2]), leases[2]);
        is_busy(client.acquire(&asks(facade, permits(2, 6)), SOON));
        let large = queue(&client, asks(facade, permits(3, 6)), 1);
        let small = queue(&client, asks(facade, permits(1, 6)), 2);
        give_back(&client, &asked[0]);
        assert_eq!(take(&client, &large).slots.get(), [0, 1, 5], "{facade}");
        queue(&client, small.clone(), 1);
        give_back(&client, &asked[1]);
        assert_eq!(take(&client, &small).slots.get(), [2], "{facade}");
        [&asked[2], &large, &small].into_iter().for_each(|claim| give_back(&client, claim));
        assert_eq!(
            take(&client, &asks(facade, permits(1, 2))).slots.get(),
            [0],
            "{facade}: another limit, as nobody holds"
        );
    }
}

#[test]
fn what_ended_is_free_again_at_its_end() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        // Long enough for all requests of a busy machine.
        let (all, ttl) = (150, Ttl::new(SHORT * 3).unwrap());
        let ending = || Claim { terms: Terms { ttl, mode: permits(1, all) }, ..claim(facade) };
        let lasting = take(&client, &asks(facade, permits(1, all)));
        (1..all).for_each(|_| _ = take(&client, &ending()));
        is_busy(client.acquire(&asks(facade, permits(1, all)), SOON));
        thread::sleep(ttl.get());
        let leases = [64, 64, 21].map(|count| take(&client, &asks(facade, permits(count, all))));
        let slots: BTreeSet<u32> = leases.iter().flat_map(|lease| lease.slots.get()).copied().collect();
        assert_eq!(slots, (1..all).collect(), "{facade}");
        assert_eq!(lasting.slots.get(), [0]);
        is_busy(client.acquire(&asks(facade, permits(1, all)), SOON));
    }
}

#[test]
fn a_visit_serves_32_and_the_next_one_is_told_to_ask() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (told, grants) = mpsc::channel();
        client.listen(EventSink::new(move |event| _ = told.send(event)));
        let writer = claim(facade);
        take(&client, &writer);
        let readers: Vec<_> = (1..=40).map(|position| queue(&client, asks(facade, Mode::Shared), position)).collect();
        let pushed = !matches!(grants.try_recv(), Err(mpsc::TryRecvError::Disconnected)) && facade == "async";
        give_back(&client, &writer);
        let count = || server.command::<usize>(&["ZCARD", &format!("leasehold:{{{facade}}}:h")]);
        assert_eq!(count(), 32, "{facade}");
        if pushed {
            let mut heard = Vec::new();
            while heard.len() < 33 {
                let event = grants.recv_timeout(PATIENCE).unwrap();
                if let StoreEvent::Granted { lease, wanted, .. } = event {
                    assert!(wanted && lease.terms.mode == Mode::Shared, "{lease:?}");
                    heard.push(Some(lease.owner));
                } else if event == (StoreEvent::Freed { name: facade.parse().unwrap() }) {
                    heard.push(None);
                }
            }
            let expected: Vec<Option<Owner>> =
                readers[..32].iter().map(|reader| Some(reader.owner)).chain([None]).collect();
            assert_eq!(heard, expected);
        }
        take(&client, &readers[32]);
        assert_eq!(count(), 40, "{facade}");
        readers.iter().for_each(|reader| _ = take(&client, reader));
        readers.iter().for_each(|reader| give_back(&client, reader));
    }
}

#[test]
fn a_waiter_that_leaves_lets_those_behind_it_go_on() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let reader = asks(facade, Mode::Shared);
        take(&client, &reader);
        let writer = queue(&client, claim(facade), 1);
        let second = queue(&client, asks(facade, Mode::Shared), 2);
        assert_eq!(client.release(&release_of(&writer, Certainty::Unknown), SOON), Ok(Released::Left));
        let count = || server.command::<usize>(&["ZCARD", &format!("leasehold:{{{facade}}}:h")]);
        assert_eq!(count(), 2, "{facade}");
        // A claim that no longer waits lets them go on, too.
        let writer = queue(&client, claim(facade), 1);
        let third = queue(&client, asks(facade, Mode::Shared), 2);
        is_busy(client.acquire(&Claim { queueing: Queueing::Unwanted, ..writer.clone() }, SOON));
        assert_eq!(count(), 3, "{facade}");
        [&reader, &second, &third].into_iter().for_each(|reader| give_back(&client, reader));
        // An owner has one lease.
        let reader = asks(facade, Mode::Shared);
        take(&client, &reader);
        let written = Claim { owner: reader.owner, ..claim(facade) };
        refused(client.acquire(&written, SOON), ErrorKind::Protocol, "this owner holds the lock in another mode");
        give_back(&client, &reader);
    }
}

#[test]
fn a_name_is_in_use_as_one_kind_and_says_so() {
    let modes = [Mode::Exclusive, Mode::Shared, permits(1, 3), permits(1, 4)];
    for used in modes {
        for which in 0..2 {
            // A server for each, because what earlier ones left there would expire meanwhile.
            let server = RedisServer::start();
            let (facade, client) = both(&server.url()).into_iter().nth(which).unwrap();
            let name = format!("{facade}:{used:?}");
            let holder = asks(&name, used);
            take(&client, &holder);
            let others = || modes.into_iter().filter(|asked| !used.suits(*asked));
            let check = |queueing| {
                for asked in others() {
                    let before = everything(&server);
                    let claim = Claim { queueing, ..asks(&name, asked) };
                    refused(client.acquire(&claim, SOON), ErrorKind::OtherKind, "the name is in use as a ");
                    assert_eq!(everything(&server), before, "{name}");
                }
            };
            check(Queueing::Wanted);
            check(Queueing::Unwanted);
            // Somebody waits and nobody holds.
            let waiter = asks(&name, if used == permits(1, 3) { permits(3, 3) } else { Mode::Exclusive });
            if used.suits(waiter.terms.mode) {
                give_back(&client, &holder);
                take(&client, &brief(asks(&name, used)));
                queue(&client, waiter.clone(), 1);
                eventually("nobody holds", || server.command::<usize>(&["EXISTS", &name]) == 0);
                check(Queueing::Wanted);
                check(Queueing::Unwanted);
                take(&client, &waiter);
            }
        }
    }
}

#[test]
fn one_lease_takes_the_place_of_another() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let replacing = |old: &Claim, mode| Claim { replaces: Some(old.owner), ..asks(facade, mode) };
        let writer = claim(facade);
        let written = take(&client, &writer);
        let waiting = queue(&client, asks(facade, Mode::Shared), 1);
        let next = queue(&client, claim(facade), 2);
        let reader = replacing(&writer, Mode::Shared);
        let read = take(&client, &reader);
        assert!(read.tokens.low() > written.tokens.high(), "{facade}");
        assert_eq!(take(&client, &reader), read, "{facade}: asked again");
        assert_eq!(client.fence(&written, SOON), Ok(Fenced::NotHeld));
        refused(client.acquire(&writer, SOON), ErrorKind::Protocol, "this claim was given up");
        // The reader behind it reads, and the writer waits.
        take(&client, &waiting);
        let upgrade = replacing(&reader, Mode::Exclusive);
        let before = everything(&server);
        match client.acquire(&upgrade, SOON) {
            Ok(Answer::Busy { holder: Holder::Leasehold { .. }, remaining: Some(_), .. }) => {}
            other => panic!("{facade}: {other:?}"),
        }
        assert_eq!(everything(&server), before, "{facade}");
        give_back(&client, &waiting);
        let written = take(&client, &upgrade);
        assert_eq!(take(&client, &upgrade), written, "{facade}: asked again");
        assert_eq!(client.renew(&[read], SOON).unwrap(), [Renewed::NotHeld]);
        refused(client.acquire(&replacing(&reader, Mode::Shared), SOON), ErrorKind::NotHeld, "to replace is not held");
        let longer = replacing(&upgrade, Mode::Exclusive);
        take(&client, &longer);
        give_back(&client, &longer);
        take(&client, &next);
        give_back(&client, &next);
    }
}

#[test]
fn permits_are_given_back_in_part() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let replacing = |old: &Claim, mode| Claim { replaces: Some(old.owner), ..asks(facade, mode) };
        let all = asks(facade, permits(4, 5));
        let lease = take(&client, &all);
        let waiter = queue(&client, asks(facade, permits(3, 5)), 1);
        refused(client.acquire(&replacing(&all, permits(5, 5)), SOON), ErrorKind::Protocol, "cannot be replaced");
        refused(
            client.acquire(&replacing(&all, Mode::Shared), SOON),
            ErrorKind::OtherKind,
            "semaphore of limit 5, not",
        );
        let fewer = replacing(&all, permits(2, 5));
        let rest = take(&client, &fewer);
        assert_eq!(rest.slots.get(), [0, 1], "{facade}");
        assert!(rest.tokens.low() > lease.tokens.high(), "{facade}");
        assert_eq!(take(&client, &waiter).slots.get(), [2, 3, 4], "{facade}");
        assert_eq!(client.release(&release_of(&all, Certainty::Answered), SOON), Ok(Released::NotHeld));
        [&fewer, &waiter].into_iter().for_each(|claim| give_back(&client, claim));
        assert_eq!(server.command::<usize>(&["EXISTS", facade]), 0);
    }
}

#[test]
fn one_of_many_is_revoked_by_its_token() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let name: LockName = facade.parse().unwrap();
        let inspect = lock_redis::blocking::Redis::connect(&RedisConfig::from_url(&server.url()).unwrap()).unwrap();
        let inspect: &dyn BlockingBackend = &inspect;
        let [first, second] = [(); 2].map(|()| asks(facade, permits(2, 5)));
        let lease = take(&client, &first);
        thread::sleep(Duration::from_millis(5));
        let leases = [lease, take(&client, &second)];
        let waiter = queue(&client, asks(facade, permits(3, 5)), 1);
        let entry = inspect.holder(&name, SOON).unwrap().unwrap();
        assert_eq!((entry.leases, entry.waiters, entry.queue[0].mode), (2, 1, permits(3, 5)), "{facade}");
        for (held, lease) in entry.holders.iter().zip([&leases[1], &leases[0]]) {
            assert_eq!((held.mode, &held.slots), (permits(2, 5), &lease.slots), "{facade}");
            assert!(matches!(held.holder, Holder::Leasehold { tokens, .. } if tokens == lease.tokens), "{held:?}");
            assert!(held.remaining.is_some_and(|left| left <= Ttl::DEFAULT.get()), "{held:?}");
        }
        assert_eq!((entry.holder, entry.holders.len()), (entry.holders[0].holder.clone(), 2));
        assert_eq!(inspect.list(&Query::all(), SOON).unwrap().entries.len(), 1, "{facade}");
        assert_eq!(inspect.revoke(&name, leases[0].tokens.high(), &operator(), SOON), Ok(Revoked::Revoked));
        assert_eq!(inspect.revoke(&name, leases[0].tokens.high(), &operator(), SOON), Ok(Revoked::NotHeld));
        let renewed = client.renew(&leases, SOON).unwrap();
        assert!(
            matches!(&renewed[..], [Renewed::Revoked { by }, Renewed::Renewed { .. }] if *by == operator()),
            "{facade}: {renewed:?}"
        );
        assert_eq!(take(&client, &waiter).slots.get(), [0, 1, 4], "{facade}");
        assert_eq!(inspect.revoke(&name, FencingToken::new(1).unwrap(), &operator(), SOON), Ok(Revoked::NotHeld));
        [&second, &waiter].into_iter().for_each(|claim| give_back(&client, claim));
    }
}

#[test]
fn a_full_server_grants_nothing_but_renews_and_releases() {
    for version in [RedisVersion::Installed, RedisVersion::Oldest] {
        let server = RedisServer::start_with(RedisOptions::default().version(version));
        for (facade, client) in both(&server.url()) {
            let [first, second, third] = [1, 2, 3].map(|count| asks(facade, permits(count, 5)));
            let leases = [take(&client, &first), take(&client, &second)];
            let waiter = queue(&client, third, 1);
            server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
            let renewed = client.renew(&leases, SOON).unwrap();
            assert!(renewed.iter().all(|renewed| matches!(renewed, Renewed::Renewed { .. })), "{facade}: {renewed:?}");
            assert_eq!(take(&client, &second), leases[1], "{facade}");
            refused(client.acquire(&asks("other", Mode::Shared), SOON), ErrorKind::Unavailable, "OOM");
            give_back(&client, &second);
            server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
            assert_eq!(take(&client, &waiter).slots.get(), [1, 2, 3], "{facade}: it was handed over");
            [&first, &waiter].into_iter().for_each(|claim| give_back(&client, claim));
        }
    }
}

#[test]
fn the_listed_rights_suffice() {
    let server = RedisServer::start();
    let rights = "on >pw ~* &leasehold:inbox:* -@all +@scripting +@pubsub +info +time +get +mget +set +del +exists +incrby \
                  +pexpire +pttl +lpop +rpush +llen +lrange +lset +lrem +hget +hmget +hset +hdel +hlen +hvals +scan +hscan \
                  +pexpireat +unlink +zadd +zcard +zcount +zrange +zrem +zscore";
    server.command::<()>(&[&["ACL", "SETUSER", "minimal"], &rights.split(' ').collect::<Vec<_>>()[..]].concat());
    let url = format!("redis://minimal:pw@127.0.0.1:{}", server.port());
    for (facade, client) in both(&url) {
        for mode in [Mode::Shared, permits(2, 3)] {
            let name = format!("{facade}:{mode:?}");
            let (dying, living) = (brief(asks(&name, permits(1, 3))), asks(&name, mode));
            let dying = if mode == Mode::Shared { brief(asks(&name, mode)) } else { dying };
            take(&client, &dying);
            let lease = take(&client, &living);
            let waiter = queue(&client, asks(&name, if mode == Mode::Shared { Mode::Exclusive } else { mode }), 1);
            thread::sleep(SHORT);
            assert_eq!(client.fence(&lease, SOON), Ok(Fenced::Acknowledged), "{name}");
            assert!(matches!(client.renew(&[lease], SOON).unwrap()[..], [Renewed::Renewed { .. }]), "{name}");
            give_back(&client, &living);
            let waited = take(&client, &waiter);
            let fewer = if mode == Mode::Shared { Mode::Shared } else { permits(1, 3) };
            let next = Claim { replaces: Some(waited.owner), ..asks(&name, fewer) };
            let token = take(&client, &next).tokens.high();
            let inspect = lock_redis::blocking::Redis::connect(&RedisConfig::from_url(&url).unwrap()).unwrap();
            let inspect: &dyn BlockingBackend = &inspect;
            assert!(inspect.holder(&next.name, SOON).unwrap().is_some(), "{name}");
            assert_eq!(inspect.revoke(&next.name, token, &operator(), SOON), Ok(Revoked::Revoked), "{name}");
        }
    }
}

/// The last claim of an owner that was replaced may still arrive, but not for the hour that its lease would have lasted.
#[test]
fn a_replaced_owner_is_refused_for_as_long_as_its_claim_may_be_late() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        for (ttl, most) in [("1h", 10_000), ("2s", 2_000)] {
            let lasting = |claim: Claim| Claim { terms: Terms { ttl: ttl.parse().unwrap(), ..claim.terms }, ..claim };
            let name = format!("{facade} {ttl}");
            let writer = lasting(claim(&name));
            take(&client, &writer);
            let reader = Claim { replaces: Some(writer.owner), ..lasting(asks(&name, Mode::Shared)) };
            take(&client, &reader);
            let left: i64 = server.command(&["PTTL", &format!("leasehold:{{{name}}}:t:{}", writer.owner.to_wire())]);
            assert!((1..=most).contains(&left), "{name}: {left} ms");
            let looked_for: i64 = server.command(&["PTTL", "leasehold:tombstones"]);
            assert!((1..=10_000).contains(&looked_for), "{name}: {looked_for} ms");
            give_back(&client, &reader);
        }
    }
}

/// Its end is noticed at its release, although another reader keeps the lock there.
#[test]
fn a_reader_whose_time_is_over_is_not_told_that_it_held() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (ended, living) = (brief(asks(facade, Mode::Shared)), asks(facade, Mode::Shared));
        take(&client, &ended);
        let lease = take(&client, &living);
        thread::sleep(SHORT);
        let said = client.release(&release_of(&ended, Certainty::Answered), SOON).unwrap();
        assert_eq!(said, Released::NotHeld, "{facade}");
        assert_eq!(client.fence(&lease, SOON), Ok(Fenced::Acknowledged), "{facade}");
        give_back(&client, &living);
    }
}
