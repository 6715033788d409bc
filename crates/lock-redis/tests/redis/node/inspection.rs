//! What operators ask a node.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::inspect::{Query, Revoked};
use lock_core::node::{Ask, Inspection, OwnerDigest, Revocation, Shown, Told};
use lock_core::{BackendError, Certainty, Claim, Effect, ErrorKind, Fenced, Holder, Note, Width};
use lock_redis::RedisConfig;
use lock_redis::node::nonblocking::RedisNode;
use test_support::RedisOptions;
use tokio::runtime::Builder;

use super::{ADDRESS, BOTH, EPOCH, Voter, acquire, ask_together, granted, on_threads, token};
use crate::support::{claim, owner};

const LASTS: Duration = Duration::from_secs(60);

fn by() -> Note {
    Note::from_wire("7@ops stuck")
}

impl Voter {
    #[track_caller]
    fn shown(&self, names: &[&str]) -> Vec<Option<Shown>> {
        let names = names.iter().map(|name| name.parse().unwrap()).collect();
        match self.ask(&Ask::Inspect(Inspection::Show(names))) {
            Ok(Told::Shown(shown)) => shown,
            other => panic!("not shown: {other:?}"),
        }
    }

    fn revoke(&self, name: &str, owners: &[&OwnerDigest]) -> Result<Told, BackendError> {
        let owners = owners.iter().map(|&owner| owner.clone()).collect();
        let revocation = Revocation { name: name.parse().unwrap(), token: token(9), owners, by: by(), lasts: LASTS };
        self.ask(&Ask::Inspect(Inspection::Revoke(revocation.into())))
    }

    fn revoked_by(&self, name: &str, number: u64) -> Option<Note> {
        let lease = (name.parse().unwrap(), token(number));
        match self.ask(&Ask::Inspect(Inspection::RevokedBy([lease].into()))) {
            Ok(Told::RevokedBy(notes)) => notes[0].clone(),
            other => panic!("no notes: {other:?}"),
        }
    }

    /// How others know the owner of a claim.
    fn digest_of(&self, claim: &Claim) -> OwnerDigest {
        let other = Claim { name: "another name".parse().unwrap(), ..claim.clone() };
        granted(self.acquire(&other, 1));
        let digest = self.shown(&["another name"])[0].clone().unwrap().owner;
        self.release(&other, Certainty::Answered);
        digest
    }
}

#[test]
fn locks_are_shown_without_their_owners() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let wide = Claim { owner: owner(0xab), width: Width::for_waiters(3), ..claim("wide") };
        let token = granted(voter.acquire(&wide, 1)).0;
        voter.server.command::<()>(&["SET", "foreign", "sesame", "PX", "5000"]);
        voter.server.command::<()>(&["HSET", "hash", "redisson", "1"]);
        let shown = voter.shown(&["wide", "free", "foreign", "hash"]);
        let [Some(ours), None, Some(foreign), None] = shown.as_slice() else { panic!("{facade}: {shown:?}") };
        let Holder::Leasehold { tokens, note } = &ours.held.holder else { panic!("{facade}: {ours:?}") };
        assert_eq!((tokens.low().get(), tokens.high().get(), note.why()), (token - 2, token, "testing"), "{facade}");
        assert!(ours.held.remaining.unwrap() <= wide.terms.ttl.get() && ours.held.age.is_some(), "{facade}: {ours:?}");
        assert_eq!(foreign.held.holder, Holder::Foreign);
        let said = format!("{shown:?}");
        assert!(!said.contains(&"ab".repeat(8)) && !said.contains("sesame"), "{facade}: {said}");
        assert_eq!(voter.digest_of(&Claim { width: Width::ONE, ..wide }), ours.owner, "{facade}: under any name");
    }
}

/// A long value may be anything, and a script that hashed it would keep the server busy.
#[test]
fn of_a_long_value_of_something_else_only_the_beginning_is_hashed() {
    let voter = Voter::start(on_threads);
    let shown = |value: &str| {
        voter.server.command::<()>(&["SET", "foreign", value]);
        voter.shown(&["foreign"])[0].clone().unwrap().owner
    };
    let long = "ab".repeat(100_000);
    assert_eq!(shown(&format!("{long}c")), shown(&format!("{long}d")));
    assert_eq!(shown(&format!("lh1:{long}:1:1:c")), shown(&format!("lh1:{long}:2:2:d")));
    assert!(shown("sesame") != shown("poppy!") && shown(&long) != shown(&format!("{long}c")));
}

