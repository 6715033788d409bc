//! Keeps all cores awake while something is measured.
//!
//! A core that sleeps between two requests needs as much time to wake up as the request takes, and that counts as processor
//! time of every subject: a library that needs a third more would seem to need a twelfth more. So a process spins on each
//! core, in the scheduling class that gives way to every other process at once.

use std::io::{Read, stdin};
use std::process::{Child, Command, Stdio};
use std::thread::{self, available_parallelism};
use std::{env, hint};

use anyhow::{Context, Result};

/// The first argument of a process that spins.
pub(crate) const ROLE: &str = "spin";

/// Processes that spin, one for each core; they end when this is dropped, or with this process.
pub(crate) struct Awake(Vec<Child>);

impl Awake {
    /// Begins.
    pub(crate) fn all_cores() -> Result<Self> {
        let own = env::current_exe()?;
        let spinning = (0..available_parallelism()?.get()).map(|_| {
            let mut command = Command::new("chrt");
            command.args(["--idle", "0"]).arg(&own).arg(ROLE).stdin(Stdio::piped());
            command.spawn().context("cannot run chrt, which is part of util-linux")
        });
        Ok(Self(spinning.collect::<Result<_>>()?))
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Spins until the process that started this one has gone.
pub(crate) fn spin() -> Result<()> {
    let parent = thread::spawn(|| stdin().read_to_end(&mut Vec::new()));
    while !parent.is_finished() {
        hint::spin_loop();
    }
    Ok(())
}
