//! Which primary serves which hash slot, as one server of a cluster said.

use std::collections::BTreeSet;
use std::sync::Arc;

use redis::Value;

use crate::address::Address;
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::wire::read;

/// The place of a hash slot that nobody serves.
const NOBODY: u16 = u16::MAX;

/// The primaries of a cluster, and its other servers.
#[derive(Clone)]
pub(crate) struct SlotMap {
    servers: Vec<Arc<Address>>,
    /// For each hash slot, the place of its primary in the list.
    primaries: Vec<u16>,
}

impl Default for SlotMap {
    fn default() -> Self {
        Self { servers: Vec::new(), primaries: vec![NOBODY; usize::from(HashSlot::COUNT)] }
    }
}

impl SlotMap {
    /// Reads an answer to `CLUSTER SLOTS`: for each range its first and last hash slot, its primary, and then its replicas.
    pub(crate) fn read(reply: Value, asked: &Address) -> Result<Self, Failure> {
        let mut map = Self::default();
        for range in read::<Vec<Vec<Value>>>(reply)? {
            let mut parts = range.into_iter();
            let mut next = || parts.next().ok_or_else(Failure::strange_answer);
            let (first, last, primary) = (read::<usize>(next()?)?, read::<usize>(next()?)?, next()?);
            let place = map.place(address(primary, asked)?);
            let served = map.primaries.get_mut(first..=last).ok_or_else(Failure::strange_answer)?;
            served.fill(place);
            // They are asked for the next map, in case that this primary is gone by then.
            for replica in parts {
                _ = map.place(address(replica, asked)?);
            }
        }
        Ok(map)
    }

    /// The primary that serves a hash slot, if any does.
    pub(crate) fn primary_of(&self, hash_slot: HashSlot) -> Option<Arc<Address>> {
        let place = *self.primaries.get(usize::from(hash_slot.get()))?;
        self.servers.get(usize::from(place)).map(Arc::clone)
    }

    /// All primaries in a fixed order.
    pub(crate) fn primaries(&self) -> Vec<Arc<Address>> {
        let mut places = self.primaries.clone();
        places.sort_unstable();
        places.dedup();
        let mut all: Vec<_> =
            places.iter().filter_map(|place| self.servers.get(usize::from(*place)).cloned()).collect();
        all.sort();
        all
    }

    /// All servers.
    pub(crate) fn servers(&self) -> &[Arc<Address>] {
        &self.servers
    }

    /// A hash slot has this primary from now on. Returns whether that was not known.
    pub(crate) fn moved(&mut self, hash_slot: HashSlot, to: Address) -> bool {
        let place = self.place(to);
        let served = self.primaries.get_mut(usize::from(hash_slot.get()));
        served.is_some_and(|served| std::mem::replace(served, place) != place)
    }

    /// How many hash slots have a primary.
    pub(crate) fn served(&self) -> usize {
        self.primaries.iter().filter(|place| **place != NOBODY).count()
    }

    /// The primaries of the hash slots that have another one, or none, in a newer map; `None` if nobody served them.
    pub(crate) fn left_in(&self, newer: &Self) -> BTreeSet<Option<Arc<Address>>> {
        let of = |map: &Self, place: u16| map.servers.get(usize::from(place)).cloned();
        let moves: BTreeSet<_> = self.primaries.iter().zip(&newer.primaries).collect();
        let moves = moves.into_iter().map(|(was, is)| (of(self, *was), of(newer, *is)));
        moves.filter(|(was, is)| was != is).map(|(was, _)| was).collect()
    }

    /// The place of a server in the list.
    fn place(&mut self, address: Address) -> u16 {
        let known = self.servers.iter().position(|server| **server == address);
        let place = known.unwrap_or_else(|| {
            self.servers.push(Arc::new(address));
            self.servers.len() - 1
        });
        u16::try_from(place).unwrap_or(NOBODY)
    }
}

