//! The machine under a server or a client: a test can set its wall clock, fill its disk, and cut its power. It is a small library in C that is
//! preloaded.
//!
//! A killed process loses nothing that it has written: the system still has it. A failure of power also loses what the system had not
//! flushed to the disk. The library writes down what was flushed, and [`Machine::lose_unflushed`] cuts files down to that.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{must, temp_dir};

const SOURCE: &str = include_str!("machine.c");
/// Its files: the source, the library, and those that the library reads and writes.
const SOURCE_FILE: &str = "machine.c";
const LIBRARY: &str = "machine.so";
/// By how many seconds the clock has stepped, as a 64-bit number.
const STEP: &str = "clock-step";
/// For each flush a line: the inode, and the size of the file that was flushed.
const FLUSHED: &str = "flushed";
/// The folder whose disk is full.
const FULL: &str = "full";
/// A byte for each write that was refused.
const REFUSED: &str = "refused";

/// A machine that is on time, and whose disk has room.
#[derive(Debug)]
pub struct Machine {
    folder: TempDir,
}

impl Machine {
    /// Builds the library.
    ///
    /// # Panics
    /// If there is no C compiler, or on another system than Linux.
    #[track_caller]
    pub fn build() -> Self {
        if !cfg!(target_os = "linux") {
            panic!("this preloads a library into programs, which works on Linux only");
        }
        let machine = Self { folder: temp_dir() };
        // Servers may run as another user.
        must("open the folder of a machine", open_to_all(machine.folder.path(), 0o755));
        for (name, text) in [(SOURCE_FILE, SOURCE), (STEP, ""), (FLUSHED, ""), (FULL, ""), (REFUSED, "")] {
            must("write a file of a machine", fs::write(machine.file(name), text));
            must("open a file of a machine", open_to_all(&machine.file(name), 0o666));
        }
        machine.compile();
        machine
    }

    fn compile(&self) {
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(self.file(LIBRARY)).arg(self.file(SOURCE_FILE));
        let output = match compiler.output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!("there is no C compiler cc; install it with: apt-get install gcc libc6-dev")
            }
            output => must("run cc", output),
        };
        assert!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The environment of programs on this machine.
    pub fn environment(&self) -> Vec<(String, OsString)> {
        let files = [
            ("LD_PRELOAD", LIBRARY),
            ("MACHINE_CLOCK_STEP", STEP),
            ("MACHINE_FLUSHED", FLUSHED),
            ("MACHINE_FULL", FULL),
            ("MACHINE_REFUSED", REFUSED),
        ];
        files.map(|(variable, name)| (variable.to_owned(), self.file(name).into())).into()
    }

    /// Whether this process is on it.
    pub fn has(&self, pid: u32) -> bool {
        let maps = must("look at a process", fs::read_to_string(format!("/proc/{pid}/maps")));
        maps.contains(&*self.file(LIBRARY).to_string_lossy())
    }

    /// Sets the wall clock ahead by so many seconds, or back.
    pub fn step_clock(&self, seconds: i64) {
        // In one piece: a clock that is read meanwhile must not seem to have stepped to another time.
        let file = must("open the clock of a machine", File::options().write(true).open(self.file(STEP)));
        must("set the clock of a machine", file.write_all_at(&seconds.to_ne_bytes(), 0));
    }

    /// Its wall clock, in milliseconds, as a program on it reads it.
    pub fn date(&self) -> u64 {
        let date = must("run date", Command::new("date").arg("+%s%3N").envs(self.environment()).output());
        let text = String::from_utf8_lossy(&date.stdout).trim().to_owned();
        must(&format!("read the date {text}"), text.parse())
    }

    /// Meanwhile, `write` and its relatives are refused for files in this folder, but not what the C library writes for the program. Returns
    /// how many writes were refused.
    pub fn fill_disk(&self, folder: &Path, meanwhile: impl FnOnce()) -> u64 {
        let refused = || must("count refused writes", self.file(REFUSED).metadata()).len();
        let before = refused();
        must("fill the disk of a machine", fs::write(self.file(FULL), folder.as_os_str().as_encoded_bytes()));
        meanwhile();
        must("free the disk of a machine", fs::write(self.file(FULL), ""));
        refused() - before
    }

    /// How often something was flushed to the disk so far.
    pub fn flushes(&self) -> usize {
        self.flushed().lines().count()
    }

    /// Cuts the files of a Redis down to what was flushed, as a failure of power may do, and returns what is lost.
    pub fn lose_unflushed(&self, folder: &Path) -> Vec<u8> {
        let flushed = self.flushed();
        let line = |line: &str| {
            let (inode, size) = line.split_once(' ')?;
            Some((inode.parse().ok()?, size.parse().ok()?))
        };
        // The last line of a file counts.
        let sizes: HashMap<u64, usize> = flushed.lines().filter_map(line).collect();
        let mut lost = Vec::new();
        for path in must("list what Redis appends to", append_only_files(folder)) {
            let inode = must("look at a file of Redis", path.metadata()).ino();
            let size = sizes.get(&inode).copied().unwrap_or_default();
            lost.extend(must("cut a file of Redis", cut(&path, size)));
        }
        lost
    }

    fn flushed(&self) -> String {
        must("read what was flushed", fs::read_to_string(self.file(FLUSHED)))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn open_to_all(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
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
fn cut(path: &Path, size: usize) -> io::Result<Vec<u8>> {
    let mut kept = fs::read(path)?;
    let lost = kept.split_off(size.min(kept.len()));
    fs::write(path, kept)?;
    Ok(lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::wait_for;
    use crate::{RedisOptions, RedisServer};

    fn copies(machine: &Machine, folder: &Path) -> bool {
        let to = format!("of={}", folder.join("copy").display());
        let mut copy = Command::new("dd");
        copy.args(["if=/dev/zero", "bs=1", "count=1", &to]).envs(machine.environment());
        copy.output().unwrap().status.success()
    }

    #[test]
    fn a_clock_steps_and_a_disk_is_full_for_a_while() {
        let (machine, full, other) = (Machine::build(), temp_dir(), temp_dir());
        let before = machine.date();
        machine.step_clock(-3600);
        assert!(machine.date() < before);
        assert!(copies(&machine, full.path()));
        let refused = machine.fill_disk(full.path(), || {
            assert!(!copies(&machine, full.path()));
            assert!(copies(&machine, other.path()), "another disk");
        });
        assert_eq!(refused, 1);
        assert!(copies(&machine, full.path()));
    }

    /// Whether a failure of power loses what was written last.
    fn loses(policy: &str) -> bool {
        let machine = Machine::build();
        let options = RedisOptions::default().arguments(&["--appendonly", "yes", "--appendfsync", policy]);
        let mut server = RedisServer::start_with(options.on(&machine));
        if policy == "everysec" {
            let before = machine.flushes();
            server.command::<()>(&["SET", "early", "value"]);
            wait_for("a flush", || machine.flushes() > before);
        }
        server.command::<()>(&["SET", "late", "value"]);
        server.kill();
        let lost = machine.lose_unflushed(server.directory());
        server.restart_with_data();
        let is_kept: bool = server.command(&["EXISTS", "late"]);
        assert_ne!(is_kept, !lost.is_empty(), "{policy}");
        !is_kept
    }

    #[test]
    fn after_a_failure_of_power_a_redis_has_what_it_flushed() {
        assert!(loses("no") && !loses("always"));
        // On a slow machine, the next flush may come before its end.
        assert!((0..5).any(|_| loses("everysec")));
    }
}
