//! The machine under a server or a client: a scene can set its wall clock, and cut its power. It is a small library in C that is preloaded.
//!
//! A killed process loses nothing that it has written: the system still has it. A failure of power also loses what the system had not
//! flushed to the disk. The library writes down what was flushed, and [`Machine::lose_unflushed`] cuts files down to that.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use test_support::RedisOptions;

use crate::shared::failure::{Exit, Failure};

const SOURCE: &str = include_str!("machine.c");
/// Its files: the source, the library, and those that the library reads and writes.
const SOURCE_FILE: &str = "machine.c";
const LIBRARY: &str = "machine.so";
/// By how many seconds the clock has stepped.
const STEP: &str = "clock-step";
/// For each flush a line: the inode, and the size of the file that was flushed.
const FLUSHED: &str = "flushed";

/// A machine that is on time, and whose disk is empty.
pub(crate) struct Machine {
    folder: TempDir,
}

impl Machine {
    /// Builds the library.
    pub(crate) fn new() -> Result<Self, Failure> {
        if !cfg!(target_os = "linux") {
            return Err(Failure::new(Exit::Config, "this scene preloads a library into its server; play it on Linux"));
        }
        let machine = Self { folder: tempfile::tempdir().map_err(|error| broken(&error))? };
        for (name, text) in [(SOURCE_FILE, SOURCE), (STEP, "0"), (FLUSHED, "")] {
            fs::write(machine.file(name), text).map_err(|error| broken(&error))?;
        }
        machine.compile()?;
        Ok(machine)
    }

    fn compile(&self) -> Result<(), Failure> {
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(self.file(LIBRARY)).arg(self.file(SOURCE_FILE));
        match compiler.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(broken(&String::from_utf8_lossy(&output.stderr))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message =
                    "this scene needs a C compiler, and there is no cc; install it with: apt-get install gcc libc6-dev";
                Err(Failure::new(Exit::Config, message))
            }
            Err(error) => Err(broken(&error)),
        }
    }

    /// A server on this machine.
    pub(crate) fn under(&self, server: RedisOptions) -> RedisOptions {
        self.environment().into_iter().fold(server, |server, (variable, path)| server.environment(variable, path))
    }

    /// The environment of programs on this machine.
    pub(crate) fn environment(&self) -> [(&'static str, PathBuf); 3] {
        [("LD_PRELOAD", LIBRARY), ("LAB_CLOCK_STEP", STEP), ("LAB_FLUSHED", FLUSHED)]
            .map(|(variable, name)| (variable, self.file(name)))
    }

    /// Sets the wall clock ahead by so many seconds, or back.
    pub(crate) fn step_clock(&self, seconds: i64) -> Result<(), Failure> {
        fs::write(self.file(STEP), seconds.to_string()).map_err(|error| broken(&error))
    }

    /// Its wall clock, in milliseconds, as a program on it reads it.
    pub(crate) fn date(&self) -> Result<u64, Failure> {
        let date =
            Command::new("date").arg("+%s%3N").envs(self.environment()).output().map_err(|error| broken(&error))?;
        let text = String::from_utf8_lossy(&date.stdout);
        text.trim().parse().map_err(|_| broken(&format!("the date is {text}")))
    }

    /// How often something was flushed to the disk so far.
    pub(crate) fn flushes(&self) -> Result<usize, Failure> {
        Ok(self.flushed()?.lines().count())
    }

    /// Cuts the files of a Redis down to what was flushed, as a failure of power may do, and returns what is lost.
    pub(crate) fn lose_unflushed(&self, folder: &Path) -> Result<Vec<u8>, Failure> {
        let flushed = self.flushed()?;
        let line = |line: &str| {
            let (inode, size) = line.split_once(' ')?;
            Some((inode.parse().ok()?, size.parse().ok()?))
        };
        // The last line of a file counts.
        let sizes: HashMap<u64, usize> = flushed.lines().filter_map(line).collect();
        let mut lost = Vec::new();
        for path in append_only_files(folder).map_err(|error| broken(&error))? {
            let inode = path.metadata().map_err(|error| broken(&error))?.ino();
            lost.extend(cut(&path, sizes.get(&inode).copied().unwrap_or_default())?);
        }
        Ok(lost)
    }

    fn flushed(&self) -> Result<String, Failure> {
        fs::read_to_string(self.file(FLUSHED)).map_err(|error| broken(&error))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The files to which a Redis appends. Since Redis 7, they have a folder of their own.
fn append_only_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let own = folder.join("appendonlydir");
    let entries = fs::read_dir(if own.exists() { &own } else { folder })?;
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| path.to_string_lossy().contains(".aof"));
    Ok(paths)
}

/// Cuts a file down to this size, and returns the rest.
fn cut(path: &Path, size: usize) -> Result<Vec<u8>, Failure> {
    let mut kept = fs::read(path).map_err(|error| broken(&error))?;
    let lost = kept.split_off(size.min(kept.len()));
    fs::write(path, kept).map_err(|error| broken(&error))?;
    Ok(lost)
}

fn broken(error: &dyn Display) -> Failure {
    Failure::system("the machine of a scene cannot be made", error)
}