/// Reads a server: its host, its port, and more that is not needed. If it has no host, it is the one that was asked.
fn address(server: Value, asked: &Address) -> Result<Address, Failure> {
    let mut parts = read::<Vec<Value>>(server)?.into_iter();
    let mut next = || parts.next().ok_or_else(Failure::strange_answer);
    let host = read::<Option<String>>(next()?)?.unwrap_or_default().to_ascii_lowercase();
    let port = u16::try_from(read::<i64>(next()?)?).map_err(|_| Failure::strange_answer())?;
    Ok(Address { host, port }.beside(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec()), Value::Array(Vec::new())])
    }

    fn named(host: &str, port: i64) -> Value {
        server(Value::BulkString(host.as_bytes().to_vec()), port)
    }

    fn range(first: i64, last: i64, servers: &[Value]) -> Value {
        Value::Array([&[Value::Int(first), Value::Int(last)], servers].concat())
    }

    fn map_of(ranges: Vec<Value>) -> Result<SlotMap, Failure> {
        SlotMap::read(Value::Array(ranges), &Address::read("seed:7000").unwrap())
    }

    fn hash_slot(number: u16) -> HashSlot {
        let mut all = (0_u32..).map(|key| HashSlot::of(key.to_string().as_bytes()));
        all.find(|hash_slot| hash_slot.get() == number).unwrap()
    }

    fn primary(map: &SlotMap, number: u16) -> Option<String> {
        map.primary_of(hash_slot(number)).map(|address| address.to_string())
    }

    fn three() -> SlotMap {
        map_of(vec![
            range(0, 5460, &[named("h1", 1), named("h4", 4)]),
            range(5461, 5461, &[server(Value::Nil, 2)]),
            range(5500, 16383, &[named("::1", 3), named("h1", 1)]),
        ])
        .unwrap()
    }

    #[test]
    fn each_hash_slot_has_the_primary_of_its_range() {
        let map = three();
        let primaries = [0, 5460, 5461, 5462, 5500, 16383].map(|number| primary(&map, number));
        let expected = [Some("h1:1"), Some("h1:1"), Some("seed:2"), None, Some("[::1]:3"), Some("[::1]:3")];
        assert_eq!(primaries.each_ref().map(Option::as_deref), expected);
        let texts = |all: &[Arc<Address>]| all.iter().map(|address| address.to_string()).collect::<Vec<_>>();
        assert_eq!(texts(&map.primaries()), ["[::1]:3", "h1:1", "seed:2"]);
        assert_eq!(texts(map.servers()), ["h1:1", "h4:4", "seed:2", "[::1]:3"]);
    }

    #[test]
    fn one_hash_slot_can_move_alone() {
        let (before, mut map, at) = (three(), three(), |text| Address::read(text).unwrap());
        let left = |old: &SlotMap, new: &SlotMap| {
            let all = old.left_in(new).into_iter();
            all.map(|server| server.map_or_else(String::new, |server| server.to_string())).collect::<Vec<_>>()
        };
        assert!(map.moved(hash_slot(7), at("h9:9")) && !map.moved(hash_slot(7), at("h9:9")));
        assert_eq!([6, 7, 8].map(|number| primary(&map, number).unwrap()), ["h1:1", "h9:9", "h1:1"]);
        assert_eq!((left(&before, &before), left(&before, &map)), (vec![], vec!["h1:1".to_owned()]));
        assert_eq!(left(&map, &before), ["h9:9"]);
        assert!(map.moved(hash_slot(7), at("h1:1")));
        assert_eq!(left(&before, &map), [""; 0], "whatever other servers are known");
        let served = map.served();
        assert!(map.moved(hash_slot(5462), at("h1:1")));
        assert_eq!((left(&before, &map), map.served()), (vec![String::new()], served + 1), "nobody served it");
    }

    #[test]
    fn an_answer_of_another_form_is_refused() {
        for ranges in [
            vec![Value::Int(1)],
            vec![range(0, 16384, &[named("h1", 1)])],
            vec![range(-1, 5, &[named("h1", 1)])],
            vec![range(0, 5, &[])],
            vec![range(0, 5, &[named("h1", 70_000)])],
        ] {
            assert!(map_of(ranges.clone()).is_err(), "{ranges:?}");
        }
        assert!(map_of(Vec::new()).unwrap().primaries().is_empty());
    }
}
