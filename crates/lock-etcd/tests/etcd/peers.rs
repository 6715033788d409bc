//! Beside etcd's own client program.

use std::process::{Child, Stdio};

use lock_core::{Answer, Holder};
use test_support::bounds::{output_of, wait_for};
use test_support::signals::terminate;

use crate::support::{Client, claim, server, waiting};

/// Runs a command while it holds the lock of this key.
fn lock(key: &str, words: &[&str]) -> Child {
    let mut command = server().etcdctl(&[&["lock", key], words].concat());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Whether a key of this lock is there that is not ours.
fn has_foreign(key: &str) -> bool {
    let listed = server().run(&["get", "--prefix", &format!("{key}/")]);
    listed.lines().count() > 0 && !listed.contains("owner")
}

#[test]
fn etcdctl_waits_for_us() {
    let (server, key) = (server(), "leasehold/ours");
    let (client, ours) = (Client::new(&server.url()), claim("ours"));
    client.take(&ours);
    let mut theirs = lock(key, &["echo", "locked"]);
    wait_for("its key", || {
        server.run(&["get", "--prefix", "--keys-only", &format!("{key}/")]).matches(key).count() == 2
    });
    assert!(theirs.try_wait().unwrap().is_none(), "it waits");
    client.releases(&ours);
    let output = output_of(theirs, "etcdctl lock");
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("locked"), "{output:?}");
}

#[test]
fn we_wait_for_etcdctl() {
    let (server, key) = (server(), "leasehold/theirs");
    let client = Client::new(&server.url());
    let mut theirs = lock(key, &[]);
    wait_for("its key", || has_foreign(key));
    let answer = client.acquire(&claim("theirs")).unwrap();
    assert!(matches!(answer, Answer::Busy { holder: Holder::Foreign, .. }), "{answer:?}");
    let ours = waiting("theirs");
    client.queue(&ours, 1);
    terminate(theirs.id());
    wait_for("its end", || theirs.try_wait().unwrap());
    client.wait_for_grant(&ours);
}
