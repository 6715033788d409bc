//! Notes: holders as text for display.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::Invalid;

/// A holder's description of itself: host, process and reason. For display only; it carries no authority.
///
/// Cloning is cheap. In a store it is one line, `PID@HOST WHY`, and whatever a store answers is read without trust.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Note {
    line: Arc<str>,
}

impl Note {
    /// The longest reason, in bytes.
    pub const WHY_BYTES_MAX: usize = 200;
    /// The longest host name that is kept, in bytes (the limit of POSIX).
    pub const HOST_BYTES_MAX: usize = 255;

    /// A note for this process on `host`, with the reason it holds the lock (may be empty).
    ///
    /// # Errors
    /// `Invalid` if `why` is over 200 bytes or contains a control character. A host name is cut and cleaned instead,
    /// since the caller did not choose it.
    pub fn new(host: &str, pid: u32, why: &str) -> Result<Self, Invalid> {
        Self::check_why(why)?;
        let mut host: String = host.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
        truncate(&mut host, Self::HOST_BYTES_MAX);
        Ok(Self { line: format!("{pid}@{host} {why}").into() })
    }

    /// Refuses a reason that does not fit into a note.
    ///
    /// # Errors
    /// `Invalid` if it is over 200 bytes or contains a control character.
    pub fn check_why(why: &str) -> Result<(), Invalid> {
        let problem = if why.chars().any(char::is_control) {
            "it contains a control character, such as a line break"
        } else if why.len() > Self::WHY_BYTES_MAX {
            "it has more than 200 bytes"
        } else {
            return Ok(());
        };
        Err(Invalid::new("reason (why)", why, problem, "give a short line of text"))
    }

    /// Reads a note from a store: cut to its bounds, control characters removed, never refused.
    pub fn from_wire(line: &str) -> Self {
        let mut clean: String = line.chars().filter(|c| !c.is_control()).collect();
        truncate(&mut clean, Self::WHY_BYTES_MAX + Self::HOST_BYTES_MAX + 12);
        Self { line: clean.into() }
    }

    /// The note as one line for a store: `PID@HOST WHY`.
    pub fn to_wire(&self) -> &str {
        &self.line
    }

    /// The reason, empty if none was given.
    pub fn why(&self) -> &str {
        self.line.split_once(' ').map_or("", |(_, why)| why)
    }

    /// The host of the holder, empty if the note does not name it.
    pub fn host(&self) -> &str {
        self.place().split_once('@').map_or("", |(_, host)| host)
    }

    /// The process id of the holder, if the note says.
    pub fn pid(&self) -> Option<u32> {
        self.place().split_once('@').and_then(|(pid, _)| u32::from_str(pid).ok())
    }

    fn place(&self) -> &str {
        self.line.split_once(' ').map_or(&self.line, |(place, _)| place)
    }
}

fn truncate(text: &mut String, bytes_max: usize) {
    while text.len() > bytes_max {
        text.pop();
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.line, f)
    }
}

impl fmt::Display for Note {
    /// `pid 4711 on web-3 (nightly report)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid() {
            Some(pid) => write!(f, "pid {pid} on {}", self.host())?,
            None => write!(f, "{}", self.place())?,
        }
        if self.why().is_empty() { Ok(()) } else { write!(f, " ({})", self.why()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_comes_back_from_the_wire() {
        let note = Note::new("web-3", 4711, "nightly report").unwrap();
        let back = Note::from_wire(note.to_wire());
        assert_eq!((back.pid(), back.host(), back.why()), (Some(4711), "web-3", "nightly report"));
        assert_eq!(back.to_string(), "pid 4711 on web-3 (nightly report)");
        assert_eq!(Note::new("web-3", 1, "").unwrap().to_string(), "pid 1 on web-3");
    }

    #[test]
    fn reasons_are_bounded_and_hosts_are_cleaned() {
        let refusal = |why: &str| Note::new("h", 1, why).unwrap_err().to_string();
        assert!(refusal(&"x".repeat(201)).contains("it has more than 200 bytes"));
        assert!(refusal("a\x1b[2J").contains("it contains a control character"));
        assert!(Note::new("h", 1, &"x".repeat(200)).is_ok());
        assert_eq!(Note::new("a b\nc", 1, "").unwrap().host(), "abc");
        assert_eq!(Note::new(&"h".repeat(300), 1, "").unwrap().host().len(), 255);
    }

    #[test]
    fn strange_notes_do_no_harm() {
        let note = Note::from_wire("\x1b[2Jwhatever");
        assert_eq!((note.pid(), note.host(), note.why()), (None, "", ""));
        assert_eq!(note.to_string(), "[2Jwhatever");
        assert_eq!(Note::from_wire(&"ä".repeat(1000)).to_wire().len(), 466);
    }
}
