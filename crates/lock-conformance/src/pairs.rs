//! Pairs of requests at the same time, in scenes that were played before.

use std::time::Duration;

use lock_core::limit::{Act, Request};
use lock_core::{
    Ability, Answer, Capabilities, Certainty, Claim, EntriesEnd, Fairness, Lease, Limit, Mode, Moment, ReleaseRequest,
};

use crate::history::History;
use crate::reference::{Ask, Reply, SHORT};
use crate::verbs::{LONG, claim, in_mode, lasting, lock_name, waiting_claim};
use crate::{Bench, Verbs};

/// Longer than any request takes, so that what is short has expired everywhere.
pub(crate) const EXPIRY: Duration = Duration::from_secs(1);
/// How long places last in any store at least. They last for 10 s; the rest is a reserve.
pub(crate) const PLACES_SAFE: Duration = Duration::from_millis(6_500);

/// The state before a pair: claims of different owners. The store grants the first ones.
pub(crate) struct Scene {
    what: &'static str,
    claims: Vec<(Mode, Duration)>,
    /// Whether the first owner releases the lock and has it kept.
    is_kept: bool,
}

fn permits(count: u32) -> Mode {
    Mode::permits(count, 3).unwrap()
}

impl Scene {
    /// The scenes that a store can play. None has an expired lease that a waiter could get: stores may hand that over at once or with the
    /// next claim.
    pub(crate) fn all(can: &Capabilities, waiters_act: bool) -> Vec<Self> {
        let [exclusive, shared] = [Mode::Exclusive, Mode::Shared].map(|mode| (mode, LONG));
        let [expired, reader] = [Mode::Exclusive, Mode::Shared].map(|mode| (mode, SHORT));
        let [one, all] = [1, 3].map(|count| (permits(count), LONG));
        let scenes = [
            ("free", vec![]),
            ("held", vec![exclusive]),
            ("a queue", vec![exclusive, exclusive, shared]),
            ("an expired place", vec![exclusive, expired, exclusive]),
            ("an expired lease", vec![expired]),
            ("a reader, an expired one, and a queue", vec![shared, reader, exclusive, shared]),
            ("permits, one of them expired, and a queue", vec![one, (permits(1), SHORT), all, one]),
        ];
        let scene = |(what, claims)| Self { what, claims, is_kept: false };
        let kept = Self { what: "kept", claims: vec![exclusive, exclusive], is_kept: true };
        scenes
            .into_iter()
            .map(scene)
            .chain([kept])
            .filter(|scene| scene.suits(can) && !(waiters_act && scene.has_permits()))
            .collect()
    }

    fn has_permits(&self) -> bool {
        self.claims.iter().any(|(mode, _)| mode.limit().is_some())
    }

    fn suits(&self, can: &Capabilities) -> bool {
        let keeps = !self.is_kept || can.check_ability(Ability::Keep).is_ok();
        let ends = can.entries_end == EntriesEnd::WithTtl || self.claims.iter().all(|(_, ttl)| *ttl != SHORT);
        keeps && ends && self.claims.iter().all(|(mode, _)| can.check_mode(*mode).is_ok())
    }

    /// Plays the scene with an unused lock.
    pub(crate) fn play(&self, bench: &Bench, clients: &[Verbs; 2], name: &str) -> Stage<'_> {
        let (began, mut history, mut leases) = (bench.now(), History::default(), Vec::new());
        let can = clients[0].capabilities();
        let claim = |(mode, ttl): &(Mode, Duration)| in_mode(*mode, lasting(*ttl, waiting_claim(name)));
        let claims: Vec<_> = self.claims.iter().map(claim).collect();
        for (claim, client) in claims.iter().zip(clients.iter().cycle()) {
            if let Ok(Reply::Acquired(Answer::Granted { lease, .. })) =
                history.ask(client, Ask::Acquire(claim.clone()), began)
            {
                leases.push(lease.clone());
            }
        }
        if self.is_kept {
            history.ask(&clients[0], keep(&claims[0]), began);
        }
        let asks = asks(&can, name, &claims, &leases);
        Stage { scene: self, name: name.to_owned(), began, ready: bench.now(), history, asks }
    }
}

fn keep(claim: &Claim) -> Ask {
    Ask::Release(ReleaseRequest { keep: Some(LONG), ..claim.release(Certainty::Answered) })
}

