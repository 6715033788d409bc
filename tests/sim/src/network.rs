//! The network: connections, and the packets in flight on them.
//!
//! What is sent over one connection arrives in the order in which it was sent; nothing is certain between connections,
//! nor about messages. A cut loses the tail of what is in flight. What remains of it may arrive long after the client
//! has reconnected: then it is a ghost. Between a process and a store there may be a partition for some time, in one
//! direction or in both.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::StoreEvent;

use crate::clock::Time;
use crate::dice::Dice;
use crate::fault::{Fault, Tally};
pub(crate) use crate::packet::{ConnId, Fate, Gap, Packet, ProcessId, StoreId, Tag, Talk, Way};

/// How likely things go wrong, each in a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) lose: u32,
    /// An answer or a message arrives twice.
    pub(crate) double: u32,
    /// A request arrives twice, one right behind the other.
    pub(crate) repeat: u32,
    pub(crate) slow: u32,
}

/// How long the server believes a connection to be alive whose client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    Said,
    HalfOpen,
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) process: ProcessId,
    store: StoreId,
    /// When the last packet arrives, there and back.
    there: Time,
    back: Time,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Whole,
    /// Nothing that is sent from now on arrives.
    Cut,
}

#[derive(Debug)]
pub(crate) struct Network<A, S> {
    pub(crate) weather: Weather,
    conns: BTreeMap<ConnId, Conn>,
    packets: BTreeMap<(Time, u64), (ConnId, Packet<A, S>)>,
    gaps: BTreeMap<(ProcessId, StoreId, Way), Gap>,
    last_number: u64,
}

impl<A, S> Default for Network<A, S> {
    fn default() -> Self {
        let (weather, conns) = (Weather::default(), BTreeMap::new());
        Self { weather, conns, packets: BTreeMap::new(), gaps: BTreeMap::new(), last_number: 0 }
    }
}

/// The longest time that a ghost, or anything else, is in flight. It is below the shortest lifetime of a tombstone.
const GHOST_MAX: Duration = Duration::from_secs(5);
const SLOW_MAX: Duration = Duration::from_millis(2500);
/// The longest time that a message is in flight: nothing ensures that it is read soon.
const PUSH_MAX: Duration = Duration::from_secs(15);
const HALF_OPEN_MAX: Duration = Duration::from_secs(30);

impl<A: Clone, S: Clone> Network<A, S> {
    pub(crate) fn connect(&mut self, process: ProcessId, store: StoreId) -> ConnId {
        let id = ConnId(self.number());
        let (there, back) = (Time::START, Time::START);
        self.conns.insert(id, Conn { process, store, there, back, state: State::Whole });
        id
    }

    /// Nothing goes wrong from now on.
    pub(crate) fn calm_down(&mut self) {
        self.weather = Weather::default();
        self.gaps.clear();
    }

    /// Nothing passes in that direction for some time.
    pub(crate) fn open_gap(&mut self, process: ProcessId, store: StoreId, way: Way, gap: Gap) {
        self.gaps.insert((process, store, way), gap);
    }

    pub(crate) fn store(&self, conn: ConnId) -> Option<StoreId> {
        self.conns.get(&conn).map(|conn| conn.store)
    }

    pub(crate) fn process(&self, conn: ConnId) -> Option<ProcessId> {
        self.conns.get(&conn).map(|conn| conn.process)
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        self.packets.keys().next().map(|(at, _)| *at)
    }

    pub(crate) fn take_due(&mut self, now: Time) -> Option<(ConnId, Packet<A, S>)> {
        let first = self.packets.first_entry().filter(|packet| packet.key().0 <= now)?;
        Some(first.remove())
    }

    /// The requests that may still arrive.
    pub(crate) fn asks(&self) -> impl Iterator<Item = &A> {
        self.packets.values().filter_map(|(_, packet)| match packet {
            Packet::Ask(_, ask) => Some(ask),
            Packet::Say(..) | Packet::Push(_) | Packet::CutAtClient | Packet::CutAtServer => None,
        })
    }

    pub(crate) fn ask(&mut self, now: Time, dice: &mut Dice, tally: &mut Tally, conn: ConnId, tag: Tag, ask: A) {
        let Some(at) = self.arrival(now, dice, tally, conn, Way::There) else {
            tally.count(Fault::RequestLost);
            return;
        };
        if dice.chance(self.weather.repeat) {
            tally.count(Fault::RequestDoubled);
            self.post(at, conn, Packet::Ask(tag, ask.clone()));
        }
        self.post(at, conn, Packet::Ask(tag, ask));
    }

    pub(crate) fn say(&mut self, now: Time, dice: &mut Dice, tally: &mut Tally, conn: ConnId, tag: Tag, say: S) {
        let Some(at) = self.arrival(now, dice, tally, conn, Way::Back) else {
            tally.count(Fault::AnswerLost);
            return;
        };
        if dice.chance(self.weather.double) {
            tally.count(Fault::AnswerDoubled);
            self.post(at, conn, Packet::Say(tag, say.clone()));
        }
        self.post(at, conn, Packet::Say(tag, say));
    }

    /// When a packet that is sent now arrives, behind everything that was sent before it; or never.
    fn arrival(&mut self, now: Time, dice: &mut Dice, tally: &mut Tally, conn: ConnId, way: Way) -> Option<Time> {
        if self.is_lost(dice, conn) {
            return None;
        }
        let delay = self.delay(dice, tally);
        let line = self.conns.get_mut(&conn)?;
        let gap = self.gaps.get(&(line.process, line.store, way)).filter(|gap| now < gap.until);
        if let Some(gap) = gap {
            tally.count(Fault::Gap);
            let is_lost = match gap.fate {
                Fate::Lost => true,
                Fate::Late => false,
                Fate::Either => dice.chance(500),
            };
            if is_lost {
                return None;
            }
        }
        let last = match way {
            Way::There => &mut line.there,
            Way::Back => &mut line.back,
        };
        *last = (gap.map_or(now, |gap| gap.until) + delay).max(*last);
        Some(*last)
    }

