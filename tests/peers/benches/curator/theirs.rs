//! Curator's lock. Its programs live through all rounds, because Java needs seconds until it is fast.

use std::time::Duration;

use anyhow::{Context, Result};
use bench_measure::{Report, Turn};
use test_support::{CuratorPeer, ZookeeperServer};

use crate::beside::figures::Figures;
use crate::beside::scenario::{Kind, WAITERS};

/// How long Java works at a row before anything counts.
pub(crate) const WARM_UP: Duration = Duration::from_secs(4);
/// The lock that many wait for.
const SHARED: &str = "/curator/shared";

/// Two programs with Curator, each with a session.
pub(crate) struct Theirs([CuratorPeer; 2]);

impl Theirs {
    /// Starts them.
    pub(crate) fn connect(server: &ZookeeperServer, session: Duration) -> Self {
        Self([(); 2].map(|()| CuratorPeer::connect_to_measure(&server.address(), session)))
    }

    /// Lets Java compile what this needs.
    pub(crate) fn warm_up(&mut self, kind: Kind) -> Result<()> {
        self.run(kind, WARM_UP).map(drop)
    }

    /// Runs it once.
    pub(crate) fn run(&mut self, kind: Kind, span: Duration) -> Result<Figures> {
        match kind {
            Kind::Pairs(threads) => self.pairs(threads, span),
            Kind::HandOvers(programs) => self.hand_overs(programs, span),
        }
    }

    fn pairs(&mut self, threads: u32, span: Duration) -> Result<Figures> {
        let paths: Vec<_> = (0..threads).map(|thread| format!("/curator/own/{thread}")).collect();
        let [peer, _] = &mut self.0;
        let begun = peer.begin_turns(&paths, span);
        let turns = peer.turns(begun);
        let mut report = spanned(turns.iter().map(|turn| [turn.wanted, turn.released]))?;
        report.set_times(turns.iter().map(|turn| turn.released - turn.wanted).collect());
        Figures::of_pairs(&report)
    }

    fn hand_overs(&mut self, programs: u32, span: Duration) -> Result<Figures> {
        let paths = vec![SHARED.to_owned(); (WAITERS / programs) as usize];
        let peers = self.0.iter_mut().take(programs as usize);
        let mut begun: Vec<_> = peers.map(|peer| (peer.begin_turns(&paths, span), peer)).collect();
        let (mut reports, mut all) = (Vec::new(), Vec::new());
        for (claim, peer) in &mut begun {
            let turns = peer.turns(*claim);
            reports.push(spanned(turns.iter().map(|turn| [turn.wanted, turn.released]))?);
            let turn =
                turns.iter().map(|turn| Turn { waiter: turn.thread, acquired: turn.acquired, released: turn.leaving });
            all.push(turn.collect());
        }
        Figures::of_turns(&reports, &all)
    }
}

/// A report that says from when to when these took.
fn spanned(turns: impl Iterator<Item = [u64; 2]> + Clone) -> Result<Report> {
    let begun = turns.clone().map(|[begun, _]| begun).min().context("Curator took no lock")?;
    let ended = turns.map(|[_, ended]| ended).max().unwrap_or(begun);
    Ok(Report { begun, elapsed: Duration::from_nanos(ended - begun), ..Report::default() })
}
