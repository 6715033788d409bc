//! The part of a child process: it waits for a lock, holds it, and answers questions about it until its input ends.

use std::env;
use std::io::{self, Write};

use crate::bench::Bench;
use crate::child::{Play, VARIABLE, WORD};
use crate::facade::options;
use crate::harness::Harness;

/// Plays the part that this process was started for, if it was; `suite!` makes the test that calls it.
pub fn play_child<H: Harness>() {
    let Ok(text) = env::var(VARIABLE) else { return };
    let play = Play::from_text(&text);
    let bench = Bench::attached::<H>(&play.address, play.facade);
    let client = bench.client();
    say("waiting");
    let guard = client.acquire(&play.name, &options(play.ttl)).unwrap();
    say(&format!("held {} {}", guard.token(), (bench.now() + guard.remaining()).as_nanos()));
    for question in io::stdin().lines().map_while(Result::ok) {
        match question.as_str() {
            "check" => say(if guard.check().is_ok() { "held" } else { "lost" }),
            "release" => {
                guard.release().unwrap();
                return say("released");
            }
            "detach" => return say(&guard.detach().unwrap().expose()),
            other => {
                let latch = other.strip_prefix("arrive ").expect("a child knows no other command");
                client.arrive(latch).unwrap();
                say("arrived");
            }
        }
    }
}

fn say(word: &str) {
    let mut out = io::stdout().lock();
    // The test program may have left a line open.
    writeln!(out, "\n{WORD}{word}").unwrap();
    out.flush().unwrap();
}
