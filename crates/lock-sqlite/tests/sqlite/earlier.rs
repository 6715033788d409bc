//! A file of the version before the rules were shared, and a program of that version beside this one.

use lock_core::latch::{Act, Request};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, BlockingBackend, Certainty, Claim, ErrorKind, Holder, Lease, Limit, Note, Owner, ReleaseRequest, Released,
    Renewed, TokenRange, Ttl, Width,
};
use lock_host::Clock;
use lock_sqlite::blocking::Sqlite;
use proptest::prelude::*;

use crate::earlier_program::Earlier;
use crate::rig::{
    Ask, Rig, WITHIN, assert_slots, at_once, busy, claim, granted, lasting, low, operator, permits, position, reader,
    secs,
};

const FILE: &str = include_str!("fixtures/earlier.sql");
const BOOT: &str = "00000000-1111-2222-3333-444444444444";
const LAST_TOKEN: u64 = 1_795_791_526_148_855;

/// The same claim of an owner of the file, whose note shows it.
fn of(byte: u8, claim: Claim) -> Claim {
    let note = Note::new("earlier", byte.into(), "").unwrap();
    Claim { owner: Owner::from_random([byte; 16]), note, ..claim }
}

/// The file at the time of its last request, as today's code opens it.
fn opened() -> (Rig, Sqlite) {
    let rig = Rig::new();
    rig.clock.advance(secs(6));
    rig.raw().execute_batch(FILE).unwrap();
    let client = Sqlite::open_with(&rig.config(), rig.timing().with_boot(BOOT)).unwrap();
    assert_slots(&rig.raw(), rig.clock.now());
    (rig, client)
}

/// The holders, the last one first, with their slots, and the number of waiters.
fn holders(client: &Sqlite, name: &str) -> (Vec<(u32, Vec<u32>)>, u32) {
    let entry = client.holder(&name.parse().unwrap(), WITHIN).unwrap().unwrap();
    let shown = entry.holders.iter().map(|held| match &held.holder {
        Holder::Leasehold { note, .. } => (note.pid().unwrap(), held.slots.get().to_vec()),
        Holder::Foreign => panic!("not ours"),
    });
    (shown.collect(), entry.waiters)
}

/// The same without slots.
fn seen(client: &Sqlite, name: &str) -> (Vec<u32>, u32) {
    let (holders, waiters) = holders(client, name);
    (holders.into_iter().map(|(pid, _)| pid).collect(), waiters)
}

#[test]
fn its_holders_waiters_and_limit_are_known() {
    let (_rig, client) = opened();
    assert_eq!(seen(&client, "writer"), (vec![0x01], 3));
    assert_eq!(seen(&client, "readers"), (vec![0x12, 0x11], 2));
    assert_eq!(holders(&client, "permits"), (vec![(0x23, vec![4]), (0x22, vec![0]), (0x21, vec![1, 2])], 2));
    assert_eq!(position(client.ask(&of(0x04, claim("writer")))), 3);
    assert_eq!(position(client.ask(&of(0x14, reader("readers")))), 2);
    assert_eq!(position(client.ask(&of(0x25, permits("permits", 1, 5)))), 2);
    let five = Limit::new(5).unwrap();
    let look = limit::Request { name: "permits".parse().unwrap(), known: five, act: limit::Act::Look };
    assert_eq!(client.limit(&look, WITHIN).unwrap(), Usage { limit: Limit::new(4).unwrap(), used: 4 });
    assert_eq!(client.refusal(&permits("permits", 5, 5)).kind(), ErrorKind::OtherKind);
}

