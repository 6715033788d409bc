//! Latches, inside one transaction. An expired latch is one that is not there.

use lock_core::latch::{Act, ArrivalId, Count, Generation, LatchState, Request, Seen};
use lock_core::{LockName, Ttl};
use rusqlite::types::Type;
use rusqlite::{Error as SqlError, Row, named_params};

use crate::error::Fault;
use crate::timing::wall_micros;
use crate::transaction::Transaction;
use crate::wire::{SWEEP_ROWS, count, nanos, signed, unsigned};

const LATCH: &str = "SELECT generation, expected, arrived, completed FROM latches
    WHERE name = :name AND expires_ns > :now";
const SET_LATCH: &str = "INSERT INTO latches(name, generation, expected, arrived, completed, boot, expires_ns)
    VALUES (:name, :generation, :expected, :arrived, :completed, :boot, :until)
    ON CONFLICT(name) DO UPDATE SET generation = :generation, expected = :expected, arrived = :arrived,
        completed = :completed, boot = :boot,
        expires_ns = max(expires_ns, :until)";
const DROP_LATCH: &str = "DELETE FROM latches WHERE name = :name";
const DROP_ARRIVALS: &str = "DELETE FROM arrivals WHERE name = :name AND generation < :generation";
const DROP_ALL_ARRIVALS: &str = "DELETE FROM arrivals WHERE name = :name";

const HAS_ARRIVED: &str = "SELECT 1 FROM arrivals WHERE name = :name AND generation = :generation AND id = :id";
/// In the generation before, the only other one that is stored. With `generation < :generation`, SQLite would read all its rows.
const CAME_BEFORE: &str = "SELECT 1 FROM arrivals WHERE name = :name AND id = :id AND call = :call
    AND generation = (SELECT max(generation) FROM arrivals WHERE name = :name AND generation < :generation)";
const ADD_ARRIVAL: &str = "INSERT INTO arrivals(name, generation, id, call) VALUES (:name, :generation, :id, :call)";

/// The latches that have expired, among those that follow a name and among the first ones.
const EXPIRED: &str = "SELECT name FROM (
        SELECT * FROM (SELECT * FROM latches WHERE name > :name ORDER BY name LIMIT :limit)
        UNION ALL SELECT * FROM (SELECT * FROM latches ORDER BY name LIMIT :limit))
    WHERE expires_ns <= :now";