    /// A message keeps no order, not even with the answers on its own connection.
    pub(crate) fn push(&mut self, now: Time, dice: &mut Dice, tally: &mut Tally, conn: ConnId, event: StoreEvent) {
        if self.is_lost(dice, conn) {
            tally.count(Fault::PushLost);
            return;
        }
        let late =
            if dice.chance(self.weather.slow / 4) { dice.between(Duration::ZERO, PUSH_MAX) } else { Duration::ZERO };
        let at = now + self.delay(dice, tally) + late;
        if self.conns.get(&conn).is_some_and(|line| at < line.back) {
            tally.count(Fault::PushOvertook);
        }
        if dice.chance(self.weather.double) {
            tally.count(Fault::PushDoubled);
            let again = now + self.delay(dice, tally);
            self.post(again, conn, Packet::Push(event.clone()));
        }
        self.post(at, conn, Packet::Push(event));
    }

    /// Cuts a connection in the middle. Each side sees it in its own time.
    pub(crate) fn cut(&mut self, now: Time, dice: &mut Dice, tally: &mut Tally, conn: ConnId) {
        let farewell = if dice.chance(300) { ConnectionEnd::HalfOpen } else { ConnectionEnd::Said };
        self.leave(now, dice, tally, conn, farewell);
        let seen = now + dice.millis(0, 2000);
        self.post(seen, conn, Packet::CutAtClient);
    }

    /// The client's end is gone. What it sent may still arrive in part; what is sent back is lost.
    pub(crate) fn leave(
        &mut self,
        now: Time,
        dice: &mut Dice,
        tally: &mut Tally,
        conn: ConnId,
        farewell: ConnectionEnd,
    ) {
        let Some(line) = self.conns.get_mut(&conn).filter(|line| line.state == State::Whole) else { return };
        line.state = State::Cut;
        let arrived = self.lose_tail(now, dice, tally, conn);
        let seen = match farewell {
            ConnectionEnd::Said => dice.millis(0, 100),
            ConnectionEnd::HalfOpen => {
                tally.count(Fault::HalfOpen);
                dice.between(Duration::from_secs(1), HALF_OPEN_MAX)
            }
        };
        self.post(arrived.max(now + seen), conn, Packet::CutAtServer);
    }

    /// Loses the tail of the requests in flight; the others arrive, perhaps much later. Returns when the last one does.
    fn lose_tail(&mut self, now: Time, dice: &mut Dice, tally: &mut Tally, conn: ConnId) -> Time {
        let in_flight =
            self.packets.iter().filter(|(_, (on, packet))| *on == conn && matches!(packet, Packet::Ask(..)));
        let keys: Vec<_> = in_flight.map(|(key, _)| *key).collect();
        let kept = dice.from(0, keys.len());
        let late = if dice.chance(500) { dice.between(Duration::ZERO, GHOST_MAX - SLOW_MAX) } else { Duration::ZERO };
        let mut last = now;
        for (index, key) in keys.into_iter().enumerate() {
            let Some((_, packet)) = self.packets.remove(&key) else { continue };
            if index < kept {
                last = key.0 + late;
                self.post(last, conn, packet);
            } else {
                tally.count(Fault::RequestLost);
            }
        }
        last
    }

    /// A store ended: nothing arrives there any more, but what it sent before may still arrive.
    pub(crate) fn store_ended(&mut self, now: Time, dice: &mut Dice, store: StoreId) {
        let conns = &self.conns;
        let leads_there = |conn: &ConnId| conns.get(conn).is_some_and(|conn| conn.store == store);
        self.packets
            .retain(|_, (conn, packet)| !matches!(packet, Packet::Ask(..) | Packet::CutAtServer) || !leads_there(conn));
        let there = self.conns.iter_mut().filter(|(_, conn)| conn.store == store && conn.state == State::Whole);
        let mut cut = Vec::new();
        for (id, conn) in there {
            conn.state = State::Cut;
            cut.push((*id, conn.back.max(now)));
        }
        for (id, at) in cut {
            self.post(at + dice.millis(0, 500), id, Packet::CutAtClient);
        }
    }

    /// Whether the client, or the network, closed the connection.
    pub(crate) fn is_left(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_none_or(|conn| conn.state == State::Cut)
    }

    /// There is no server to connect to.
    pub(crate) fn refuse(&mut self, now: Time, conn: ConnId) {
        if let Some(line) = self.conns.get_mut(&conn).filter(|line| line.state == State::Whole) {
            line.state = State::Cut;
            self.post(now + Duration::from_millis(1), conn, Packet::CutAtClient);
        }
    }

    fn is_lost(&self, dice: &mut Dice, conn: ConnId) -> bool {
        let whole = self.conns.get(&conn).is_some_and(|conn| conn.state == State::Whole);
        !whole || dice.chance(self.weather.lose)
    }

    fn delay(&self, dice: &mut Dice, tally: &mut Tally) -> Duration {
        if dice.chance(self.weather.slow) {
            tally.count(Fault::Delayed);
            return dice.between(Duration::from_millis(5), SLOW_MAX);
        }
        dice.between(Duration::from_micros(50), Duration::from_millis(1))
    }

    /// Makes a packet arrive then, whatever the network does.
    pub(crate) fn post(&mut self, at: Time, conn: ConnId, packet: Packet<A, S>) {
        let number = self.number();
        self.packets.insert((at, number), (conn, packet));
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}
