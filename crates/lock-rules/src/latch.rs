//! Latches: what a request about one means. A latch is not a lock, and has rows of its own.

use lock_core::latch::{Act, ArrivalId, Generation, LatchState, Request};
use lock_core::{Moment, Ttl};

/// The rows of one latch at one moment. A latch that has expired at [`LatchRows::now`] is not there.
///
/// A request calls [`LatchRows::write`] at most once, as its last step.
pub trait LatchRows {
    /// The error of a read or the write.
    type Error;

    /// The store's clock when the rows were read.
    fn now(&self) -> Moment;

    /// The latch; `None` if there is none.
    ///
    /// # Errors
    /// The store's.
    fn state(&mut self) -> Result<Option<LatchState>, Self::Error>;

    /// Whether this id was counted in this generation.
    ///
    /// # Errors
    /// The store's.
    fn has_arrived(&mut self, generation: Generation, id: &ArrivalId) -> Result<bool, Self::Error>;

    /// Whether this call counted this id in the generation before.
    ///
    /// # Errors
    /// The store's.
    fn has_arrived_before(&mut self, generation: Generation, id: &ArrivalId, call: u64) -> Result<bool, Self::Error>;

    /// The number of a new generation, above all earlier ones of this latch.
    ///
    /// # Errors
    /// The store's.
    fn next_generation(&mut self, above: Option<Generation>) -> Result<Generation, Self::Error>;

    /// Makes all changes, or none.
    ///
    /// # Errors
    /// The store's.
    fn write(&mut self, update: LatchUpdate<'_>) -> Result<(), Self::Error>;
}

/// The changes of a request to a latch. Arrivals of its generation and of the one before are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatchUpdate<'a> {
    /// The latch from now on. If its generation is new, it has no arrivals.
    pub state: LatchState,
    /// It lasts until then at least.
    pub until: Moment,
    /// An id to count, and the call that did.
    pub arrival: Option<(&'a ArrivalId, u64)>,
}

/// The effect of a request on a latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that concerns its waiters.
    Minor,
    /// All have arrived now, or a new generation has begun: waiters are to be notified.
    Major,
}

/// Carries out a request about a latch. Returns the latch as it is then, and whether its waiters are to be notified.
///
/// # Errors
/// Those of the rows. Then nothing was changed.
pub fn ask_latch<R: LatchRows>(rows: &mut R, request: &Request) -> Result<(Option<LatchState>, Change), R::Error> {
    let state = rows.state()?;
    match &request.act {
        Act::Look { .. } => Ok((state, Change::Minor)),
        Act::Make { ttl } => {
            let present = present(rows, state)?;
            update(rows, present, present, *ttl, None)
        }
        Act::Arrive { id, call, ttl } => arrive(rows, state, (id, *call), *ttl),
        Act::Expect { count, generation, ttl } => {
            let is_open = |state: &LatchState| state.expected.is_none_or(|known| known == *count);
            match state.filter(|state| state.generation == *generation && is_open(state)) {
                Some(present) => {
                    let mut state = present;
                    state.expected = Some(*count);
                    update(rows, present, state, *ttl, None)
                }
                None => Ok((state, Change::Minor)),
            }
        }
        Act::Reset { generation, ttl } => match state.filter(|state| state.generation == *generation) {
            Some(ended) => reset(rows, ended, *ttl),
            None => Ok((state, Change::Minor)),
        },
    }
}

/// The latch, or a new one.
fn present<R: LatchRows>(rows: &mut R, state: Option<LatchState>) -> Result<LatchState, R::Error> {
    match state {
        Some(state) => Ok(state),
        None => Ok(LatchState::new(rows.next_generation(None)?)),
    }
}

fn arrive<R: LatchRows>(
    rows: &mut R,
    state: Option<LatchState>,
    (id, call): (&ArrivalId, u64),
    ttl: Ttl,
) -> Result<(Option<LatchState>, Change), R::Error> {
    let present = present(rows, state)?;
    let generation = present.generation;
    let counts =
        present.takes_more() && !rows.has_arrived(generation, id)? && !rows.has_arrived_before(generation, id, call)?;
    if !counts {
        return update(rows, present, present, ttl, None);
    }
    let mut state = present;
    state.arrived += 1;
    update(rows, present, state, ttl, Some((id, call)))
}

/// Begins a new generation. The ids of the one that ends are kept, so that a late repetition of an arrival is not counted again.
fn reset<R: LatchRows>(rows: &mut R, ended: LatchState, ttl: Ttl) -> Result<(Option<LatchState>, Change), R::Error> {
    let completed = if ended.is_complete() { Some(ended.generation) } else { ended.completed };
    let mut state = LatchState::new(rows.next_generation(Some(ended.generation))?);
    state.completed = completed;
    rows.write(LatchUpdate { state, until: rows.now() + ttl.get(), arrival: None })?;
    Ok((Some(state), Change::Major))
}

fn update<R: LatchRows>(
    rows: &mut R,
    before: LatchState,
    state: LatchState,
    ttl: Ttl,
    arrival: Option<(&ArrivalId, u64)>,
) -> Result<(Option<LatchState>, Change), R::Error> {
    rows.write(LatchUpdate { state, until: rows.now() + ttl.get(), arrival })?;
    let is_completed = state.is_complete() && !before.is_complete();
    Ok((Some(state), if is_completed { Change::Major } else { Change::Minor }))
}
