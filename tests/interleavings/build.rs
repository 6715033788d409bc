//! Makes the broken twins: a source file with one line changed.

use std::path::Path;
use std::{env, fs, io};

const LOOKS: &str = "        self.asleep_until.store(READING, Ordering::SeqCst);\n";

fn main() -> io::Result<()> {
    twin(
        "deaf_alarms",
        "lock-host/src/alarms.rs",
        "if schedule.next_wake.is_none_or(|wake| at < wake)",
        "if schedule.next_wake.is_none()",
    )?;
    twin("hasty_renewals", "lock-host/src/renewals.rs", LOOKS, "")?;
    twin(
        "hasty_slots",
        "lock-redis/src/blocking/slots.rs",
        "if let Some(slot) = self.take_from(&mut state) {",
        "if let Some(slot) = None {",
    )
}

/// Writes a twin of a file in `crates` in which `line` is replaced. A line that no longer exists is an
/// error, so that no twin is silently whole.
fn twin(name: &str, file: &str, line: &str, broken: &str) -> io::Result<()> {
    let folder = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let path = Path::new(&folder).join("../../crates").join(file);
    println!("cargo::rerun-if-changed={}", path.display());
    let source = fs::read_to_string(&path)?;
    if source.matches(line).count() != 1 {
        return Err(io::Error::other(format!("{file} has not exactly one {line:?}: break it elsewhere")));
    }
    // An included file cannot begin with the docs of its module.
    let code: Vec<&str> = source.lines().filter(|line| !line.starts_with("//!")).collect();
    let code = code.join("\n").replace(line, broken);
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&folder).join(name).with_extension("rs"), code)
}
