//! This host: its name, its boot, its randomness.

use std::io;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use lock_core::{Holder, Invalid, Note, Owner};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// A fresh owner from the operating system's random source.
///
/// # Errors
/// If the random source fails, which does not happen on a working system.
pub fn new_owner() -> io::Result<Owner> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(Owner::from_random(bytes))
}

/// A secret for one client, from the operating system's random source: the owners of its leases are drawn from it.
///
/// A copy of this process that continues after a `fork` would draw the same owners; it has none of the client's threads
/// and must not use the client anyway.
///
/// # Errors
/// If the random source fails, which does not happen on a working system.
pub fn secret() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// A random number, for jitter.
///
/// # Errors
/// If the random source fails, which does not happen on a working system.
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
/// `Invalid` if the reason is too long or contains a control character.
pub fn note(why: &str) -> Result<Note, Invalid> {
    // Most callers give no reason, and asking the system for host and process costs as much as half an acquisition.
    static WITHOUT_REASON: OnceLock<Note> = OnceLock::new();
    if let Some(note) = WITHOUT_REASON.get().filter(|_| why.is_empty()) {
        return Ok(note.clone());
    }
    let note = Note::new(&host_name(), std::process::id(), why)?;
    if why.is_empty() {
        _ = WITHOUT_REASON.set(note.clone());
    }
    Ok(note)
}

/// Whether the holder was a process of this host that has ended without a release, so that its lease has to expire; `None`
/// for processes of other hosts.
///
/// A container with the host's name but its own process ids is mistaken for the host.
pub fn is_gone(holder: &Holder) -> Option<bool> {
    let Holder::Leasehold { note: theirs, .. } = holder else { return None };
    note("").ok().filter(|here| here.host() == theirs.host())?;
    let pid = theirs.pid().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)?;
    Some(test_kill_process(pid) == Err(Errno::SRCH))
}

/// The time since 1970 by the wall clock, which may be set at any time: for display, and for numbers that should rise.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Where Linux keeps the identifier of its boot.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// An identifier of this boot of the machine, new after each reboot; containers may have others. `None` if the system has none, which is
/// never so on Linux.
///
/// # Errors
/// On Linux, if [`BOOT_ID`] cannot be read or is empty.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn boot_id() -> io::Result<Option<String>> {
    let id = std::fs::read_to_string(BOOT_ID)?;
    match id.trim() {
        "" => Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty")),
        id => Ok(Some(id.to_owned())),
    }
}

/// An identifier of this boot of the machine: there is none here.
///
/// # Errors
/// None here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn boot_id() -> io::Result<Option<String>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_secrets_are_fresh() {
        assert_ne!(new_owner().unwrap(), new_owner().unwrap());
        assert_ne!(secret().unwrap(), secret().unwrap());
        assert_ne!(random_u64().unwrap(), random_u64().unwrap());
    }

    #[test]
    fn the_note_names_this_process() {
        for why in ["", "testing", "", "testing"] {
            let note = note(why).unwrap();
            assert_eq!((note.pid(), note.why()), (Some(std::process::id()), why));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_host_has_the_name_that_linux_gives_it() {
        assert_eq!(host_name(), std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_has_a_boot_id() {
        assert_eq!(boot_id().unwrap().unwrap().len(), 36);
    }
}
