//! Whether a store has what a case needs, and what is checked if it has not.

use lock_core::latch::LatchError;
use lock_core::{
    Ability, AcquireError, Capabilities, Durability, Effect, EntriesEnd, ErrorKind, Released, Waiting, WriteSide,
};
use lock_host::Unchanged;

use crate::bench::Bench;
use crate::facade::options;
use crate::fault::Fault;
use crate::need::Need;
use crate::verbs::{LONG, claim, waiting_claim};

impl Need {
    pub(crate) fn is_met(self, bench: &Bench) -> bool {
        match self {
            Self::Nothing => true,
            Self::Fault(fault) => bench.faults().offers().contains(&fault),
            Self::Queue => keeps_a_queue(bench.capabilities()),
            Self::OwnTtl => bench.capabilities().entries_end == EntriesEnd::WithTtl,
            Self::Inspect => has(bench, Ability::Inspect),
            Self::Latch => has(bench, Ability::Latch),
            Self::Processes => bench.has_address(),
            Self::Ability(ability) => has(bench, ability),
            Self::MutexIsWriteSide => bench.capabilities().write_side == WriteSide::Mutex,
            Self::Mode(mode) => bench.capabilities().modes.contains(&mode),
        }
    }

    /// Shows that what is listed as absent is really absent.
    pub(crate) fn check_absence(self, bench: &Bench) {
        match self {
            Self::Queue => a_wish_for_a_place_leaves_none(bench),
            Self::Latch => a_latch_is_refused_with_a_reason(bench),
            Self::Processes | Self::Fault(Fault::RestartWithData) => ends_with_its_process(bench),
            Self::Ability(Ability::Replace) => a_lock_is_not_detached(bench),
            // Its absence was observed, or the harness cannot do it, as its list says.
            Self::Nothing
            | Self::OwnTtl
            | Self::Inspect
            | Self::Ability(_)
            | Self::MutexIsWriteSide
            | Self::Mode(_)
            | Self::Fault(_) => {}
        }
    }
}

fn has(bench: &Bench, ability: Ability) -> bool {
    bench.capabilities().check_ability(ability).is_ok()
}

pub(crate) fn keeps_a_queue(capabilities: Capabilities) -> bool {
    matches!(capabilities.waiting, Waiting::QueueWithPush | Waiting::Queue)
}

fn a_wish_for_a_place_leaves_none(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let held = claim("place");
    one.take(&held);
    two.refused(&waiting_claim("place"));
    assert_eq!(one.release(&held), Released::Released);
    three.take(&claim("place"));
}

fn a_latch_is_refused_with_a_reason(bench: &Bench) {
    let Err(LatchError::Backend(error)) = bench.client().arrive("latch") else {
        panic!("arrived where nothing is counted")
    };
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsupported, Effect::None), "{error}");
    assert!(error.remedy().is_some(), "{error}");
}

fn a_lock_is_not_detached(bench: &Bench) {
    let refused = bench.client().acquire("detached", &options(LONG)).unwrap().detach();
    let refused = refused.expect_err("nobody could adopt it");
    let Unchanged::Refused(AcquireError::Backend(error)) = refused.reason() else { panic!("{:?}", refused.reason()) };
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsupported, Effect::None), "{error}");
    refused.into_guard().release().unwrap();
}

fn ends_with_its_process(bench: &Bench) {
    let durability = bench.capabilities().durability;
    assert_eq!(durability, Durability::Process, "a store that outlives its process can be shared and restarted");
}
