//! The answers of a node. No I/O.

use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, NodeState, NodeTime, Record, RunId, Told, View};
use lock_core::{Fenced, FencingToken, Released};
use redis::Value::{self, BulkString, Int};

use crate::failure::Failure;
use crate::requests::value::Stored;
use crate::server::server_info::ServerInfo;
use crate::wire::{Line, read as read_as, remaining};

/// Reads the reply to a request.
pub(super) fn read(ask: &Ask, line: Line<'_>, reply: Value) -> Result<Told, Failure> {
    if matches!(&reply, BulkString(word) if word == b"abstains") {
        return Ok(Told::Abstains);
    }
    match ask {
        Ask::Acquire { wish, .. } => acquired(*wish, &reply).ok_or_else(Failure::strange_answer),
        Ask::Fence { leases, .. } => fenced(leases.len(), &read_as::<Vec<u64>>(reply)?),
        Ask::Release(_) => match read_as::<i64>(reply)? {
            1 => Ok(Told::Released(line.released(Released::Released))),
            0 => Ok(Told::Released(line.released(Released::NotHeld))),
            _ => Err(Failure::strange_answer()),
        },
        Ask::Record { seen, .. } => recorded(seen.len(), &read_as::<Vec<(String, u64)>>(reply)?),
        Ask::Look | Ask::Mark { .. } | Ask::Install { .. } | Ask::Move { .. } => {
            Ok(Told::View(Box::new(view(line.server_info, read_as(reply)?))))
        }
        Ask::Inspect(inspection) => super::inspection::read(inspection, line, reply),
    }
}

fn acquired(wish: FencingToken, reply: &Value) -> Option<Told> {
    let granted = |token, clock: i64| Some(Told::Granted { token, clock: NodeTime(u64::try_from(clock).ok()?) });
    if let Int(clock) = reply {
        return granted(wish, *clock);
    }
    let Value::Array(parts) = reply else { return None };
    match parts.as_slice() {
        [Int(token), Int(clock)] => granted(FencingToken::try_from(*token).ok()?, *clock),
        [BulkString(value), Int(pttl)] => {
            Some(Told::Held { holder: Stored::holder(value), remaining: remaining(*pttl) })
        }
        _ => None,
    }
}

fn fenced(asked: usize, answers: &[u64]) -> Result<Told, Failure> {
    if answers.len() != asked {
        return Err(Failure::strange_answer());
    }
    let fenced = |&answer: &u64| match answer {
        0 => Ok(Fenced::NotHeld),
        1 => Ok(Fenced::Acknowledged),
        // No grant is below the token 1, and so none that is higher than another.
        token => FencingToken::new(token).map(Fenced::Higher).map_err(|_| Failure::strange_answer()),
    };
    answers.iter().map(fenced).collect::<Result<_, _>>().map(Told::Fenced)
}

/// For each member an epoch and its age, or no epoch.
fn recorded(asked: usize, answers: &[(String, u64)]) -> Result<Told, Failure> {
    if answers.len() != asked {
        return Err(Failure::strange_answer());
    }
    let recorded = |(epoch, age): &(String, u64)| match epoch.as_str() {
        "" => Ok(None),
        epoch => epoch.parse().map(|epoch| Some(Record { epoch, age: Duration::from_micros(*age) })),
    };
    let all: Result<_, _> = answers.iter().map(recorded).collect();
    all.map(Told::Records).map_err(|_| Failure::strange_answer())
}

type Text = Option<String>;
type Number = Option<u64>;
/// The contents of a node's hash: seal, pending, since, fence, longest, then members and `max_ttl` of the deployment, of the
/// one that marked it and of the predecessor, and the number of the move to it.
type Fields = (Text, Text, Number, Number, Number, Text, Number, Text, Number, Text, Number, Number);
/// The same, whether it has voted in its deployment, and its clock.
type Known = (Fields, Number, u64);

fn view(server_info: &ServerInfo, (fields, voted, clock): Known) -> View {
    let (seal, pending, since, fence, longest, members, max_ttl, marked, marked_max_ttl, before, before_max_ttl, moves) =
        fields;
    let of_this_run = |seal: Option<String>| epoch_of(&seal?, &server_info.run_id);
    let since = Duration::from_micros(clock.saturating_sub(since.unwrap_or(clock)));
    let state = match (of_this_run(seal), of_this_run(pending)) {
        (Some(epoch), _) => NodeState::Voting(epoch),
        (None, Some(epoch)) => NodeState::Abstaining { epoch, since },
        (None, None) => NodeState::Forgetful,
    };
    let abstains = matches!(state, NodeState::Abstaining { .. });
    View {
        run: RunId(server_info.run_id.clone()),
        state,
        counter: fence.unwrap_or(0),
        longest: Duration::from_millis(longest.unwrap_or(0)),
        membership: membership(members, max_ttl),
        marked_for: membership(marked, marked_max_ttl).filter(|_| abstains),
        predecessor: membership(before, before_max_ttl),
        // Earlier versions do not store it.
        has_voted: voted.is_some() || matches!(state, NodeState::Voting(_)),
        moves: moves.unwrap_or(0),
        clock: NodeTime(clock),
        evicts: server_info.evicts.clone(),
    }
}

fn membership(members: Option<String>, max_ttl: Option<u64>) -> Option<Membership> {
    members.zip(max_ttl).map(|(members, max_ttl)| Membership {
        members: members.split_whitespace().map(|member| member.replace(char::is_control, "?")).collect(),
        max_ttl: Duration::from_millis(max_ttl),
    })
}

/// The epoch of a seal, if it is of this run.
fn epoch_of(seal: &str, run_id: &str) -> Option<Epoch> {
    seal.strip_prefix(run_id)?.strip_prefix(':')?.parse().ok()
}
