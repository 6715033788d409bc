//! A database that was restored from a dump: what was granted after the dump is refused, and tokens go on rising.

use lock_core::{Fenced, Renewed};
use mysql::prelude::Queryable;

use crate::support::{Place, SOON, Session, claim, client, code, database_of, is_busy, low, releases, take};

/// The statement that makes a table or a procedure, as the server tells programs that dump a database.
fn maker(watcher: &Session, what: &str, column: usize) -> String {
    let row: mysql::Row = watcher.0.borrow_mut().query_first(format!("SHOW CREATE {what}")).unwrap().unwrap();
    row.get(column).unwrap()
}

fn names(watcher: &Session, question: &str) -> Vec<String> {
    watcher.0.borrow_mut().query(question).unwrap()
}

/// Copies a database, as `mariadb-dump --routines` and restoring do. The program is not in every package of clients.
fn copy(watcher: &Session, from: &str, to: &str) {
    watcher.run(&format!("USE {to}")).unwrap();
    for table in names(watcher, &format!("SHOW TABLES FROM {from}")) {
        watcher.run(&maker(watcher, &format!("TABLE {from}.{table}"), 1)).unwrap();
        watcher.run(&format!("INSERT INTO {to}.{table} SELECT * FROM {from}.{table}")).unwrap();
    }
    let routines = format!("SELECT routine_name FROM information_schema.ROUTINES WHERE routine_schema = '{from}'");
    for procedure in names(watcher, &routines) {
        let statement = maker(watcher, &format!("PROCEDURE {from}.{procedure}"), 2);
        watcher.0.borrow_mut().query_drop(statement).unwrap();
    }
}

#[test]
fn what_was_granted_after_the_dump_is_refused_and_tokens_go_on_above_it() {
    let place = Place::new();
    let (live, [kept, passing]) = (place.client(), ["kept", "passing"].map(claim));
    let held = take(&live, &kept);
    let early = take(&live, &passing);
    releases(&live, &passing);
    let url = place.server.new_database();
    copy(&place.watcher(), place.database(), database_of(&url));
    let late = take(&live, &claim("passing"));
    assert!(late.tokens.low() > early.tokens.high());

    let restored = client(&url);
    is_busy(restored.acquire(&claim("kept"), SOON));
    assert!(matches!(restored.renew(&[held], SOON).unwrap()[..], [Renewed::Renewed { .. }]));
    assert_eq!(restored.renew(std::slice::from_ref(&late), SOON).unwrap(), [Renewed::NotHeld]);
    let session = Session::connect(&url);
    assert_eq!(code(session.begin("passing", low(&late))), "LH001");
    let next = take(&restored, &claim("passing"));
    assert!(next.tokens.low() > late.tokens.high(), "{:?} after {:?}", next.tokens, late.tokens);
    assert!(matches!(restored.fence(&late, SOON).unwrap(), Fenced::Higher(_)));
    session.begin("passing", low(&next)).unwrap();
}

/// Programs leave out the procedures by default.
#[test]
fn a_dump_without_procedures_is_refused_and_can_be_completed() {
    let place = Place::new();
    let token = low(&take(&place.client(), &claim("kept")));
    let url = place.server.new_database();
    let (from, to, watcher) = (place.database(), database_of(&url), place.watcher());
    watcher.run(&format!("USE {to}")).unwrap();
    for table in names(&watcher, &format!("SHOW TABLES FROM {from}")) {
        watcher.run(&maker(&watcher, &format!("TABLE {from}.{table}"), 1)).unwrap();
        watcher.run(&format!("INSERT INTO {to}.{table} SELECT * FROM {from}.{table}")).unwrap();
    }
    let config = lock_mysql::MysqlConfig::from_url(&url).unwrap();
    let error = lock_mysql::blocking::connect(&config).map(drop).unwrap_err();
    assert_eq!(error.kind(), lock_core::ErrorKind::Config, "{error:?}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("--routines")), "{error:?}");
    // A client that finds no layout makes what is missing, and leaves the rows as they are.
    watcher.run("DELETE FROM leasehold_layout").unwrap();
    is_busy(client(&url).acquire(&claim("kept"), SOON));
    Session::connect(&url).begin("kept", token).unwrap();
}
