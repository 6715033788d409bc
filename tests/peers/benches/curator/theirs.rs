//! Curator's lock. Its programs live through all rounds, because Java needs seconds until it is fast.

use std::time::Duration;

use anyhow::Result;
use test_support::{CuratorPeer, ZookeeperServer};

use crate::beside::figures::Figures;
use crate::beside::scenario::Kind;
use crate::turns;

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
            Kind::HandOvers { waiters, processes } => self.hand_overs([waiters / processes, processes], span),
        }
    }

    fn pairs(&mut self, threads: u32, span: Duration) -> Result<Figures> {
        let paths: Vec<_> = (0..threads).map(|thread| format!("/curator/own/{thread}")).collect();
        let [peer, _] = &mut self.0;
        let begun = peer.begin_turns(&paths, span);
        turns::pairs(&peer.turns(begun))
    }

    fn hand_overs(&mut self, [waiters, programs]: [u32; 2], span: Duration) -> Result<Figures> {
        let paths = vec![SHARED.to_owned(); waiters as usize];
        let peers = self.0.iter_mut().take(programs as usize);
        let begun: Vec<_> = peers.map(|peer| (peer.begin_turns(&paths, span), peer)).collect();
        let all: Vec<_> = begun.into_iter().map(|(claim, peer)| peer.turns(claim)).collect();
        turns::hand_overs(&all)
    }
}