/// Requests after these claims: of a new owner, of the first holder and of the first waiter.
fn asks(can: &Capabilities, name: &str, claims: &[Claim], leases: &[Lease]) -> Vec<Ask> {
    let is_semaphore = claims.first().is_some_and(|claim| claim.terms.mode.limit().is_some());
    let [mode, other] = if is_semaphore { [permits(1), permits(3)] } else { [Mode::Exclusive, Mode::Shared] };
    let new = in_mode(mode, waiting_claim(name));
    let barging = Claim { fairness: Fairness::Barging, ..in_mode(other, waiting_claim(name)) };
    let mut asks = vec![
        Ask::Release(new.release(Certainty::Unknown)),
        Ask::Acquire(new),
        Ask::Acquire(in_mode(mode, claim(name))),
        Ask::Acquire(barging),
    ];
    if let Some(lease) = leases.first().cloned() {
        let replacing = Claim { replaces: Some(lease.owner), ..in_mode(mode, claim(name)) };
        asks.extend([Ask::Renew(lease.clone()), Ask::Fence(lease.clone()), Ask::Revoke(lease)]);
        asks.push(Ask::Acquire(replacing));
    }
    let holds = |claim: &&Claim| leases.iter().any(|lease| lease.owner == claim.owner);
    for claim in [claims.iter().find(holds), claims.iter().find(|claim| !holds(claim))].into_iter().flatten() {
        asks.push(Ask::Release(claim.release(Certainty::Answered)));
        // Some stores still know an expired place, or remember for longer that its owner gave up.
        if claim.terms.ttl.get() == LONG {
            asks.extend([Ask::Acquire(claim.clone()), Ask::Release(claim.release(Certainty::Unknown))]);
        }
    }
    asks.extend(claims.first().filter(|claim| claim.terms.mode == Mode::Exclusive).map(keep));
    if is_semaphore {
        let [known, set] = [3, 2].map(|limit| Limit::new(limit).unwrap());
        asks.push(Ask::Limit(Request { name: lock_name(name), known, act: Act::Set(set) }));
    }
    asks.retain(|ask| is_possible(can, ask));
    asks
}

fn is_possible(can: &Capabilities, ask: &Ask) -> bool {
    let ability = match ask {
        Ask::Acquire(claim) if can.check_mode(claim.terms.mode).is_err() => return false,
        Ask::Acquire(claim) if claim.fairness == Fairness::Barging => Some(Ability::Barge),
        Ask::Acquire(claim) => claim.replaces.map(|_| Ability::Replace),
        Ask::Release(request) => request.keep.map(|_| Ability::Keep),
        Ask::Renew(_) | Ask::Fence(_) => None,
        Ask::Revoke(_) | Ask::Show(_) => Some(Ability::Inspect),
        Ask::Limit(_) => Some(Ability::SetLimit),
    };
    ability.is_none_or(|ability| can.check_ability(ability).is_ok())
}

/// Whether this is a release that says that the other one, a claim, was answered: so they do not overlap.
fn ends(release: &Ask, claim: &Ask) -> bool {
    let (Ask::Release(release), Ask::Acquire(claim)) = (release, claim) else { return false };
    release.certainty == Certainty::Answered && [Some(claim.owner), claim.replaces].contains(&Some(release.owner))
}

/// Two requests of a scene, by number.
pub(crate) struct Pair {
    /// How many requests the scene had. It has fewer if a slow store refuses some of its claims.
    of: usize,
    pub(crate) numbers: [usize; 2],
}

/// A lock with which a scene was played.
pub(crate) struct Stage<'a> {
    scene: &'a Scene,
    name: String,
    began: Moment,
    ready: Moment,
    history: History,
    asks: Vec<Ask>,
}

impl Stage<'_> {
    /// The pairs of requests that may overlap, by number. Both begin together; which one is a little earlier is left to chance.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        let numbers = 0..self.asks.len();
        let overlap = |pair: &Pair| {
            let [one, other] = pair.numbers.map(|number| &self.asks[number]);
            !ends(one, other) && !ends(other, one)
        };
        let pair =
            |one, other| Pair { of: numbers.end, numbers: if fastrand::bool() { [one, other] } else { [other, one] } };
        let all = numbers.clone().flat_map(|one| (one..numbers.end).map(move |other| pair(one, other)));
        all.filter(overlap).collect()
    }

    /// Asks both at the same time, and then looks at what they have left. Returns whether that could be judged: the scene is the same as the
    /// one that the pair was chosen from, and nothing expired too early.
    ///
    /// # Panics
    /// If neither order of the two explains all answers.
    pub(crate) fn ask_both(mut self, bench: &Bench, clients: &[Verbs; 2], pair: &Pair) -> bool {
        let [one, two] = clients;
        if self.asks.len() != pair.of {
            return false;
        }
        self.history.ask_both([one, two], pair.numbers.map(|number| self.asks[number].clone()), bench.now());
        clients.iter().for_each(Verbs::flush);
        let now = bench.now();
        if one.can_inspect() {
            self.history.ask(one, Ask::Show(lock_name(&self.name)), now);
        }
        let mode = self.scene.claims.first().map_or(Mode::Exclusive, |(mode, _)| *mode);
        self.history.ask(two, Ask::Acquire(in_mode(mode, waiting_claim(&self.name))), now);
        let took = self.ready.since(self.began);
        let is_judged = self.scene.claims.iter().all(|(_, ttl)| took < *ttl) && now.since(self.began) < PLACES_SAFE;
        let what = self.scene.what;
        assert!(
            !is_judged || self.history.has_sequence(one.capabilities().entries_end),
            "{what}: of the last requests, neither order has these answers:\n{}",
            self.history
        );
        is_judged
    }
}
