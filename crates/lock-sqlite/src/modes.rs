//! How the rows of a file name the mode in which a lock is held, or wanted.

use lock_core::{Mode, Width};

/// The beginning of the owner in the row of a lock that several may hold. The rest is the limit in hexadecimal digits, 0 for
/// readers. Nobody has such an owner: owners are random.
const SEVERAL: &str = "000000000000000000000000";

const READERS: i64 = -1;

/// The kind of a place: 0 for exclusive, -1 for shared, and the limit of permits.
pub(crate) fn kind(mode: Mode) -> i64 {
    match mode {
        Mode::Permits { limit, .. } => limit.get().into(),
        Mode::Shared => READERS,
        Mode::Exclusive | _ => 0,
    }
}

/// The mode of a place of this kind and width. A width of permits is their number.
pub(crate) fn from_kind(kind: i64, width: Width) -> Mode {
    if kind == READERS {
        return Mode::Shared;
    }
    let (count, limit) = (u32::try_from(width.get()), u32::try_from(kind));
    // A program that does not know the column writes 0.
    count.ok().zip(limit.ok()).and_then(|(count, limit)| Mode::permits(count, limit).ok()).unwrap_or(Mode::Exclusive)
}

/// The owner in the row of a lock that is held in a mode in which several may hold it.
pub(crate) fn owner_of_several(mode: Mode) -> Option<String> {
    match mode {
        Mode::Permits { limit, .. } => Some(format!("{SEVERAL}{limit:08x}")),
        Mode::Shared => Some(format!("{SEVERAL}{:08x}", 0)),
        Mode::Exclusive | _ => None,
    }
}

/// The mode in which a lock is held in whose row this is the owner: of permits, for one.
pub(crate) fn from_owner(owner: &str) -> Mode {
    match owner.strip_prefix(SEVERAL).and_then(|limit| u32::from_str_radix(limit, 16).ok()) {
        Some(0) => Mode::Shared,
        Some(limit) => Mode::permits(1, limit).unwrap_or(Mode::Exclusive),
        None => Mode::Exclusive,
    }
}

#[cfg(test)]
mod tests {
    use lock_core::Owner;

    use super::*;

    #[test]
    fn modes_come_back_from_the_rows_of_locks_and_places() {
        let permits = |count, limit| Mode::permits(count, limit).unwrap();
        for mode in [Mode::Exclusive, Mode::Shared, permits(1, 1), permits(3, 8), permits(64, Mode::LIMIT_MAX)] {
            let width = Width::for_waiters(usize::try_from(mode.count()).unwrap());
            assert_eq!(from_kind(kind(mode), width), mode);
        }
        for mode in [Mode::Shared, permits(1, 1), permits(1, 8), permits(1, Mode::LIMIT_MAX)] {
            let owner = owner_of_several(mode).unwrap();
            assert_eq!(from_owner(&owner), mode);
            assert!(owner.parse::<Owner>().is_ok(), "an older program reads it");
        }
        assert_eq!(from_owner(&"ab".repeat(16)), Mode::Exclusive);
    }
}
