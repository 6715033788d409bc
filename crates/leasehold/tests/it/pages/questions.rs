//! Questions of real users, and where the book answers each: the page and the heading where they would look.

use std::fs;
use std::path::Path;

/// A question, its page below `docs/book/src`, and the heading's name in a link.
type Answered = (&'static str, &'static str, &'static str);

const REDISSON: [Answered; 5] = [
    ("What replaces `tryLock(wait, lease, unit)`?", "coming-from.md", "redisson"),
    ("Where is the watchdog timeout, and can I turn renewal off?", "faq.md", "long-holds"),
    ("My async code loses the thread id. What is the owner here?", "service.md", "guards"),
    ("Can Redisson and leasehold both run during a migration?", "coming-from.md", "redisson"),
    ("How many connections and threads does a client use?", "service.md", "costs-of-a-client"),
];

const REDIS_PY: [Answered; 4] = [
    ("I cannot stop all programs at once. How do I migrate lock by lock?", "coming-from.md", "redis-py"),
    (
        "Does `with lock:` have an equivalent; what if I forget `release`?",
        "coming-from.md",
        "coming-from-another-library",
    ),
    ("What about `thread_local=True`?", "coming-from.md", "redis-py"),
    ("Which names and lengths may a lock have?", "faq.md", "names-and-numbers-of-locks"),
];

const SHEDLOCK: [Answered; 5] = [
    ("Does leasehold start my jobs, or only lock them?", "faq.md", "starting-jobs"),
    ("I only have PostgreSQL. What now?", "faq.md", "postgresql-mariadb-or-mysql-without-redis"),
    ("`lockAtMostFor = 10m` was my crash recovery time. What is it now?", "coming-from.md", "shedlock"),
    ("How do I compute the slot in a program?", "cookbook.md", "a-nightly-report-in-a-service"),
    ("Once: is that at most once or at least once?", "cookbook/schedules.md", "cron-on-several-machines-once"),
];

const CURATOR: [Answered; 3] = [
    ("What happens between SUSPENDED and LOST?", "coming-from.md", "apache-curator"),
    ("Is this as strong as ZooKeeper?", "faq.md", "compared-with-zookeeper"),
    ("Can the leader see that it is about to lose the term?", "kinds/election.md", "guarantees"),
];

const FLOCK: [Answered; 4] = [
    ("`( flock 9; ... ) 9>file` locks a section of a script. How?", "faq.md", "a-section-of-a-script"),
    ("Is the lock freed when the script is killed with -9?", "guarantees.md", "leasehold-run"),
    ("Does it work on NFS?", "stores/sqlite.md", "setting-it-up"),
    ("`flock -w 5` took seconds; what is `-w 5`?", "coming-from.md", "flock"),
];

const ANYBODY: [Answered; 12] = [
    ("Which errors do I retry?", "service.md", "errors-worth-retrying"),
    ("What do I do at SIGTERM?", "service.md", "shutdown"),
    ("How do I test code that loses a lock?", "testing.md", "code-that-loses-its-lock"),
    ("async-std, smol, actix, a current-thread runtime?", "service.md", "runtimes"),
    ("May a guard cross an `.await`, be stored in a struct, be `Send`?", "service.md", "guards"),
    ("What happens after `fork()`?", "service.md", "after-fork"),
    ("ElastiCache, MemoryDB, Upstash, Azure?", "stores/high-availability.md", "managed-services"),
    ("How do I install the binary without Rust? Container image, musl?", "command.md", "first-steps"),
    ("Two regions?", "stores/high-availability.md", "two-regions"),
    ("Is it production-ready? Who uses it?", "faq.md", "production-use"),
    ("What ttl do I choose?", "faq.md", "the-ttl"),
    ("How do I name locks, and how many may I have?", "faq.md", "names-and-numbers-of-locks"),
];

/// The names of a page's headings in a link, in their order; none if there is no such page. `cargo xtask tidy` checks that links have such names.
fn anchors(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap_or_default();
    // Every other part is a block of code, where `#` begins a comment.
    let prose = text.split("```").step_by(2);
    let headings =
        prose.flat_map(str::lines).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings.map(anchor).collect()
}

fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    };
    heading.to_lowercase().chars().filter_map(kept).collect()
}

#[test]
fn each_question_has_its_answer() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src");
    let questions = [&REDISSON[..], &REDIS_PY, &SHEDLOCK, &CURATOR, &FLOCK, &ANYBODY].concat();
    let mut missing = Vec::new();
    for (question, page, anchor) in questions {
        let there = anchors(&book.join(page));
        if !there.iter().any(|there| there == anchor) {
            missing.push(format!("{question}\n  {page} has no heading #{anchor}, but {}", there.join(", ")));
        }
    }
    assert!(missing.is_empty(), "questions without an answer:\n{}", missing.join("\n"));
}