impl Transaction<'_> {
    pub(crate) fn seen(&self, name: &LockName) -> Result<Seen, Fault> {
        Ok(Seen { state: self.latch_state(&self.key(name))?, told: false })
    }

    pub(crate) fn latch(&self, request: &Request) -> Result<Seen, Fault> {
        let key = self.key(&request.name);
        let state = self.latch_state(&key)?;
        match &request.act {
            Act::Look { .. } => {}
            Act::Arrive { id, call, ttl } => {
                let state = self.present(&key, state)?;
                self.arrive(&key, state, id, *call, *ttl)?;
            }
            Act::Make { ttl } => {
                let state = self.present(&key, state)?;
                self.set_latch(&key, state, *ttl)?;
            }
            Act::Expect { count, generation, ttl } => {
                let state = state.filter(|state| state.generation == *generation);
                if let Some(mut state) = state.filter(|state| state.expected.is_none_or(|known| known == *count)) {
                    state.expected = Some(*count);
                    self.set_latch(&key, state, *ttl)?;
                }
            }
            Act::Reset { generation, ttl } => {
                if let Some(state) = state.filter(|state| state.generation == *generation) {
                    self.begin_anew(&key, state, *ttl)?;
                }
            }
        }
        self.seen(&request.name)
    }

    fn latch_state(&self, key: &str) -> Result<Option<LatchState>, Fault> {
        self.live(LATCH, key, state)
    }

    /// The latch, or a new one in place of one that has expired.
    fn present(&self, key: &str, state: Option<LatchState>) -> Result<LatchState, Fault> {
        if let Some(state) = state {
            return Ok(state);
        }
        self.drop_latch(key)?;
        self.sweep_latches(key)?;
        Ok(LatchState::new(Generation::new(wall_micros())))
    }

    fn arrive(&self, key: &str, mut state: LatchState, id: &ArrivalId, call: u64, ttl: Ttl) -> Result<(), Fault> {
        let (generation, id, call) = (signed(state.generation.get()), id.as_str(), format!("{call:016x}"));
        let has = |sql: &str, params: &[(&str, &dyn rusqlite::ToSql)]| self.db.prepare_cached(sql)?.exists(params);
        let has_arrived = has(HAS_ARRIVED, named_params! { ":name": key, ":generation": generation, ":id": id })?;
        let came_before = named_params! { ":name": key, ":generation": generation, ":id": id, ":call": call };
        let counts = state.takes_more() && !has_arrived && !has(CAME_BEFORE, came_before)?;
        if counts {
            self.run(ADD_ARRIVAL, came_before)?;
            state.arrived += 1;
        }
        self.set_latch(key, state, ttl)
    }

    /// The ids of the generation that ends are kept: a late repetition of one of its arrivals is not counted again.
    fn begin_anew(&self, key: &str, ended: LatchState, ttl: Ttl) -> Result<(), Fault> {
        let generation = ended.generation;
        self.run(DROP_ARRIVALS, named_params! { ":name": key, ":generation": signed(generation.get()) })?;
        let mut state = LatchState::new(Generation::new(wall_micros().max(generation.get() + 1)));
        state.completed = if ended.is_complete() { Some(generation) } else { ended.completed };
        self.set_latch(key, state, ttl)
    }

    fn set_latch(&self, key: &str, state: LatchState, ttl: Ttl) -> Result<(), Fault> {
        let number = |generation: Generation| signed(generation.get());
        self.run(
            SET_LATCH,
            named_params! {
                ":name": key, ":generation": number(state.generation), ":expected": state.expected.map(Count::get),
                ":arrived": state.arrived, ":completed": state.completed.map(number),
                ":boot": self.boot(), ":until": nanos(self.now + ttl.get()),
            },
        )?;
        Ok(())
    }

    fn drop_latch(&self, key: &str) -> Result<(), Fault> {
        self.run(DROP_LATCH, named_params! { ":name": key })?;
        self.run(DROP_ALL_ARRIVALS, named_params! { ":name": key })?;
        Ok(())
    }

    /// Called with each new latch: drops some that have expired, and their arrivals, every now and then.
    fn sweep_latches(&self, key: &str) -> Result<(), Fault> {
        if !self.settings.is_sweep_due() {
            return Ok(());
        }
        let expired = named_params! { ":name": key, ":now": nanos(self.now), ":limit": SWEEP_ROWS };
        let mut statement = self.db.prepare_cached(EXPIRED)?;
        let keys: Vec<String> = statement.query_map(expired, |row| row.get(0))?.collect::<Result<_, _>>()?;
        keys.iter().try_for_each(|key| self.drop_latch(key))
    }
}

fn state(row: &Row<'_>) -> Result<LatchState, SqlError> {
    let number = |number: i64| Generation::new(unsigned(number));
    let mut state = LatchState::new(number(row.get(0)?));
    let expected = row.get::<_, Option<u32>>(1)?.map(Count::new).transpose();
    state.expected = expected.map_err(|error| SqlError::FromSqlConversionFailure(1, Type::Integer, Box::new(error)))?;
    state.arrived = count(row.get(2)?);
    state.completed = row.get::<_, Option<i64>>(3)?.map(number);
    Ok(state)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::{Connection, StatementStatus};

    use super::*;
    use crate::schema;

    #[test]
    fn an_arrival_does_not_read_all_those_of_the_generation_before() {
        let directory = tempfile::tempdir().unwrap();
        let db = Connection::open(directory.path().join("locks.db")).unwrap();
        schema::adopt(&db, Path::new("locks.db")).unwrap();
        db.execute_batch(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)
             INSERT INTO arrivals SELECT 'a', 7, 'id ' || n, '00' FROM n",
        )
        .unwrap();
        let mut came_before = db.prepare(CAME_BEFORE).unwrap();
        for (id, call, expected) in [("id 9", "00", true), ("id 9", "01", false), ("another", "00", false)] {
            let arrival = named_params! { ":name": "a", ":generation": 8, ":id": id, ":call": call };
            assert_eq!(came_before.exists(arrival).unwrap(), expected, "{id} {call}");
        }
        let steps = came_before.get_status(StatementStatus::VmStep);
        assert!(steps < 1000, "{steps} steps");
    }
}
