//! A database that was restored from a dump.

use std::process::Command;

use lock_core::{Fenced, Renewed};
use test_support::{Finish, PostgresOptions, PostgresServer};

use crate::support::{SOON, Session, claim, client, code, is_busy, low, releases, take};

/// The statements of a dump of the database.
fn dump(server: &PostgresServer) -> String {
    let mut dump = Command::new("pg_dump");
    dump.args(["--inserts", "-h", "127.0.0.1", "-U", "postgres", "-p", &server.port().to_string(), "postgres"]);
    let done = dump.finish();
    assert!(done.status.success(), "pg_dump: {}", String::from_utf8_lossy(&done.stderr));
    // Lines that begin with a backslash are for psql alone.
    String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with('\\'))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn what_was_granted_after_the_dump_is_refused_and_tokens_go_on_above_it() {
    let server = PostgresServer::start_with(PostgresOptions::default().volatile());
    let (live, [kept, passing]) = (client(&server.url()), ["kept", "passing"].map(claim));
    let held = take(&live, &kept);
    let early = take(&live, &passing);
    releases(&live, &passing);
    let script = dump(&server);
    let late = take(&live, &claim("passing"));
    assert!(late.tokens.low() > early.tokens.high());

    let url = server.database("restored");
    Session::connect(&url).run(&script).unwrap();
    let restored = client(&url);
    is_busy(restored.acquire(&claim("kept"), SOON));
    assert!(matches!(restored.renew(&[held], SOON).unwrap()[..], [Renewed::Renewed { .. }]));
    assert_eq!(restored.renew(std::slice::from_ref(&late), SOON).unwrap(), [Renewed::NotHeld]);
    let session = Session::connect(&url);
    session.run("SET search_path = leasehold").unwrap();
    assert_eq!(code(session.begin("passing", low(&late))), "LH001");
    let next = take(&restored, &claim("passing"));
    assert!(next.tokens.low() > late.tokens.high(), "{:?} after {:?}", next.tokens, late.tokens);
    assert!(matches!(restored.fence(&late, SOON).unwrap(), Fenced::Higher(_)));
}
