//! Which answers decide each round, one by one.

use std::time::Duration;

use lock_core::node::{Ask, Told};
use lock_core::{
    Answer, BackendError, Certainty, Claim, ErrorKind, Fenced, Holder, Renewed, Terms, TokenRange, Ttl, Width,
};
use lock_redlock::quorum::{Request, Verdict};

use crate::script::{CLOCK, Script, failure, is_claim, is_fence, is_release};
use crate::support::{MAX_TTL, WITHIN, claim};

const ACK: [Fenced; 1] = [Fenced::Acknowledged];
const NO: [Fenced; 1] = [Fenced::NotHeld];

fn claiming(nodes: usize) -> Script {
    let mut script = Script::voting(nodes);
    script.begin(Request::Acquire(claim(1)));
    script
}

/// Five nodes in round two for token 13, which node 3 drew. Node 4 has not answered the claim.
fn in_round_two() -> Script {
    let mut script = claiming(5);
    (0..4).for_each(|node| script.grant(node, 10 + node as u64));
    assert_eq!(script.asked(is_fence), [0, 1, 2, 4]);
    script
}

fn verdict(script: &mut Script) -> Option<Result<Answer, BackendError>> {
    let Verdict::Acquire(verdict) = script.verdicts.pop()? else { panic!("it is no claim") };
    Some(verdict)
}

fn granted(script: &mut Script) -> Option<u64> {
    match verdict(script)? {
        Ok(Answer::Granted { lease, .. }) => Some(lease.tokens.high().get()),
        other => panic!("it was not granted: {other:?}"),
    }
}

#[test]
fn a_late_grant_of_the_same_token_counts_in_round_two() {
    let mut script = in_round_two();
    script.grant(4, 13);
    script.fence(0, &ACK);
    assert_eq!(granted(&mut script), Some(13));
}

#[test]
fn a_late_grant_takes_no_acknowledgement_back() {
    for late in [12, 13] {
        let mut script = in_round_two();
        script.fence(4, &ACK);
        script.grant(4, late);
        assert_eq!(granted(&mut script), None, "two are no majority");
        script.fence(0, &ACK);
        assert_eq!(granted(&mut script), Some(13), "node 4 drew {late}");
    }
}

#[test]
fn round_two_is_lost_once_the_open_answers_are_too_few() {
    let mut script = in_round_two();
    script.fence(0, &NO);
    script.fence(1, &NO);
    assert!(verdict(&mut script).is_none(), "two more may acknowledge it");
    script.fence(2, &NO);
    assert!(matches!(verdict(&mut script), Some(Err(_))));
    assert_eq!(script.asked(is_release), [0, 1, 2, 3]);
    script.grant(4, 14);
    assert_eq!(script.asked(is_release), [0, 1, 2, 3, 4], "its release waits for its answer");
}

#[test]
fn only_one_acknowledgement_of_the_one_lease_counts_in_round_two() {
    for wrong in [&[][..], &NO, &[Fenced::Acknowledged; 2]] {
        let mut script = in_round_two();
        script.fence(0, &ACK);
        script.fence(1, wrong);
        assert!(verdict(&mut script).is_none(), "{wrong:?}");
        script.fence(2, &ACK);
        assert_eq!(granted(&mut script), Some(13));
    }
}

#[test]
fn a_majority_that_drew_one_token_needs_no_round_two() {
    let mut script = claiming(5);
    script.grant(0, 10);
    script.grant(1, 10);
    assert!(verdict(&mut script).is_none());
    script.grant(2, 10);
    assert_eq!(granted(&mut script), Some(10));
    assert!(script.asked(is_fence).is_empty());
}

#[test]
fn round_two_waits_while_two_silent_nodes_may_make_it_needless() {
    let mut script = claiming(5);
    (0..3).for_each(|node| script.grant(node, 10 + node as u64));
    assert!(script.asked(is_fence).is_empty());
    script.grant(3, 12);
    assert_eq!(script.asked(is_fence), [0, 1, 4]);

    let mut script = claiming(7);
    (0..4).for_each(|node| script.grant(node, 10 + node as u64));
    assert!(script.asked(is_fence).is_empty());
    script.grant(4, 14);
    assert_eq!(script.asked(is_fence), [0, 1, 2, 3, 5, 6], "the two silent ones cannot make a majority agree");
}

#[test]
fn round_two_needs_a_majority_of_grants() {
    let mut script = claiming(5);
    script.answer(0, is_claim, failure(ErrorKind::Denied));
    script.answer(1, is_claim, failure(ErrorKind::Denied));
    script.grant(2, 10);
    script.grant(3, 11);
    assert!(script.asked(is_fence).is_empty());
    script.grant(4, 12);
    assert_eq!(script.asked(is_fence), [2, 3]);
    assert!(verdict(&mut script).is_none());
}

