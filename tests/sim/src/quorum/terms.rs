//! Which faults a seed may bring at all: each draws its own selection, so that some faults occur alone.

use std::time::Duration;

use lock_core::{Moment, Ttl};

use crate::dice::Dice;

/// A thing that can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Cut,
    Pause,
    Suspend,
    Kill,
    Freeze,
    Restart,
    RestartEmpty,
    RestartFromCopy,
    RollBack,
    Flush,
    FlushMany,
    Copy,
    Gap,
    SetBack,
    SetForward,
    RunFast,
    RunSlow,
    Weather,
}

impl Trouble {
    const ALL: [Self; 18] = [
        Self::Cut,
        Self::Pause,
        Self::Suspend,
        Self::Kill,
        Self::Freeze,
        Self::Restart,
        Self::RestartEmpty,
        Self::RestartFromCopy,
        Self::RollBack,
        Self::Flush,
        Self::FlushMany,
        Self::Copy,
        Self::Gap,
        Self::SetBack,
        Self::SetForward,
        Self::RunFast,
        Self::RunSlow,
        Self::Weather,
    ];
}

#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// How many nodes there are in the deployment.
    pub(super) nodes: usize,
    /// How many other nodes there are, which are blank at first.
    pub(super) spares: usize,
    pub(super) names: usize,
    pub(super) processes: usize,
    pub(super) max_ttl: Ttl,
    /// How long a node that knows of no deployment dwells at least.
    pub(super) blank_dwell: Duration,
    pub(super) ttls: &'static [Duration],
    /// Whether the deployment was declared to be new.
    pub(super) founded: bool,
    /// How far the nodes' clocks are apart at first, at most.
    pub(super) skew: Duration,
    /// What may go wrong, as often as it is in the list.
    pub(super) troubles: Vec<Trouble>,
    /// How long one request may take, if the ttl does not decide that.
    pub(super) op_timeout: Option<Duration>,
    /// How many processes of a thousand live for some seconds only.
    pub(super) short_lived: u32,
    /// The longest time between two users' arrivals at a process.
    pub(super) pace: Duration,
    /// The longest time between two faults.
    pub(super) lull: Duration,
    pub(super) chaos: Duration,
}

const QUICK: [Duration; 3] = [Duration::from_millis(600), Duration::from_secs(1), Duration::from_secs(3)];
const MIXED: [Duration; 4] =
    [Duration::from_millis(600), Duration::from_secs(2), Duration::from_secs(6), Duration::from_secs(15)];
const LONG: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(20)];
/// No ttl is longer.
const MAX_TTLS: [Duration; 3] = [Duration::from_secs(20), Duration::from_secs(30), Duration::from_secs(60)];
/// Sometimes the real one, and mostly a shorter one: while it lasts, waiters only ask again and again.
const BLANK_DWELLS: [Duration; 8] = {
    let mut dwells = [MAX_TTLS[2]; 8];
    dwells[0] = Duration::from_secs(300);
    dwells
};
const SKEWS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(20), Duration::from_secs(3), Duration::from_secs(600)];
const PACES: [Duration; 4] =
    [Duration::from_secs(2), Duration::from_secs(3), Duration::from_secs(5), Duration::from_secs(15)];
/// How long a request may take if the ttl does not decide that; in any case at most a third of the ttl.
const LONGEST_ASKED: Duration = Duration::from_secs(10);
/// When nodes' clocks begin: in 2025.
const BEGINS: Moment = Moment::from_nanos(1_750_000_000_000_000_000);

impl Terms {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        let max_ttl = dice.pick(&MAX_TTLS).and_then(|ttl| Ttl::new(ttl).ok()).unwrap_or(Ttl::DEFAULT);
        let likely = dice.pick(&[150, 400]).unwrap_or_default();
        let troubles = Trouble::ALL.into_iter().filter(|_| dice.chance(likely)).collect();
        let pace = dice.pick(&PACES).unwrap_or(PACES[0]);
        let lull = dice.pick(&[300, 2500]).map_or(Duration::ZERO, Duration::from_millis);
        let terms = Self::drawn(dice, max_ttl, troubles, pace, lull);
        if dice.chance(100) { terms.with_wild_clocks() } else { terms }
    }

    /// For a plot, over three nodes with the lock that it is about and two others.
    pub(super) fn of_plot(dice: &mut Dice, max_ttl: Duration) -> Self {
        let mild = [Trouble::Cut, Trouble::Gap, Trouble::Pause, Trouble::Freeze, Trouble::Weather];
        let troubles = if dice.chance(300) { dice.pick(&mild).into_iter().collect() } else { Vec::new() };
        let max_ttl = Ttl::new(max_ttl).unwrap_or(Ttl::DEFAULT);
        let drawn = Self::drawn(dice, max_ttl, troubles, PACES[0], Duration::from_millis(2500));
        let op_timeout = Some(LONGEST_ASKED);
        Self { nodes: 3, names: 2, processes: 3, ttls: &QUICK, founded: true, op_timeout, short_lived: 0, ..drawn }
            .with_quick_dwells()
    }

    fn with_quick_dwells(self) -> Self {
        Self { blank_dwell: self.max_ttl.get(), ..self }
    }

    /// Clocks that leap while requests are in flight for long.
    fn with_wild_clocks(mut self) -> Self {
        self.troubles = vec![Trouble::SetForward, Trouble::SetForward, Trouble::Weather];
        self.op_timeout = Some(LONGEST_ASKED);
        (self.ttls, self.lull) = (&LONG, Duration::from_millis(300));
        (self.pace, self.chaos) = (PACES[0], PACES[0] * 5);
        self
    }

    fn drawn(dice: &mut Dice, max_ttl: Ttl, troubles: Vec<Trouble>, pace: Duration, lull: Duration) -> Self {
        let ttls: [&'static [Duration]; 3] = [&QUICK, &MIXED, &LONG];
        Self {
            nodes: if dice.chance(650) { 3 } else { 5 },
            spares: 0,
            names: dice.from(1, 2),
            processes: dice.from(2, 3),
            max_ttl,
            blank_dwell: dice.pick(&BLANK_DWELLS).unwrap_or_default(),
            ttls: dice.pick(&ttls).unwrap_or(&QUICK),
            founded: dice.chance(900),
            skew: dice.pick(&SKEWS).unwrap_or_default(),
            troubles,
            op_timeout: dice.chance(300).then_some(LONGEST_ASKED),
            short_lived: dice.pick(&[0, 0, 500, 1000]).unwrap_or_default(),
            pace,
            lull,
            chaos: dice.between(pace, pace * 5),
        }
    }

    /// When a node's clock begins.
    pub(super) fn begins(&self, dice: &mut Dice) -> Moment {
        BEGINS + dice.between(Duration::ZERO, self.skew)
    }
}
