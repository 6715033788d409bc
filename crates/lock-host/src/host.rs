//! This host: its name, its boot, its randomness.

use std::io;

use lock_core::{Invalid, Note, Owner};

/// A fresh owner from the operating system's random source.
///
/// # Errors
/// The random source failing, which no working system does.
pub fn new_owner() -> io::Result<Owner> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(Owner::from_random(bytes))
}

/// A random number, for jitter.
///
/// # Errors
/// The random source failing, which no working system does.
pub fn random_u64() -> io::Result<u64> {
    Ok(getrandom::u64()?)
}

/// The name of this host as the system gives it.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A note for this process, with the reason it holds a lock (may be empty).
///
/// # Errors
/// `Invalid` where the reason is too long or holds a control character.
pub fn note(why: &str) -> Result<Note, Invalid> {
    Note::new(&host_name(), std::process::id(), why)
}

/// An identity of this boot of the machine: another one after each reboot. `None` where the system has none.
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_fresh() {
        assert_ne!(new_owner().unwrap(), new_owner().unwrap());
    }

    #[test]
    fn the_note_names_this_process() {
        let note = note("testing").unwrap();
        assert_eq!(note.pid(), Some(std::process::id()));
        assert_eq!(note.why(), "testing");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_has_a_boot_id() {
        assert_eq!(boot_id().unwrap().len(), 36);
    }
}