/// A node would not acknowledge a renewal below its own grant's token.
#[test]
fn a_renewal_names_the_highest_token_that_a_node_drew_before_the_majority_agreed() {
    let mut script = claiming(5);
    script.grant(0, 20);
    (1..4).for_each(|node| script.grant(node, 10));
    let lease = match verdict(&mut script) {
        Some(Ok(Answer::Granted { lease, .. })) => lease,
        other => panic!("it was not granted: {other:?}"),
    };
    assert_eq!(lease.tokens.high().get(), 10);
    script.begin(Request::Renew(vec![lease]));
    let fences: Vec<_> = script.sent.iter().filter(|sent| is_fence(&sent.ask)).collect();
    assert!(!fences.is_empty(), "{:?}", script.sent);
    for sent in fences {
        let Ask::Fence { leases, .. } = &sent.ask else { panic!("{sent:?}") };
        assert_eq!(leases[0].tokens.high().get(), 20, "{sent:?}");
    }
}

/// Its client does not release it.
#[test]
fn nothing_is_kept_of_a_lease_that_a_majority_denies() {
    let mut script = claiming(5);
    (0..4).for_each(|node| script.grant(node, if node == 0 { 20 } else { 10 }));
    let Some(Ok(Answer::Granted { lease, .. })) = verdict(&mut script) else { panic!("it was not granted") };
    for expected in [20, 10] {
        script.begin(Request::Renew(vec![lease.clone()]));
        let asked = script.sent.iter().find_map(|sent| {
            let Ask::Fence { leases, .. } = &sent.ask else { return None };
            Some(leases[0].tokens.high().get())
        });
        assert_eq!(asked, Some(expected));
        (0..5).for_each(|node| script.fence(node, &NO));
    }
}

/// The claim may arrive after any time that a lease may last, and would exclude others then.
#[test]
fn what_keeps_a_late_claim_out_lasts_for_max_ttl() {
    let mut script = claiming(3);
    assert!(claim(1).terms.ttl.get() < MAX_TTL);
    script.answer(0, is_claim, failure(ErrorKind::Timeout));
    held(&mut script, 1, 20);
    held(&mut script, 2, 20);
    let tombstones: Vec<_> = script
        .sent
        .iter()
        .filter_map(|sent| {
            let Ask::Release(request) = &sent.ask else { return None };
            (request.certainty == Certainty::Unknown).then(|| (sent.node.0, request.terms.ttl.get()))
        })
        .collect();
    assert_eq!(tombstones, [(0, MAX_TTL)], "{:?}", script.sent);
}

fn held(script: &mut Script, node: usize, seconds: u64) {
    let remaining = Some(Duration::from_secs(seconds));
    script.answer(node, is_claim, Ok(Told::Held { holder: Holder::Foreign, remaining }));
}

#[test]
fn a_claim_is_given_up_only_when_no_majority_can_grant_it() {
    let mut script = claiming(4);
    script.grant(0, 10);
    script.grant(1, 10);
    held(&mut script, 2, 5);
    assert!(verdict(&mut script).is_none(), "the fourth may grant it");
    script.grant(3, 10);
    assert_eq!(granted(&mut script), Some(10));

    let mut script = claiming(5);
    held(&mut script, 0, 5);
    held(&mut script, 1, 7);
    script.answer(2, is_claim, failure(ErrorKind::Denied));
    assert!(verdict(&mut script).is_none(), "it may be held or not");
    script.grant(3, 10);
    let answer = verdict(&mut script);
    let second = Some(Duration::from_secs(7));
    assert!(matches!(&answer, Some(Ok(Answer::Busy { remaining, .. })) if *remaining == second), "{answer:?}");
    assert_eq!(script.asked(is_release), [3]);
    script.grant(4, 10);
    assert_eq!(script.asked(is_release), [3, 4], "its release waits for its answer");
}

fn longest() -> Claim {
    Claim { terms: Terms::exclusive(Ttl::new(MAX_TTL).unwrap()), ..claim(1) }
}

#[test]
fn the_rounds_share_the_time_of_a_claim() {
    let script = in_round_two();
    assert!(script.sent.iter().all(|sent| sent.within == WITHIN / 2), "{:?}", script.sent);
    let mut script = Script::voting(3);
    script.begin(Request::Acquire(longest()));
    assert!(script.sent.iter().all(|sent| sent.within <= WITHIN / 3), "{:?}", script.sent);
    (0..3).for_each(|node| script.fence(node, &NO));
    assert_eq!(script.asked(is_claim), [0, 1, 2]);
    assert!(script.sent.iter().all(|sent| sent.within == WITHIN / 3), "{:?}", script.sent);
}

