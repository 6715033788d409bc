//! The requests to a node, as commands. No I/O.

use std::ops::ControlFlow;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Inspection, Membership, Recording, Sighting, Told};
use lock_core::{Certainty, Claim, FencingToken, Lease, LockName, Operation, Queueing, ReleaseRequest};
use redis::Value;

use super::inspection;
use crate::failure::Failure;
use crate::keys::Key;
use crate::requests::value::{of_owner, stamped};
use crate::requests::verbs::tombstone_life;
use crate::script::node as script;
use crate::server::server_info::ServerInfo;
use crate::wire::{Call, LEASES_PER_SCRIPT, Line, Question, Retry, Wire, to_millis};

impl Question for Ask {
    type Answer = Told;

    fn operation(&self) -> Operation {
        self.operation()
    }

    fn call(&self, line: Line<'_>) -> Result<Call, Failure> {
        let server_info = line.server_info;
        Ok(match self {
            Self::Acquire { claim, wish, epoch } => return acquire(line, claim, *wish, *epoch),
            Self::Fence { leases, epoch } => fence(line, leases, *epoch),
            Self::Release(request) => release(line.wire, request),
            Self::Look => Call::script(&script::LOOK, &[Key::Node]).arg(run(server_info)),
            Self::Mark { epoch, membership } => {
                let call = Call::script(&script::MARK, &[Key::Node]).arg(run(server_info));
                of_membership(call.arg(epoch.to_string()), membership)
            }
            Self::Record { seen, keep } => record(seen, *keep),
            Self::Install { epoch, counter, longest, moves, membership } => {
                let call = Call::script(&script::INSTALL, &[Key::Node]).arg(seal(server_info, *epoch));
                of_membership(call.arg(*counter).arg(lasting(*longest)).arg(*moves), membership)
            }
            Self::Move { epoch, seen, membership, predecessor, moves } => {
                let call = Call::script(&script::MOVE, &[Key::Node]).arg(seal(server_info, *epoch));
                let call = of_membership(of_membership(call.arg(*moves), membership), predecessor);
                match seen {
                    Some(seen) => of_membership(call, seen),
                    None => call.arg("").arg(""),
                }
            }
            Self::Inspect(inspection) => return inspection::call(inspection, line),
        })
    }

    fn read(&self, line: Line<'_>, reply: Value) -> Result<Told, Failure> {
        super::told::read(self, line, reply)
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Fence { .. } | Self::Release(_) | Self::Inspect(_) => Retry::Once,
            Self::Acquire { .. }
            | Self::Look
            | Self::Mark { .. }
            | Self::Record { .. }
            | Self::Install { .. }
            | Self::Move { .. } => Retry::Never,
        }
    }
}

fn acquire(line: Line<'_>, claim: &Claim, wish: FencingToken, epoch: Epoch) -> Result<Call, Failure> {
    let keys = line.wire.keys(&claim.name);
    let channel = line.wire.channel.as_ref().filter(|channel| claim.queueing == Queueing::Wanted && channel.is_open());
    let (ttl, width) = (claim.terms.ttl.as_millis(), claim.width.get());
    let (floor, inbox) = (claim.floor.map_or(0, FencingToken::get), channel.map_or("", |channel| channel.name()));
    let call = Call::script(&script::ACQUIRE, &[Key::Node, Key::Lock(keys)])
        .arg(seal(line.server_info, epoch))
        .arg(Key::Lead(keys))
        .arg(of_owner(claim.owner))
        .arg(wish.get())
        .arg_fmt(format_args!("{ttl} {width} {floor} {inbox} {}", stamped(&claim.note)));
    Ok(call)
}

fn fence(line: Line<'_>, leases: &[Lease], epoch: Epoch) -> Call {
    let locks = leases.iter().map(|lease| Key::Lock(line.wire.keys(&lease.name)));
    let keys: Vec<_> = std::iter::once(Key::Node).chain(locks).collect();
    let call = Call::script(&script::FENCE, &keys).arg(seal(line.server_info, epoch));
    leases.iter().fold(call, |call, lease| {
        let tokens = lease.tokens;
        call.arg(of_owner(lease.owner))
            .arg(tokens.low().get())
            .arg(tokens.high().get())
            .arg(lease.terms.ttl.as_millis())
    })
}

fn release(wire: &Wire, request: &ReleaseRequest) -> Call {
    let keys = wire.keys(&request.name);
    let call = Call::script(&script::RELEASE, &[Key::Lock(keys)]).arg(Key::Lead(keys)).arg(of_owner(request.owner));
    match request.certainty {
        Certainty::Answered => call,
        Certainty::Unknown => call.alone().arg(tombstone_life(request.terms)),
    }
}

fn record(seen: &[Sighting], keep: Duration) -> Call {
    let keys: Vec<_> = seen.iter().map(|sighting| Key::Seen(&sighting.member)).collect();
    let call = Call::script(&script::RECORD, &keys).arg(lasting(keep));
    seen.iter().fold(call, |call, sighting| match sighting.recording {
        Recording::Nothing => call.arg(""),
        Recording::Begins(epoch) => call.arg(epoch.to_string()),
        Recording::BeginsAnew(epoch) => call.arg(format!("{epoch}!")),
    })
}

/// The seal of a node while it votes: its run, and the epoch in which it votes.
fn seal(server_info: &ServerInfo, epoch: Epoch) -> String {
    format!("{}:{epoch}", server_info.run_id)
}

/// How the seals of this run begin.
fn run(server_info: &ServerInfo) -> String {
    format!("{}:", server_info.run_id)
}

fn of_membership(call: Call, membership: &Membership) -> Call {
    call.arg(membership.members.join(" ")).arg(lasting(membership.max_ttl))
}

/// As an expiry, which is never zero.
fn lasting(duration: Duration) -> u64 {
    to_millis(duration).max(1)
}

/// The parts of a request that concerns more leases or locks than one script takes; `None` for a request that is sent whole.
pub(super) fn parts(ask: &Ask) -> Option<Vec<Ask>> {
    let is_whole = |count| (1..=LEASES_PER_SCRIPT).contains(&count);
    if let Ask::Fence { leases, epoch } = ask {
        let part = |leases: &[Lease]| Ask::Fence { leases: leases.into(), epoch: *epoch };
        return (!is_whole(leases.len())).then(|| leases.chunks(LEASES_PER_SCRIPT).map(part).collect());
    }
    let Ask::Inspect(Inspection::Show(names)) = ask else { return None };
    let part = |names: &[LockName]| Ask::Inspect(Inspection::Show(names.into()));
    (!is_whole(names.len())).then(|| names.chunks(LEASES_PER_SCRIPT).map(part).collect())
}

/// Adds the answer to the next part of a request. Another one than the parts before had is the answer to all of them.
pub(super) fn joined(whole: Option<Told>, answer: Result<Told, Failure>) -> ControlFlow<Result<Told, Failure>, Told> {
    match (whole, answer) {
        (None, Ok(part @ (Told::Fenced(_) | Told::Shown(_)))) => ControlFlow::Continue(part),
        (Some(Told::Fenced(whole)), Ok(Told::Fenced(part))) => {
            ControlFlow::Continue(Told::Fenced([whole, part].concat()))
        }
        (Some(Told::Shown(whole)), Ok(Told::Shown(part))) => ControlFlow::Continue(Told::Shown([whole, part].concat())),
        (Some(_), Err(failure)) => ControlFlow::Break(Err(failure.after_a_part())),
        (_, other) => ControlFlow::Break(other),
    }
}