#[test]
fn its_waiters_are_served_in_their_turn_with_tokens_that_rise() {
    let (rig, client) = opened();
    client.part(&of(0x01, claim("writer")));
    assert_eq!(seen(&client, "writer"), (vec![0x03, 0x02], 1));
    let first = [0x02, 0x03].map(|byte| low(&granted(client.ask(&of(byte, reader("writer"))))));
    assert!(LAST_TOKEN < first[0] && first[0] < first[1]);
    for byte in [0x02, 0x03] {
        client.part(&of(byte, reader("writer")));
    }
    assert_eq!(seen(&client, "writer"), (vec![0x04], 0));
    for byte in [0x11, 0x12] {
        client.part(&of(byte, reader("readers")));
    }
    assert_eq!(seen(&client, "readers"), (vec![0x13], 1));
    let two = permits("permits", 2, 5);
    client.part(&of(0x21, two));
    assert_eq!(seen(&client, "permits").1, 2, "the first one asks for three");
    client.part(&of(0x22, permits("permits", 1, 5)));
    let three = granted(client.ask(&of(0x24, permits("permits", 3, 5))));
    assert_eq!((three.slots.get(), seen(&client, "permits").1), ([0, 1, 2].as_slice(), 1));
    client.part(&of(0x23, permits("permits", 1, 5)));
    assert_eq!(granted(client.ask(&of(0x25, permits("permits", 1, 5)))).slots.get(), [3]);
    assert_slots(&rig.raw(), rig.clock.now());
}

#[test]
fn its_kept_lock_given_up_claim_revocation_and_latch_are_known() {
    let (rig, client) = opened();
    assert_eq!(busy(client.ask(&at_once(claim("kept")))), secs(20));
    assert_eq!(client.refusal(&of(0x41, claim("given up"))).kind(), ErrorKind::Protocol);
    let revoked = of(0x51, claim("revoked"));
    let lease = revoked.lease(TokenRange::above(LAST_TOKEN - 1, Width::ONE).unwrap());
    assert_eq!(client.extend(&lease), Renewed::Revoked { by: operator() });
    let arrive = |id: &str, call| {
        let act = Act::Arrive { id: id.parse().unwrap(), call, ttl: Ttl::DEFAULT };
        client.latch(&Request { name: "latch".parse().unwrap(), act }, WITHIN).unwrap().state.unwrap()
    };
    assert_eq!((arrive("one", 1).arrived, arrive("two", 3).missing()), (2, Some(1)));
    assert!(arrive("three", 4).is_complete());
    rig.clock.advance(secs(20));
    granted(client.ask(&claim("kept")));
}

#[test]
fn each_program_serves_the_waiters_of_the_other() {
    let rig = Rig::new();
    let client = rig.client();
    let earlier = Earlier::beside(&rig);
    let all = [2, 3, 1].map(|count| permits("a", count, 5));
    let [two, three, one] = &all;
    granted(client.ask(two));
    assert_eq!(position(client.ask(&permits("a", 4, 5))), 1);
    client.part(&permits("a", 4, 5));
    let waiting = Claim { owner: three.owner, ..permits("a", 4, 5) };
    assert_eq!(position(client.ask(&waiting)), 2);
    rig.clock.advance(secs(9));
    assert_eq!(position(client.ask(&waiting)), 2);
    rig.clock.advance(secs(1));
    // The first place has expired.
    earlier.release(two.owner);
    assert_slots(&rig.raw(), rig.clock.now());
    assert_eq!(granted(client.ask(&waiting)).slots.get(), [0, 1, 2, 3]);
    earlier.wait(one.owner, 1);
    assert_eq!(client.part(&waiting), Released::Released);
    assert_slots(&rig.raw(), rig.clock.now());
    assert_eq!(earlier.slots(), [0]);
}

/// Owners are numbers.
type Who = u8;

#[derive(Clone, Copy, Debug)]
enum Program {
    Today,
    Earlier,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Claim(Program, Who, u32, u64),
    Release(Program, Who),
    Renew(Program, Who),
    /// An earlier program clears what has expired.
    Sweep,
    Pass(u64),
}

const LIMIT: u32 = 7;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 1_u8..9;
    let program = prop_oneof![Just(Program::Today), Just(Program::Earlier)];
    let step = prop_oneof![
        6 => (program.clone(), who.clone(), 1_u32..4, 5_u64..30)
            .prop_map(|(program, who, count, seconds)| Step::Claim(program, who, count, seconds)),
        3 => (program.clone(), who.clone()).prop_map(|(program, who)| Step::Release(program, who)),
        2 => (program, who).prop_map(|(program, who)| Step::Renew(program, who)),
        1 => Just(Step::Sweep),
        3 => (1_u64..12).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..80)
}

/// One file that both programs use, and the leases that live.
struct Both {
    rig: Rig,
    raw: rusqlite::Connection,
    today: Sqlite,
    earlier: Earlier,
    leases: Vec<(Lease, u64)>,
    now: u64,
}

