//! What the seats of a worker want.

use std::time::Duration;

/// The lock that most seats compete for.
pub const HOT: &str = "hot";
/// A lock that fewer seats compete for.
pub const COOL: &str = "cool";
/// A lock with readers and writers.
pub const BOOK: &str = "book";
/// A semaphore with three permits.
pub const POOL: &str = "pool";
/// A semaphore with fifty and one.
pub const DOCK: &str = "dock";

/// How many permits a semaphore has.
pub fn limit(lock: &str) -> u32 {
    if lock == DOCK { 51 } else { 3 }
}

/// What a seat does with its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It holds the lock alone, and may go on as a reader.
    Write,
    /// It reads, and may go on as the writer.
    Read,
    /// It has so many permits, and may give back one of several.
    Permits(u32),
}

/// What one seat wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The lock.
    pub lock: &'static str,
    /// What for.
    pub role: Role,
}

const fn write(lock: &'static str) -> Wish {
    Wish { lock, role: Role::Write }
}

const READS: Wish = Wish { lock: BOOK, role: Role::Read };
const BERTH: Wish = Wish { lock: DOCK, role: Role::Permits(1) };

const fn permits(count: u32) -> Wish {
    Wish { lock: POOL, role: Role::Permits(count) }
}

/// The ttl of most leases: short, so that many expire ...
pub const TTL: Duration = Duration::from_secs(1);
/// ... that of many holders, which are killed ...
const SHORT_TTL: Duration = Duration::from_millis(300);
/// ... that of those whose store is replaced, which takes a moment ...
pub const LONG_TTL: Duration = Duration::from_secs(2);
/// ... and that of a holder that outlives its store: longer than it takes to replace it.
pub const LONGEST_TTL: Duration = Duration::from_secs(6);

/// Which seats a worker has, and how long their turns are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// They hold locks alone.
    Locks,
    /// They use locks of all kinds.
    Kinds,
    /// They read, always some of them.
    Readers,
    /// One writes at times.
    Writer,
    /// They write, always one of them.
    Writers,
    /// One reads at times.
    Reader,
    /// One reads until the end.
    Browser,
    /// One holds a lock alone, one reads another, and one has all permits of a semaphore, until the end.
    Hoarders,
    /// Ten have a permit each until the end, with a ttl of 300 ms.
    Ships,
    /// They have one permit or two, always some of them.
    Divers,
    /// One writes until the end, with a ttl of six seconds.
    Author,
    /// They write, always one of them, with a ttl of two seconds.
    Clerks,
    /// One writes for a moment again and again, and waits for long, with a ttl of six seconds.
    Guest,
    /// The same with a ttl of one second, but it gives up most of its waits.
    Passerby,
}

/// How long a turn lasts, as far as that is the same each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// It varies, and so does the waiting.
    Varied,
    /// [`STEADY`] on average, and the next one follows at once.
    Steady,
    /// For a moment, with pauses.
    Brief,
    /// For a moment, and the next one follows at once.
    Brisk,
    /// Until the end.
    Lasting,
}

/// How long turns last on average where there are always some, so that they overlap in ever new ways: twice as long as readers
/// join without asking the store.
pub const STEADY: Duration = Duration::from_millis(40);

impl Cast {
    const ALL: [Self; 14] = [
        Self::Locks,
        Self::Kinds,
        Self::Readers,
        Self::Writer,
        Self::Writers,
        Self::Reader,
        Self::Browser,
        Self::Hoarders,
        Self::Ships,
        Self::Divers,
        Self::Author,
        Self::Clerks,
        Self::Guest,
        Self::Passerby,
    ];

    /// What each seat wants.
    pub fn wishes(self) -> &'static [Wish] {
        const LOCKS: [Wish; 4] = [write(HOT), write(HOT), write(HOT), write(COOL)];
        const KINDS: [Wish; 8] =
            [write(HOT), write(HOT), write(COOL), READS, READS, write(BOOK), permits(1), permits(2)];
        match self {
            Self::Locks => &LOCKS,
            Self::Kinds => &KINDS,
            Self::Readers => &[READS; 16],
            Self::Writer => const { &[write(BOOK)] },
            Self::Writers => const { &[write(BOOK); 8] },
            Self::Reader | Self::Browser => &[READS],
            Self::Hoarders => const { &[write(BOOK), Wish { lock: COOL, role: Role::Read }, permits(3)] },
            Self::Ships => &[BERTH; 10],
            Self::Author | Self::Guest | Self::Passerby => const { &[write(HOT)] },
            Self::Clerks => const { &[write(BOOK); 3] },
            Self::Divers => const { &[permits(1), permits(1), permits(1), permits(2), permits(2)] },
        }
    }

    /// The ttl of its leases.
    pub fn ttl(self) -> Duration {
        match self {
            Self::Ships => SHORT_TTL,
            Self::Author | Self::Guest => LONGEST_TTL,
            Self::Clerks => LONG_TTL,
            Self::Locks
            | Self::Kinds
            | Self::Readers
            | Self::Writer
            | Self::Writers
            | Self::Reader
            | Self::Browser
            | Self::Hoarders
            | Self::Divers
            | Self::Passerby => TTL,
        }
    }

    pub(crate) fn pace(self) -> Pace {
        match self {
            Self::Locks | Self::Kinds => Pace::Varied,
            Self::Readers | Self::Writers | Self::Divers | Self::Clerks => Pace::Steady,
            Self::Writer | Self::Reader => Pace::Brief,
            Self::Guest | Self::Passerby => Pace::Brisk,
            Self::Browser | Self::Hoarders | Self::Ships | Self::Author => Pace::Lasting,
        }
    }
}

/// What is wrong with a worker, to see that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Nothing.
    None,
    /// It has locks of its own.
    Apart,
    /// It presents the tokens of its first turn in all turns.
    OldTokens,
    /// It does not look whether it still holds.
    Believes,
    /// It asks again and again, and takes no place in the queue.
    Pushes,
    /// It does not hear the signal that its hold is lost.
    Deaf,
    /// It uses slots that do not exist.
    WrongSlots,
    /// It presents a token to the register that is never too low, as if the register did not look at tokens.
    Unfenced,
}

impl Mistake {
    const ALL: [Self; 8] = [
        Self::None,
        Self::Apart,
        Self::OldTokens,
        Self::Believes,
        Self::Pushes,
        Self::Deaf,
        Self::WrongSlots,
        Self::Unfenced,
    ];
}

/// Words for the command line of a worker.
macro_rules! words {
    ($($choice:ty),*) => {$(
        impl $choice {
            pub(crate) fn to_word(self) -> String {
                format!("{self:?}")
            }

            /// # Panics
            /// On any other word.
            pub(crate) fn from_word(word: &str) -> Self {
                let found = Self::ALL.into_iter().find(|one| one.to_word() == word);
                found.unwrap_or_else(|| panic!("there is no {word}"))
            }
        }
    )*};
}
words!(Cast, Mistake);
