//! Which of Curator's tests run, and which locks they use.
//!
//! Three classes about locks are left out. `TestLockInternals` asserts that its directory is empty, `TestLockACLs` that Curator made the
//! directory, and `TestInterProcessSemaphoreCluster` starts clusters of its own in the middle of its tests.

/// How a lock is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Mutex,
    ReadWrite,
}

/// A test class of Curator.
pub(super) struct Suite {
    pub(super) class: &'static str,
    kind: Kind,
    /// The names of its locks, which are their paths without the slash in front.
    locks: &'static [&'static str],
    /// The tests that nobody can pass who is not alone, and why.
    pub(super) excluded: &'static [(&'static str, &'static str)],
}

const CLEANUP: (&str, &str) =
    ("testContainerCleanup", "it starts a second server, where nobody may want the lock, so that its directory ends");

pub(super) const SUITES: [Suite; 5] = [
    Suite {
        class: "TestInterProcessMutex",
        kind: Kind::Mutex,
        locks: &["locks/our-lock"],
        excluded: &[
            CLEANUP,
            ("testRevoking", "it asserts that the lock has one participant, and revokes the first one"),
        ],
    },
    Suite {
        class: "TestInterProcessMultiMutex",
        kind: Kind::Mutex,
        locks: &["locks/our-lock-1", "locks/our-lock-2"],
        excluded: &[CLEANUP],
    },
    Suite {
        class: "TestInterProcessReadWriteLock",
        kind: Kind::ReadWrite,
        locks: &["lock"],
        excluded: &[
            ("testGetParticipantNodes", "it asserts how many writers the queue has"),
            ("testSetNodeData", "it asserts that the directory has one entry, and reads the first one"),
        ],
    },
    // A semaphore has a mutex, which its clients hold while they look for a permit.
    Suite {
        class: "TestInterProcessSemaphoreMutex",
        kind: Kind::Mutex,
        locks: &["locks/our-lock/locks"],
        excluded: &[CLEANUP],
    },
    Suite { class: "TestInterProcessSemaphore", kind: Kind::Mutex, locks: &["test/locks"], excluded: &[] },
];

/// The tests that stop their server for a time.
const OUTAGES: [&str; 2] = ["testWaitingProcessKilledServer", "testAcquireAfterLostServer"];

/// The tests that leave a lock held by a client that they do not close.
const LEFT_HELD: [&str; 2] = ["testSomeReleasesFail", "testContendingDowngrading"];

/// What ours want during a test.
pub(super) struct Wanted {
    pub(super) kind: Kind,
    pub(super) locks: Vec<String>,
    /// Whether the store is out of reach for a time.
    pub(super) has_outage: bool,
    /// Whether Curator keeps a lock at the end.
    pub(super) stays_held: bool,
}

impl Wanted {
    /// The test has the name `CLASS#METHOD`.
    pub(super) fn during(test: &str) -> Self {
        let (class, method) = test.split_once('#').expect("a class and a method");
        let suite = SUITES.iter().find(|suite| suite.class == class).expect("a known class");
        let locks = match method {
            "testWithNamespace" => suite.locks.iter().map(|lock| format!("test/{lock}")).collect(),
            "testWithSchema" => vec!["foo".to_owned()],
            _ => suite.locks.iter().map(|&lock| lock.to_owned()).collect(),
        };
        Self { kind: suite.kind, locks, has_outage: OUTAGES.contains(&method), stays_held: LEFT_HELD.contains(&method) }
    }
}