impl Both {
    fn new() -> Self {
        let rig = Rig::new();
        let (today, earlier, raw) = (rig.client(), Earlier::beside(&rig), rig.raw());
        Self { rig, raw, today, earlier, leases: Vec::new(), now: 0 }
    }

    fn play(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Claim(program, who, count, seconds) => self.claim(program, who, count, seconds)?,
            Step::Release(program, who) => {
                let owner = Owner::from_random([who; 16]);
                let held = self.leases.iter().position(|(lease, _)| lease.owner == owner);
                let request = ReleaseRequest { owner, ..permits("a", 1, LIMIT).release(Certainty::Answered) };
                match program {
                    Program::Today => {
                        let released = self.today.release(&request, WITHIN).unwrap();
                        prop_assert_eq!(released == Released::Released, held.is_some());
                    }
                    Program::Earlier => self.earlier.release(owner),
                }
                held.map(|held| self.leases.remove(held));
            }
            Step::Renew(program, who) => {
                let owner = Owner::from_random([who; 16]);
                let now = self.now;
                let Some((lease, until)) = self.leases.iter_mut().find(|(lease, _)| lease.owner == owner) else {
                    return Ok(());
                };
                let is_renewed = match program {
                    Program::Today => matches!(self.today.extend(lease), Renewed::Renewed { .. }),
                    Program::Earlier => self.earlier.renew(lease),
                };
                prop_assert!(is_renewed);
                *until = now + lease.terms.ttl.get().as_secs();
            }
            Step::Sweep => self.earlier.sweep(),
            Step::Pass(seconds) => {
                self.rig.clock.advance(secs(seconds));
                self.now += seconds;
                self.leases.retain(|(_, until)| *until > self.now);
            }
        }
        self.compare()
    }

    fn claim(&mut self, program: Program, who: Who, count: u32, seconds: u64) -> Result<(), TestCaseError> {
        let claim = of(who, lasting(&format!("{seconds}s"), at_once(permits("a", count, LIMIT))));
        if let Some(held) = self.leases.iter().position(|(lease, _)| lease.owner == claim.owner) {
            return self.claim_again(program, held);
        }
        let taken: Vec<u32> = self.leases.iter().flat_map(|(lease, _)| lease.slots.get().to_vec()).collect();
        let free = (0..LIMIT).filter(|slot| !taken.contains(slot)).take(usize::try_from(count).unwrap());
        let expected = Some(free.collect::<Vec<u32>>()).filter(|free| free.len() == usize::try_from(count).unwrap());
        let lease = match program {
            Program::Today => match self.today.ask(&claim) {
                Answer::Granted { lease, .. } => Some(lease),
                Answer::Busy { .. } | Answer::Queued { .. } => None,
            },
            Program::Earlier => self.earlier.claim(&claim),
        };
        prop_assert_eq!(lease.as_ref().map(|lease| lease.slots.get().to_vec()), expected);
        self.leases.extend(lease.map(|lease| (lease, self.now + seconds)));
        Ok(())
    }

    /// What a holder gets that has not received the answer.
    fn claim_again(&mut self, program: Program, held: usize) -> Result<(), TestCaseError> {
        let (lease, until) = &mut self.leases[held];
        let again = Claim { owner: lease.owner, terms: lease.terms, ..at_once(permits("a", 1, LIMIT)) };
        match program {
            Program::Today => prop_assert_eq!(&granted(self.today.ask(&again)), &*lease),
            Program::Earlier => self.earlier.claim_again(&again, lease),
        }
        *until = self.now + lease.terms.ttl.get().as_secs();
        Ok(())
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        assert_slots(&self.raw, self.rig.clock.now());
        let request =
            limit::Request { name: "a".parse().unwrap(), known: Limit::new(LIMIT).unwrap(), act: limit::Act::Look };
        let used: u32 = self.leases.iter().map(|(lease, _)| lease.terms.mode.count()).sum();
        prop_assert_eq!(self.today.limit(&request, WITHIN).unwrap().used, used);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn both_programs_grant_the_permits_of_one_semaphore(steps in steps()) {
        let mut both = Both::new();
        for step in steps {
            both.play(step)?;
        }
    }
}
