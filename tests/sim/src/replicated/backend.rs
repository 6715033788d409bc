//! The backend of a process: it asks the primary that the sentinels name, and leaves it when they name a later one.

use std::time::Duration;

use lock_core::station::{Action, Input};
use lock_core::{Batch, Moment};

use super::mistake::Mistake;
use super::topology::{Chosen, SENTINELS};
use crate::client::{Backend, Heard};
use crate::env::Env;
use crate::fault::Fault;
use crate::network::{ConnId, ConnectionEnd, ProcessId, StoreId, Tag};
use crate::one::{Ask, ConfigEpoch, Say, Translator, Words};

/// How long a sentinel may take to answer.
const LOOK_WITHIN: Duration = Duration::from_secs(1);
/// How long a client does not ask a sentinel, in milliseconds.
const LOOKS_EVERY: (u64, u64) = (500, 8000);

#[derive(Debug)]
pub(super) struct Follower {
    process: ProcessId,
    inner: Translator,
    follows: Chosen,
    /// The latest epoch that a sentinel has told it of.
    told: ConfigEpoch,
    look: Look,
    /// The sentinel that tells it of a new primary.
    watches: StoreId,
    mistake: Option<Mistake>,
}

/// What is in flight at a sentinel.
#[derive(Clone, Copy, Debug)]
enum Look {
    At(Moment),
    Asked(ConnId, Moment),
}

impl Follower {
    pub(super) fn new(process: ProcessId, inner: Translator, watches: StoreId, mistake: Option<Mistake>) -> Self {
        let (follows, told, look) = (Chosen::FIRST, Chosen::FIRST.epoch, Look::At(Moment::ORIGIN));
        Self { process, inner, follows, told, look, watches, mistake }
    }

    pub(super) fn told(&self) -> ConfigEpoch {
        self.told
    }

    fn look(&mut self, env: &mut Env<Words>, now: Moment) {
        if let Look::Asked(conn, _) = self.look {
            env.leave(conn, ConnectionEnd::Said);
        }
        let sentinel = env.dice.pick(&SENTINELS).filter(|_| env.dice.chance(500)).unwrap_or(self.watches);
        let conn = env.network.connect(self.process, sentinel);
        env.ask(conn, Tag(0), Ask::Topology);
        self.look = Look::Asked(conn, now + LOOK_WITHIN);
    }

    /// A sentinel knows of a new primary. Its clients ask at once.
    pub(super) fn announced(&mut self, sentinel: StoreId) {
        if let (true, Look::At(look)) = (sentinel == self.watches, &mut self.look) {
            *look = Moment::ORIGIN;
        }
    }

    fn look_later(&mut self, env: &mut Env<Words>, now: Moment) {
        let (low, high) = LOOKS_EVERY;
        self.look = Look::At(now + env.dice.millis(low, high));
    }

    /// A sentinel has said which primary it knows.
    fn learned(&mut self, env: &mut Env<Words>, now: Moment, chosen: Chosen) -> Vec<Heard> {
        if chosen.epoch < self.told {
            env.fired(Fault::OldNews);
        }
        self.told = self.told.max(chosen.epoch);
        let is_later = chosen.epoch > self.follows.epoch;
        let goes = is_later || self.mistake == Some(Mistake::GoesBack) && chosen != self.follows;
        if !goes {
            return Vec::new();
        }
        env.fired(Fault::Followed);
        self.follows = chosen;
        self.inner.follow(env, now, chosen.primary)
    }
}

impl Backend for Follower {
    type Talk = Words;

    fn run(&mut self, env: &mut Env<Words>, now: Moment, site: usize, action: Action) -> Vec<Heard> {
        self.inner.run(env, now, site, action)
    }

    fn renew(&mut self, env: &mut Env<Words>, now: Moment, batch: Batch) -> Vec<Heard> {
        self.inner.renew(env, now, batch)
    }

    fn next_wake(&self) -> Option<Moment> {
        let (Look::At(look) | Look::Asked(_, look)) = self.look;
        self.inner.next_wake().into_iter().chain([look]).min()
    }

    fn wake(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        let (Look::At(look) | Look::Asked(_, look)) = self.look;
        if look <= now {
            self.look(env, now);
        }
        self.inner.wake(env, now)
    }

    fn said(&mut self, env: &mut Env<Words>, now: Moment, conn: ConnId, tag: Tag, say: Say) -> Vec<Heard> {
        match (self.look, say) {
            (Look::Asked(asked, _), Say::Primary(primary, epoch)) if asked == conn => {
                env.leave(conn, ConnectionEnd::Said);
                self.look_later(env, now);
                self.learned(env, now, Chosen { primary: StoreId(primary), epoch })
            }
            (_, say) => self.inner.said(env, now, conn, tag, say),
        }
    }

    fn cut(&mut self, env: &mut Env<Words>, now: Moment, conn: ConnId) -> Vec<Heard> {
        if matches!(self.look, Look::Asked(asked, _) if asked == conn) {
            self.look_later(env, now);
        }
        self.inner.cut(env, now, conn)
    }

    fn hears(&self, conn: ConnId) -> bool {
        self.inner.hears(conn)
    }

    fn conns(&self) -> Vec<ConnId> {
        let look = if let Look::Asked(conn, _) = self.look { Some(conn) } else { None };
        self.inner.conns().into_iter().chain(look).collect()
    }

    fn inward(&mut self, now: Moment, site: usize, input: Input) -> Input {
        self.inner.inward(now, site, input)
    }
}