#[test]
fn a_ttl_is_announced_to_exactly_a_majority_in_time() {
    let announcing = || {
        let mut script = Script::voting(5);
        script.begin(Request::Acquire(longest()));
        script.fence(0, &NO);
        script.fence(1, &NO);
        assert!(script.asked(is_claim).is_empty());
        script
    };
    let mut script = announcing();
    script.fence(2, &NO);
    assert_eq!(script.asked(is_claim), [0, 1, 2, 3, 4]);

    // The shortest dwell is 2 s, and clocks drift.
    let mut script = announcing();
    script.advance(Duration::from_millis(1978));
    script.fence(2, &NO);
    assert!(script.asked(is_claim).is_empty());
    assert_eq!(verdict(&mut script).unwrap().unwrap_err().kind(), ErrorKind::Timeout);

    let mut script = announcing();
    script.answer(2, is_fence, failure(ErrorKind::Denied));
    script.answer(3, is_fence, failure(ErrorKind::Denied));
    assert!(verdict(&mut script).is_none(), "the last one may be told");
    script.answer(4, is_fence, failure(ErrorKind::Denied));
    assert_eq!(verdict(&mut script).unwrap().unwrap_err().kind(), ErrorKind::Denied);
}

fn wish(script: &mut Script, owner: u8, width: usize) -> u64 {
    script.begin(Request::Acquire(Claim { width: Width::for_waiters(width), ..claim(owner) }));
    let Some(Ask::Acquire { wish, .. }) = script.sent.last().map(|sent| &sent.ask) else { panic!("nobody was asked") };
    wish.get()
}

#[test]
fn only_a_grant_above_the_wish_shows_that_others_wish_for_more() {
    const LEAD: u64 = 1000;
    for (above, expected) in [(0, CLOCK + LEAD), (700, CLOCK + LEAD + 64 + 700)] {
        let mut script = Script::voting(3);
        let wishes = [wish(&mut script, 1, 64), wish(&mut script, 2, 64)];
        assert_eq!(wishes, [CLOCK + LEAD, CLOCK + LEAD + 64]);
        script.sent.retain(|sent| matches!(&sent.ask, Ask::Acquire { claim, .. } if claim.width == Width::MAX));
        script.sent.drain(..3);
        script.grant(0, wishes[1] + above);
        script.advance(Duration::from_millis(500));
        assert_eq!(wish(&mut script, 3, 1), expected + 500_000, "{above} above the wish");
    }
}

fn renewing(nodes: usize) -> Script {
    let mut script = Script::voting(nodes);
    let claim = claim(1);
    let lease = claim.lease(TokenRange::above(9, claim.width).unwrap());
    script.begin(Request::Renew(vec![lease]));
    script
}

fn renewed(script: &mut Script) -> Option<Result<Vec<Renewed>, BackendError>> {
    let Verdict::Renew(verdict) = script.verdicts.pop()? else { panic!("it is no renewal") };
    Some(verdict)
}

#[test]
fn a_renewal_is_settled_by_a_majority_or_by_as_many_refusals_as_leave_none() {
    for (nodes, refusals) in [(3, 2), (4, 2), (5, 3)] {
        let mut script = renewing(nodes);
        for node in 0..nodes / 2 {
            script.fence(node, &ACK);
            assert!(renewed(&mut script).is_none(), "{node} of {nodes}");
        }
        script.fence(nodes / 2, &ACK);
        assert!(matches!(renewed(&mut script).unwrap().unwrap()[..], [Renewed::Renewed { .. }]));

        let mut script = renewing(nodes);
        for node in 0..refusals - 1 {
            script.fence(node, &NO);
            assert!(renewed(&mut script).is_none(), "{node} of {nodes}");
        }
        script.fence(refusals - 1, &NO);
        assert_eq!(renewed(&mut script).unwrap().unwrap(), [Renewed::NotHeld]);
    }
}

#[test]
fn a_renewal_with_the_wrong_number_of_answers_is_none() {
    for wrong in [&[][..], &[Fenced::Acknowledged; 2], &[Fenced::NotHeld; 2]] {
        let mut script = renewing(3);
        script.fence(0, wrong);
        script.fence(1, wrong);
        assert!(renewed(&mut script).is_none(), "{wrong:?}");
        script.fence(2, wrong);
        assert!(renewed(&mut script).unwrap().is_err(), "{wrong:?}");
    }
}
