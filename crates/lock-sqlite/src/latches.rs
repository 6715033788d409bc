//! Latches, inside one transaction. An expired latch counts as absent.

use lock_core::latch::{ArrivalId, Count, Generation, LatchState, Request, Seen};
use lock_core::{LockName, Moment};
use lock_rules::{LatchRows, LatchUpdate, ask_latch};
use rusqlite::types::Type;
use rusqlite::{Error as SqlError, Row, named_params};

use crate::error::Fault;
use crate::settings::SWEEP_ROWS;
use crate::timing::wall_micros;
use crate::transaction::Transaction;
use crate::wire::{count, nanos, signed, unsigned};

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
        Ok(Seen { state: OneLatch { transaction: self, key: self.key(name) }.state()?, told: false })
    }

    pub(crate) fn latch(&self, request: &Request) -> Result<Seen, Fault> {
        let mut latch = OneLatch { transaction: self, key: self.key(&request.name) };
        // Its waiters poll.
        let (state, _) = ask_latch(&mut latch, request)?;
        Ok(Seen { state, told: false })
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
        let keys: Vec<String> = self.all(EXPIRED, expired, |row| row.get(0))?;
        keys.iter().try_for_each(|key| self.drop_latch(key))
    }
}

/// One latch during one request, as the rules see it.
struct OneLatch<'a> {
    transaction: &'a Transaction<'a>,
    key: String,
}

impl LatchRows for OneLatch<'_> {
    type Error = Fault;

    fn now(&self) -> Moment {
        self.transaction.now
    }

    fn state(&mut self) -> Result<Option<LatchState>, Fault> {
        self.transaction.live(LATCH, &self.key, state)
    }

    fn has_arrived(&mut self, generation: Generation, id: &ArrivalId) -> Result<bool, Fault> {
        let arrival = named_params! { ":name": self.key, ":generation": signed(generation.get()), ":id": id.as_str() };
        Ok(self.transaction.one(HAS_ARRIVED, arrival, |_| Ok(()))?.is_some())
    }

    fn has_arrived_before(&mut self, generation: Generation, id: &ArrivalId, call: u64) -> Result<bool, Fault> {
        let (generation, call) = (signed(generation.get()), format!("{call:016x}"));
        let arrival = named_params! { ":name": self.key, ":generation": generation, ":id": id.as_str(), ":call": call };
        Ok(self.transaction.one(CAME_BEFORE, arrival, |_| Ok(()))?.is_some())
    }

    fn next_generation(&mut self, above: Option<Generation>) -> Result<Generation, Fault> {
        Ok(Generation::new(wall_micros().max(above.map_or(0, |above| above.get() + 1))))
    }

    fn write(&mut self, update: LatchUpdate<'_>) -> Result<(), Fault> {
        self.make_room(update.state)?;
        if let Some((id, call)) = update.arrival {
            let (generation, call) = (signed(update.state.generation.get()), format!("{call:016x}"));
            let arrival =
                named_params! { ":name": self.key, ":generation": generation, ":id": id.as_str(), ":call": call };
            self.transaction.run(ADD_ARRIVAL, arrival)?;
        }
        self.set(update)
    }
}

impl OneLatch<'_> {
    /// Drops what a new latch or a new generation replaces.
    fn make_room(&mut self, state: LatchState) -> Result<(), Fault> {
        match self.state()?.map(|before| before.generation) {
            None => {
                self.transaction.drop_latch(&self.key)?;
                self.transaction.sweep_latches(&self.key)
            }
            Some(before) if before != state.generation => {
                let ended = named_params! { ":name": self.key, ":generation": signed(before.get()) };
                self.transaction.run(DROP_ARRIVALS, ended).map(drop)
            }
            Some(_) => Ok(()),
        }
    }

    fn set(&self, LatchUpdate { state, until, .. }: LatchUpdate<'_>) -> Result<(), Fault> {
        let number = |generation: Generation| signed(generation.get());
        self.transaction.run(
            SET_LATCH,
            named_params! {
                ":name": self.key, ":generation": number(state.generation), ":expected": state.expected.map(Count::get),
                ":arrived": state.arrived, ":completed": state.completed.map(number),
                ":boot": self.transaction.boot(), ":until": nanos(until),
            },
        )?;
        Ok(())
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
