//! Sessions as people see them, compared with those that are committed.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use leasehold::backend::{Answer, BlockingBackend, Certainty, Claim, NameKind, Owner, Queueing, Terms, Width};
use leasehold::inspect::{Note, Revoked};
use leasehold::sqlite::SqliteConfig;
use leasehold::sqlite::blocking::Sqlite;
use leasehold::{Fairness, FencingToken, Holder, LockName, Ttl};
use regex::Regex;

use super::leasehold::Leasehold;
use super::screen::Screen;
use super::session::Session;
use super::{Scratch, wait_for};

const WITHIN: Duration = Duration::from_secs(20);
/// The remaining time is equally wide for the first 40 seconds.
const TTL: Duration = Duration::from_secs(30 * 60 + 50);
/// What stands between two looks at the same screen.
const LATER: &str = "----- later -----\n";

/// Plays a session in front of each screen, and compares what is seen with the committed transcripts, or rewrites those if
/// `LEASEHOLD_BLESS` is set.
pub(crate) fn on_every_screen(name: &str, play: impl Fn(&Stage) -> String + Sync) -> [String; 4] {
    let play = &play;
    let seen = thread::scope(|scope| {
        let played = Screen::ALL.map(|screen| scope.spawn(move || play(&Stage::before(screen))));
        played.map(|played| played.join().unwrap())
    });
    for (screen, seen) in Screen::ALL.into_iter().zip(&seen) {
        compare(&format!("{name}.{}.txt", screen.name()), seen);
    }
    seen
}

/// The same, for a session in which a terminal of unknown size shows what a pipe gets, but for colours.
pub(crate) fn on_every_screen_alike(name: &str, play: impl Fn(&Stage) -> String + Sync) {
    let [_, no_size, _, pipe] = on_every_screen(name, play);
    assert_eq!(Regex::new("</>|<[a-z]+>").unwrap().replace_all(&no_size, ""), pipe);
}

fn compare(file: &str, seen: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(file);
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, seen).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == seen,
        "{file} has changed. It is now:\n{seen}\nand was:\n{committed}\n\
         If the change is meant, run the tests again with LEASEHOLD_BLESS=1 and review the difference."
    );
}

/// A store of its own, and a screen.
pub(crate) struct Stage {
    pub(crate) screen: Screen,
    pub(crate) leasehold: Leasehold,
}

impl Stage {
    fn before(screen: Screen) -> Self {
        Self { screen, leasehold: Leasehold { scratch: Scratch::in_tmp() } }
    }

    /// Types commands, one after the other.
    pub(crate) fn plays(&self, lines: &[&str]) -> Play {
        let show =
            r#"show() { printf '$ %s\n' "$1"; eval "$1"; code=$?; [ $code = 0 ] || echo "[exit code $code]"; }; "#;
        let lines: Vec<_> = lines.iter().map(|line| format!("show {}", quoted(line))).collect();
        self.play(&format!("{show}{}", lines.join("; ")))
    }

    /// Types a command that goes on until Enter is pressed.
    pub(crate) fn plays_until_enter(&self, line: &str) -> Play {
        self.play(&format!("printf '$ %s\n' {}; {line} & read enter; kill $!", quoted(line)))
    }

    fn play(&self, script: &str) -> Play {
        let command = self.screen.command(&self.leasehold, script);
        let place = self.leasehold.scratch.path().display().to_string();
        Play { screen: self.screen, place, seen: String::new(), session: Session::of_command(command, Scratch::new()) }
    }

    /// Holds a lock from another machine.
    pub(crate) fn hold(&self, name: &str) -> Elsewhere {
        Elsewhere::holding(&self.leasehold, name)
    }

    /// Ends the lease that holds this lock, once there is one.
    pub(crate) fn revoke(&self, name: &str) {
        let (store, name) = (open(&self.leasehold), name_of(name));
        let token = wait_for("a holder", || match store.holder(&name, WITHIN).unwrap()?.holder {
            Holder::Leasehold { tokens, .. } => Some(tokens.high()),
            Holder::Foreign => None,
        });
        assert!(matches!(
            store.revoke(&name, token, &Note::new("db1", 77, "the host is gone").unwrap(), WITHIN).unwrap(),
            Revoked::Revoked
        ));
    }
}

fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', r"'\''"))
}

/// A session that goes on.
pub(crate) struct Play {
    screen: Screen,
    /// Where its files are.
    place: String,
    seen: String,
    session: Session,
}

impl Play {
    /// Waits until this is shown.
    pub(crate) fn shows(mut self, text: &str) -> Self {
        self.session.shows(text);
        self
    }

    /// Keeps what is seen now.
    pub(crate) fn look(mut self) -> Self {
        let sent = self.session.up_to_here();
        self.seen.push_str(&self.screen.rendered(&sent));
        self
    }

    pub(crate) fn types(mut self, keys: &str) -> Self {
        self.session.types(keys);
        self
    }

    /// What was seen at each look, and is seen at the end.
    pub(crate) fn end(mut self) -> String {
        if !self.seen.is_empty() {
            self.seen.push_str(LATER);
        }
        let sent = self.session.end_with_bytes();
        self.screen.check_fit(&sent);
        self.seen.push_str(&self.screen.rendered(&sent));
        normal(&self.seen, &self.place)
    }

    /// What was seen at the looks.
    pub(crate) fn leave(mut self) -> String {
        self.session.types("\n");
        self.session.end();
        normal(&self.seen, &self.place)
    }
}

/// The text with all that differs from run to run replaced. What replaces it is equally wide.
fn normal(text: &str, place: &str) -> String {
    let rules = [
        // Tokens, ports, durations, times and versions.
        (r"\b1[789]\d{14}\b", "1795295642004295"),
        (r"127\.0\.0\.1:\d{5}\b", "127.0.0.1:16379"),
        (r"\b30m \d\ds\b", "30m 50s"),
        (r"[ \d]\ds( +30m 50s)", " 1s$1"),
        (r"got the lock \d+s ago", "got the lock 1s ago"),
        (r"held     for \d+s", "held     for 1s"),
        (r"\b\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d\d\d)?Z", "2026-11-21T03:00:00Z"),
        (r"\d+\.\d{3} ms", "0.123 ms"),
        (r"trial lock in [0-9ms ]+", "trial lock in 12ms"),
        (r"redis \d+\.\d+\.\d+", "redis 7.0.15"),
        (r"\b\d+s of at most", "0s of at most"),
        (r"[⠁-⣿] waiting", "⠋ waiting"),
    ];
    let text = text.replace(place, "/home/you/here");
    rules.iter().fold(text, |text, (pattern, with)| Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned())
}

/// A lease of a process on another machine.
pub(crate) struct Elsewhere {
    store: Arc<Sqlite>,
    claim: Claim,
    pub(crate) token: FencingToken,
}

impl Elsewhere {
    fn holding(leasehold: &Leasehold, name: &str) -> Self {
        let store = Arc::new(open(leasehold));
        let claim = Claim {
            name: name_of(name),
            owner: Owner::from_random([7; 16]),
            terms: Terms::exclusive(Ttl::new(TTL).unwrap()),
            width: Width::ONE,
            floor: None,
            note: Note::from_wire("4711@web-3 books"),
            queueing: Queueing::Unwanted,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        };
        match store.acquire(&claim, WITHIN).unwrap() {
            Answer::Granted { lease, .. } => Self { store, claim, token: lease.tokens.high() },
            other @ (Answer::Queued { .. } | Answer::Busy { .. }) => panic!("not granted: {other:?}"),
        }
    }

    pub(crate) fn release(self) {
        self.store.release(&self.claim.release(Certainty::Answered), WITHIN).unwrap();
    }
}

fn open(leasehold: &Leasehold) -> Sqlite {
    std::fs::create_dir_all(leasehold.database().parent().unwrap()).unwrap();
    Sqlite::open(&SqliteConfig::new(leasehold.database())).unwrap()
}

fn name_of(name: &str) -> LockName {
    name.parse().unwrap()
}
