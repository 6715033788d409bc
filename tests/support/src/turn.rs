//! A turn with a lock in a program of another language.

/// A turn of a thread, in nanoseconds on a clock that all processes with the same library share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerTurn {
    /// Whose, counted within its peer.
    pub thread: u32,
    /// When it called acquire.
    pub wanted: u64,
    /// When that returned.
    pub acquired: u64,
    /// When it called release.
    pub leaving: u64,
    /// When that returned.
    pub released: u64,
}

impl PeerTurn {
    /// Reads the file that a peer leaves; nothing if it has another form.
    pub(crate) fn read_all(text: &str) -> Option<Vec<Self>> {
        text.lines().map(Self::read).collect()
    }

    fn read(line: &str) -> Option<Self> {
        let (thread, moments) = line.split_once(' ')?;
        let moments: Vec<_> = moments.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [wanted, acquired, leaving, released] = moments.try_into().ok()?;
        Some(Self { thread: thread.parse().ok()?, wanted, acquired, leaving, released })
    }
}
