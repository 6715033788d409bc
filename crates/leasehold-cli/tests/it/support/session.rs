//! A terminal session: a program on a terminal of its own, a keyboard, and what the screen has shown.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use test_support::bounds::status_of;

use super::leasehold::text as text_of;
use super::{Scratch, wait_for};

/// What bash prints when it waits for a line.
pub(crate) const PROMPT: &str = "<prompt> ";

/// A program on a terminal. `script` (package `bsdutils`) makes the terminal.
pub(crate) struct Session {
    pub(crate) scratch: Scratch,
    script: Child,
    keyboard: ChildStdin,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
    /// How much of the screen was read.
    seen: usize,
}

impl Session {
    /// Runs a script of `sh`, which has no job control, on a terminal of 80 columns.
    pub(crate) fn of_script(script: &str) -> Self {
        let scratch = Scratch::new();
        let mut command = Command::new("script");
        command
            .args(["-qec", &format!("stty rows 24 cols 80; {script}"), "/dev/null"])
            .env("PATH", super::path_with_leasehold())
            .env("XDG_STATE_HOME", scratch.path())
            .env("SHELL", "/bin/sh")
            .env("PS1", PROMPT)
            .env_remove("LEASEHOLD_URL")
            .env_remove("LEASEHOLD_HELD")
            .env("LEASEHOLD_CONFIG", "")
            .current_dir(scratch.path());
        Self::of_command(command, scratch)
    }

    /// Runs a command whose input is the keyboard, and whose output is the screen.
    pub(crate) fn of_command(mut command: Command, scratch: Scratch) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut session = command.spawn().expect("script is needed: apt-get install bsdutils");
        let keyboard = session.stdin.take().unwrap();
        let mut output = session.stdout.take().unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shown = Arc::clone(&screen);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self { scratch, script: session, keyboard, screen, reader, seen: 0 }
    }

    /// A shell as people use it, which waits at its prompt.
    pub(crate) fn of_bash() -> Self {
        let mut session = Self::of_script("exec bash --norc --noprofile --noediting -i");
        session.shows(PROMPT);
        session
    }

    /// Waits until the screen shows `text` after what was read before. What is typed is on the screen as well.
    pub(crate) fn shows(&mut self, text: &str) {
        wait_for(&format!("{text:?} on the screen"), || {
            let ended = self.reader.is_finished();
            let screen = self.screen.lock().unwrap();
            let found = screen[self.seen..].windows(text.len()).position(|shown| shown == text.as_bytes());
            let found = found.map(|position| position + text.len());
            assert!(found.is_some() || !ended, "the session ended without {text:?}: {}", text_of(&screen));
            found.map(|end| self.seen += end)
        });
    }

    /// What the screen has shown up to the end of the line that was read last.
    pub(crate) fn up_to_here(&self) -> Vec<u8> {
        wait_for("the end of the line", || {
            let screen = self.screen.lock().unwrap();
            let end = screen[self.seen..].iter().position(|byte| b"\r\n\x1b".contains(byte));
            end.map(|end| screen[..self.seen + end].to_vec())
        })
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end of the program and returns all that the screen has shown.
    pub(crate) fn end(self) -> String {
        text_of(&self.end_with_bytes())
    }

    /// The same, as the screen was sent it.
    pub(crate) fn end_with_bytes(mut self) -> Vec<u8> {
        wait_for("the end of the session", || self.reader.is_finished().then_some(()));
        status_of(&mut self.script, "the session");
        self.screen.lock().unwrap().clone()
    }

    /// Leaves the shell, which waits at its prompt.
    pub(crate) fn exit(mut self) -> String {
        self.types("exit\n");
        self.end()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the screen has shown: {}", text_of(&self.screen.lock().unwrap_or_else(PoisonError::into_inner)));
        }
        // A test that failed leaves nothing running, and no pipe open.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