/// An operator who has to repeat a revocation may not be shown the lease any more.
#[test]
fn a_node_names_the_owners_of_a_token_and_those_that_were_revoked_by_it() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let owners =
            |number: u64| match voter.ask(&Ask::Inspect(Inspection::Owners("job".parse().unwrap(), token(number)))) {
                Ok(Told::Owners(owners)) => owners.into_iter().collect::<BTreeSet<_>>(),
                other => panic!("{facade}: {other:?}"),
            };
        let (held, lease) = voter.take("job");
        let (high, digest) = (lease.tokens.high().get(), voter.shown(&["job"])[0].clone().unwrap().owner);
        let another = OwnerDigest("00".repeat(16));
        assert_eq!(
            (owners(high), owners(high + 1), owners(9)),
            ([digest.clone()].into(), [].into(), [].into()),
            "{facade}"
        );
        voter.revoke("job", &[&another, &digest]).unwrap();
        assert_eq!((owners(9), owners(high)), ([another.clone(), digest.clone()].into(), [].into()), "{facade}");
        let error = voter.acquire(&held, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{facade}: one that held is refused as well: {error}");
        assert!((30_000..=60_000).contains(&voter.left("leasehold:{job}:o:9")), "{facade}");
    }
}

#[test]
fn more_locks_than_one_script_shows_are_listed_and_shown() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let names: Vec<_> = (0..230).map(|number| format!("job:{number}")).collect();
        names.iter().for_each(|name| _ = voter.take(name));
        voter.take("other");
        let (mut query, mut listed) = (Query::matching("job:*").limit(50), BTreeSet::new());
        loop {
            let told = voter.ask(&Ask::Inspect(Inspection::List(query.clone()))).unwrap();
            let Told::Listed { names, next } = told else { panic!("{facade}: {told:?}") };
            listed.extend(names.into_iter().map(|name| name.to_string()));
            let Some(next) = next else { break };
            query = query.after(next);
        }
        assert_eq!(listed, names.iter().cloned().collect(), "{facade}");
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let shown = voter.shown(&names);
        assert!(shown.len() == names.len() && shown.iter().all(Option::is_some), "{facade}");
    }
}

#[test]
fn a_revocation_ends_the_lease_of_its_owner_and_is_remembered() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let (_, lease) = voter.take("job");
        let (token, counter) = (lease.tokens.high().get(), voter.counter());
        let digest = voter.shown(&["job"])[0].clone().unwrap().owner;
        let another = OwnerDigest("00".repeat(16));
        assert_eq!(voter.revoke("job", &[&another]).unwrap(), Told::Revoked(Revoked::NotHeld), "{facade}");
        assert_eq!(voter.fence(std::slice::from_ref(&lease)), [Fenced::Acknowledged], "{facade}");
        assert_eq!(voter.revoke("job", &[&another, &digest]).unwrap(), Told::Revoked(Revoked::Revoked), "{facade}");
        assert_eq!(voter.fence(&[lease]), [Fenced::NotHeld], "{facade}");
        assert_eq!(
            (voter.revoked_by("job", token), voter.revoked_by("job", token + 1)),
            (Some(by()), None),
            "{facade}"
        );
        assert!(voter.counter() >= counter, "{facade}");
        let left = voter.left(&format!("leasehold:{{job}}:r:{token}"));
        assert!((30_000..=60_000).contains(&left), "{facade}: {left}");
    }
}

/// Its owner may have a majority of the other nodes, and would be renewed with this one.
#[test]
fn a_claim_of_an_owner_that_was_revoked_is_refused_alone_and_among_others() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let (late, others) = (claim("job"), ["a", "b", "c"].map(claim));
        let digest = voter.digest_of(&late);
        assert_eq!(voter.revoke("job", &[&digest]).unwrap(), Told::Revoked(Revoked::NotHeld), "{facade}");
        let error = voter.acquire(&late, 1).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None), "{facade}: {error}");
        assert!(voter.value("job").is_none(), "{facade}");
        let asks: Vec<_> = others.iter().chain([&late]).map(|claim| acquire(claim, 1, EPOCH)).collect();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let config = RedisConfig::from_url(&voter.server.url()).unwrap();
        let mut told =
            runtime.block_on(async { ask_together(&RedisNode::new(&config, ADDRESS).unwrap(), &asks).await });
        assert!(told.pop().unwrap().is_err_and(|error| error.kind() == ErrorKind::Protocol), "{facade}: {told:?}");
        told.into_iter().for_each(|told| _ = granted(told));
        voter.take("job");
        assert!(voter.known("barred").is_some(), "{facade}");
    }
}

#[test]
fn a_server_that_is_full_ends_a_lease_and_says_that_it_cannot_refuse_late_claims() {
    let options = RedisOptions::default().arguments(&["--maxmemory-policy", "noeviction"]);
    let voter = Voter::start_with(on_threads, options);
    let (held, lease) = voter.take("job");
    let digest = voter.digest_of(&held);
    voter.server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(voter.revoke("job", &[&digest]).unwrap(), Told::Revoked(Revoked::Revoked));
    assert_eq!(voter.value("job"), None);
    assert_eq!(voter.revoked_by("job", lease.tokens.high().get()), Some(by()));
    let error = voter.revoke("free", &[&digest]).unwrap_err();
    assert_eq!(error.effect(), Effect::None, "{error}");
}
