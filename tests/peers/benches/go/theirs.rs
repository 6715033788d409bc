//! The mutex of etcd's client for Go. Each waiter has a session of its own, because mutexes of one session do not exclude each other.

use std::time::Duration;

use anyhow::Result;
use test_support::{EtcdServer, GoPeer, PeerTurn};

use crate::beside::figures::Figures;
use crate::beside::runs::{SPAN, WARM_UP};
use crate::beside::scenario::Kind;
use crate::turns;

/// Runs it once.
pub(crate) fn run(server: &EtcdServer, ttl: Duration, kind: Kind) -> Result<Figures> {
    match kind {
        Kind::Pairs(tasks) => {
            let keys: Vec<_> = (0..tasks).map(|task| format!("go/own/{task}")).collect();
            turns::pairs(&programs(server, ttl, &[keys]).concat())
        }
        Kind::HandOvers { waiters, processes } => {
            let keys = vec!["go/shared".to_owned(); (waiters / processes) as usize];
            turns::hand_overs(&programs(server, ttl, &vec![keys; processes as usize]))
        }
    }
}

/// The turns of programs with these keys, once they are warm.
fn programs(server: &EtcdServer, ttl: Duration, keys: &[Vec<String>]) -> Vec<Vec<PeerTurn>> {
    let prepare = |keys: &Vec<String>| GoPeer::prepare_turns(server, ttl.as_secs() as u32, WARM_UP + SPAN, keys);
    let mut peers: Vec<_> = keys.iter().map(prepare).collect();
    peers.iter_mut().for_each(GoPeer::begin_turns);
    let mut all: Vec<_> = peers.iter().map(|peer| peer.turns(WARM_UP + SPAN)).collect();
    let begun = all.iter().flatten().map(|turn| turn.wanted).min().unwrap_or_default();
    let warm = begun + WARM_UP.as_nanos() as u64;
    all.iter_mut().for_each(|turns| turns.retain(|turn| turn.wanted >= warm));
    all
}
