//! Who is there, in the cases that are told apart.

use clap::ValueEnum;

use super::setup::{Asker, Bounds, Deployment, Form, Looks, Setup, Steps};
use super::{Action, Claim, Guarded};
use crate::Report;

const SHORT: u8 = 1;
const MAX: u8 = 2;
const NONE: Deployment = Deployment { members: 0, max_ttl: 0 };

/// All ttls are of one length.
fn moved(old: Deployment, new: Deployment) -> Setup {
    let deployments = [old, new, NONE].map(|deployment| Deployment { max_ttl: SHORT, ..deployment });
    let clients = [0, 1].map(|deployment| Asker { deployment, ttl: SHORT });
    Setup { deployments, clients, left: 0, known: SHORT, default: SHORT }
}

/// Who is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scene {
    /// Three nodes, which know a short ttl. One client asks for the longest that it may, the other for the short one.
    Three,
    /// The same with five nodes.
    Five,
    /// The same with three nodes that never heard of any ttl.
    Fresh,
    /// Three nodes. The second client's URL says a shorter `max_ttl`.
    ShortUrl,
    /// Three nodes of which one is replaced by a move. The first client has the old URL, the second the new one.
    Replaced,
    /// Two operators move three nodes at once: one of them adds a fourth and a longer `max_ttl`, the other one changes neither. Each
    /// client has one of the new URLs, and the longest ttl there.
    Rivals,
    /// A move adds a fourth and a fifth node to three, and passes may miss nodes: a majority of the new list needs one of the old nodes.
    Widened,
    /// Four nodes are moved at once to a list of two of them and a fifth node, and to one of the other two and the fifth.
    Halved,
    /// Three nodes are moved to a list of four, two of which vote there from an earlier time. The first client asks for the longest
    /// ttl, which those two do not know.
    Back,
    /// Three nodes become five by a move. This has many more states than the others, and was not explored to its end.
    Grown,
}

impl Scene {
    /// Explores every state, or so many that each claim is proved or refuted.
    pub fn explore(self, form: Form, bounds: Bounds) -> Report<Claim, Action> {
        let setup = self.setup();
        match self {
            Self::Three | Self::Fresh | Self::ShortUrl => Guarded::<3> { form, setup, bounds }.explore(),
            Self::Replaced | Self::Rivals => Guarded::<4> { form, setup, bounds }.explore(),
            Self::Five | Self::Widened | Self::Halved | Self::Back | Self::Grown => {
                Guarded::<5> { form, setup, bounds }.explore()
            }
        }
    }

    fn setup(self) -> Setup {
        let list = |members| Deployment { members, max_ttl: MAX };
        let (three, five) = (list(0b111), list(0b1_1111));
        let long = Asker { deployment: 0, ttl: MAX };
        let short = |deployment| Asker { deployment, ttl: SHORT };
        let setup = |[old, new]: [Deployment; 2], clients| Setup {
            deployments: [old, new, NONE],
            clients,
            left: 0,
            known: SHORT,
            default: MAX,
        };
        match self {
            Self::Three => setup([three, three], [long, short(0)]),
            Self::Five => setup([five, five], [long, short(0)]),
            Self::Fresh => Setup { known: 0, ..setup([three, three], [long, short(0)]) },
            Self::ShortUrl => {
                let shorter = Deployment { max_ttl: SHORT, ..three };
                setup([three, shorter], [long, short(1)])
            }
            Self::Replaced => moved(list(0b111), list(0b1011)),
            Self::Back => Setup { left: 0b1_1000, ..setup([three, list(0b1_1011)], [long, short(1)]) },
            Self::Grown => moved(list(0b111), list(0b1_1111)),
            Self::Widened => moved(list(0b111), list(0b1_1011)),
            Self::Halved => {
                let setup = moved(list(0b1111), list(0b1_0011));
                let [old, one, _] = setup.deployments;
                let other = Deployment { members: 0b1_1100, ..one };
                Setup { deployments: [old, one, other], clients: [short(1), short(2)], ..setup }
            }
            Self::Rivals => {
                let brief = Deployment { max_ttl: SHORT, ..three };
                let clients = [Asker { deployment: 1, ttl: MAX }, short(2)];
                Setup { deployments: [brief, list(0b1111), brief], clients, left: 0, known: SHORT, default: SHORT }
            }
        }
    }

    /// How much happens where nothing else is said.
    pub fn bounds(self) -> Bounds {
        let calm = Bounds {
            ticks: MAX,
            losses: 1,
            restarts: 0,
            rollbacks: 0,
            steps: (0, Steps::WhileFree),
            moves: 0,
            silent: 4,
            passes: 1,
            looks: Looks::AtOnce,
        };
        match self {
            Self::Three | Self::Fresh => Bounds { looks: Looks::OneByOne, ..calm },
            Self::Five => calm,
            Self::ShortUrl => Bounds { losses: 3, ..calm },
            Self::Replaced | Self::Grown => Bounds { ticks: SHORT, moves: 1, silent: 0, ..calm },
            Self::Back => Bounds { ticks: MAX, moves: 1, silent: 0, ..calm },
            Self::Widened => Bounds { ticks: SHORT, moves: 1, losses: 0, ..calm },
            Self::Halved => Bounds { ticks: SHORT, moves: 2, losses: 0, silent: 0, ..calm },
            Self::Rivals => Bounds { ticks: MAX, moves: 2, silent: 0, losses: 0, ..calm },
        }
    }
}
