//! The laboratory as a process, with a directory of the test's own.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use tempfile::TempDir;
use test_support::{signals, temp_dir};

/// The laboratory with a directory for its files.
pub(crate) struct Lab(TempDir);

impl Lab {
    pub(crate) fn new() -> Self {
        // Signals to the processes of a test must have their effect, however the tests were started.
        signals::default_in_children();
        let lab = Self(temp_dir());
        std::fs::create_dir(lab.temporary()).unwrap();
        lab
    }

    /// The laboratory with a command line, split at spaces.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-lab"));
        command.args(line.split_whitespace()).stdin(Stdio::null()).current_dir(self.0.path());
        for home in ["HOME", "XDG_STATE_HOME"] {
            command.env(home, self.0.path());
        }
        command.env("TMPDIR", self.temporary()).env_remove("LEASEHOLD_LAB_URL").env_remove("NO_COLOR");
        command
    }

    /// Nothing is left in the directory for temporary files, nor beside it, where the user's own locks would be.
    pub(crate) fn assert_nothing_is_left(&self) {
        let entries =
            |path: PathBuf| -> Vec<_> { path.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect() };
        assert_eq!(entries(self.0.path().into()), [self.temporary()]);
        assert_eq!(entries(self.temporary()), Vec::<PathBuf>::new());
    }

    /// Where its commands run.
    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    fn temporary(&self) -> PathBuf {
        self.0.path().join("tmp")
    }
}

/// The exit code as a shell shows it.
pub(crate) fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
