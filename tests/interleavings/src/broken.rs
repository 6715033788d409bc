//! The same files with one mistake each, which the scheduler has to find. Made by the build script.

/// Alarms that do not wake the sleeper for the first one that is set.
pub mod deaf_alarms {
    include!(concat!(env!("OUT_DIR"), "/deaf_alarms.rs"));
}

/// A queue whose keeper does not say that it looks before it looks.
pub mod hasty_renewals {
    include!(concat!(env!("OUT_DIR"), "/hasty_renewals.rs"));
}

/// Slots where a thread joins the line without checking again whether a slot is free.
pub(crate) mod hasty_slots {
    include!(concat!(env!("OUT_DIR"), "/hasty_slots.rs"));
}
