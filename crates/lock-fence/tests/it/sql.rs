//! The checks in SQL.

use lock_core::FencingToken;
use lock_fence::Refused;
use lock_fence::sql::{FenceColumn, FenceTable, SqlError};
use rusqlite::Connection;

use crate::{token, write_token};

fn accounts() -> (Connection, FenceColumn) {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch("CREATE TABLE account (id INTEGER, part INTEGER, balance INTEGER)").unwrap();
    db.execute_batch("INSERT INTO account VALUES (1, 1, 0), (1, 2, 0), (2, 1, 0)").unwrap();
    let column = FenceColumn::new("account", "fence").unwrap();
    db.execute_batch(&column.add_column()).unwrap();
    (db, column)
}

fn balance(db: &Connection, id: i64) -> Vec<(i64, i64)> {
    let mut rows = db.prepare("SELECT balance, fence FROM account WHERE id = ? ORDER BY part").unwrap();
    rows.query_map([id], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn is_refused(result: Result<impl Sized, SqlError>, by: u64) -> bool {
    matches!(result, Err(SqlError::Refused(Refused { highest, .. })) if highest == token(by))
}

#[test]
fn a_lower_token_is_refused_and_an_equal_one_passes() {
    let (db, column) = accounts();
    let write = |number, balance: i64| column.update(&db, token(number), &[("balance", &balance)], &[("id", &2)]);
    assert_eq!(write(34, 50).unwrap(), 1);
    assert!(is_refused(write(33, 60), 34));
    assert_eq!(balance(&db, 2), [(50, 34)]);
    assert_eq!(write(34, 70).unwrap(), 1);
    assert_eq!(balance(&db, 2), [(70, 34)]);
}

#[test]
fn several_rows_are_written_or_none() {
    let (db, column) = accounts();
    column.update(&db, token(34), &[("balance", &5)], &[("id", &1), ("part", &2)]).unwrap();
    assert!(is_refused(column.update(&db, token(33), &[("balance", &6)], &[("id", &1)]), 34));
    assert_eq!(balance(&db, 1), [(0, 0), (5, 34)]);
    assert_eq!(column.update(&db, token(34), &[], &[("id", &1)]).unwrap(), 2);
    assert_eq!(balance(&db, 1), [(0, 34), (5, 34)]);
}

#[test]
fn a_reader_changes_nothing() {
    let (db, column) = accounts();
    let read = |number| column.check_read(&db, token(number), &[("id", &2)]);
    read(90).unwrap();
    column.update(&db, token(34), &[], &[("id", &2)]).unwrap();
    read(90).unwrap();
    assert!(is_refused(read(33), 34));
    assert_eq!(balance(&db, 2), [(0, 34)]);
}

#[test]
fn a_row_that_is_not_there_says_so() {
    let (db, column) = accounts();
    let missing = column.update(&db, token(34), &[("balance", &1)], &[("id", &3)]).unwrap_err();
    assert_eq!(missing.to_string(), "the table account has no row with this key; insert it first");
}

#[test]
fn a_trigger_that_ignores_the_write_is_an_error() {
    let (db, column) = accounts();
    db.execute_batch("CREATE TRIGGER no BEFORE UPDATE ON account BEGIN SELECT RAISE(IGNORE); END").unwrap();
    let error = column.update(&db, token(34), &[("balance", &1)], &[("id", &2)]).unwrap_err();
    assert!(matches!(error, SqlError::Sql(rusqlite::Error::StatementChangedRows(0))), "{error}");
}

#[test]
fn a_trigger_that_ignores_a_raise_is_an_error() {
    let mut db = Connection::open_in_memory().unwrap();
    db.execute_batch(FenceTable::CREATE).unwrap();
    let raise = |db: &mut Connection, number| {
        let transaction = db.transaction().unwrap();
        FenceTable::raise(&transaction, "a", write_token(number)).map(|()| transaction.commit().unwrap())
    };
    raise(&mut db, 33).unwrap();
    for when in ["INSERT", "UPDATE"] {
        db.execute_batch(&format!(
            "CREATE TRIGGER no{when} BEFORE {when} ON leasehold_fence BEGIN SELECT RAISE(IGNORE); END"
        ))
        .unwrap();
        let error = raise(&mut db, 34).unwrap_err();
        assert!(matches!(error, SqlError::Sql(rusqlite::Error::StatementChangedRows(0))), "{when}: {error}");
        assert!(is_refused(raise(&mut db, 32), 33), "{when}");
        db.execute_batch(&format!("DROP TRIGGER no{when}")).unwrap();
    }
}

#[test]
fn a_missing_column_names_the_statement_that_adds_it() {
    let (db, _) = accounts();
    let column = FenceColumn::new("account", "token \"seen\"").unwrap();
    let write = || column.update(&db, token(34), &[("balance", &1)], &[("id", &2)]);
    for error in [write().unwrap_err(), column.check_read(&db, token(34), &[("id", &2)]).unwrap_err()] {
        let text = error.to_string();
        let statement = r#"ALTER TABLE "account" ADD COLUMN "token ""seen""" BIGINT NOT NULL DEFAULT 0"#;
        assert!(text.ends_with(statement) && text.contains("has no column"), "{text}");
    }
    assert_eq!(balance(&db, 2), [(0, 0)]);
    db.execute_batch(&column.add_column()).unwrap();
    assert_eq!(write().unwrap(), 1);
    assert!(is_refused(column.check_read(&db, token(33), &[("id", &2)]), 34));
}

#[test]
fn other_mistakes_stay_the_errors_of_the_database() {
    let (db, column) = accounts();
    let said =
        |set: &str, key: &str| column.update(&db, token(34), &[(set, &1)], &[(key, &2)]).unwrap_err().to_string();
    assert!(said("blance", "id").contains("no such column"), "{}", said("blance", "id"));
    assert!(said("balance", "di").contains("no such column"), "{}", said("balance", "di"));
    let other = FenceColumn::new("acount", "fence").unwrap();
    let error = other.update(&db, token(34), &[], &[("id", &2)]).unwrap_err().to_string();
    assert!(error.contains("no such table"), "{error}");
}

#[test]
fn what_cannot_be_a_statement_is_refused() {
    let (db, column) = accounts();
    assert!(FenceColumn::new("", "fence").is_err());
    assert!(FenceColumn::new("account", "fen\0ce").is_err());
    let everything = column.update(&db, token(34), &[("balance", &1)], &[]).unwrap_err();
    assert!(matches!(&everything, SqlError::Invalid(invalid) if invalid.what() == "key"), "{everything}");
    let twice = column.update(&db, token(34), &[("Fence", &1)], &[("id", &2)]).unwrap_err();
    assert!(matches!(&twice, SqlError::Invalid(invalid) if invalid.what() == "column"), "{twice}");
    assert_eq!(balance(&db, 2), [(0, 0)]);
}

#[test]
fn a_fence_that_is_no_token_is_refused_and_repaired() {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch("CREATE TABLE account (id INTEGER, fence BIGINT); INSERT INTO account VALUES (1, 0)").unwrap();
    let column = FenceColumn::new("account", "fence").unwrap();
    for (bad, shown) in [
        ("NULL", "NULL"),
        ("-5", "-5"),
        ("9007199254740992", "9007199254740992"),
        ("'x'", "a text (the column needs an integer type)"),
    ] {
        db.execute_batch(&format!("UPDATE account SET fence = {bad}")).unwrap();
        let error = column.update(&db, token(34), &[], &[("id", &1)]).unwrap_err();
        let SqlError::BadFence { found, statement, .. } = &error else { panic!("{error}") };
        assert_eq!(found, shown);
        assert!(error.to_string().contains(statement), "{error}");
        db.execute(statement, [1]).unwrap();
        assert_eq!(column.update(&db, token(34), &[], &[("id", &1)]).unwrap(), 1);
    }
}

#[test]
fn no_token_is_negative() {
    for number in [-1, 0, i64::MIN] {
        assert!(FencingToken::try_from(number).unwrap_err().to_string().contains("fencing token"));
    }
}

#[test]
fn a_transaction_of_a_late_holder_is_refused() {
    let (mut db, _) = accounts();
    let missing = FenceTable::raise(&db.transaction().unwrap(), "a", write_token(34)).unwrap_err().to_string();
    assert!(missing.contains(FenceTable::CREATE) && missing.contains("there is no table"), "{missing}");
    db.execute_batch(FenceTable::CREATE).unwrap();
    let mut raise = |resource: &str, number| {
        let transaction = db.transaction().unwrap();
        let raised = FenceTable::raise(&transaction, resource, write_token(number));
        transaction.commit().unwrap();
        raised
    };
    raise("späť '\"\0", 34).unwrap();
    raise("späť '\"\0", 34).unwrap();
    assert!(is_refused(raise("späť '\"\0", 33), 34));
    raise("another", 33).unwrap();
    let transaction = db.transaction().unwrap();
    FenceTable::check_read(&transaction, "another", token(90)).unwrap();
    FenceTable::check_read(&transaction, "unseen", token(1)).unwrap();
    assert!(is_refused(FenceTable::check_read(&transaction, "another", token(32)), 33));
    transaction.execute("UPDATE leasehold_fence SET token = -5 WHERE resource = 'another'", ()).unwrap();
    let error = FenceTable::raise(&transaction, "another", write_token(90)).unwrap_err();
    assert!(matches!(&error, SqlError::BadFence { found, .. } if found == "-5"), "{error}");
}

#[test]
fn a_write_that_is_rolled_back_raises_nothing() {
    let (mut db, column) = accounts();
    db.execute_batch(FenceTable::CREATE).unwrap();
    let transaction = db.transaction().unwrap();
    FenceTable::raise(&transaction, "a", write_token(34)).unwrap();
    column.update(&transaction, token(34), &[("balance", &1)], &[("id", &2)]).unwrap();
    drop(transaction);
    assert_eq!(balance(&db, 2), [(0, 0)]);
    FenceTable::raise(&db.transaction().unwrap(), "a", write_token(1)).unwrap();
}

/// As texts, 9 is above 10. A real number would pass until the first late holder.
#[test]
fn a_fence_in_a_column_of_another_type_is_an_error() {
    for kind in ["TEXT", "VARCHAR(20)", "REAL"] {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(&format!("CREATE TABLE account (id INTEGER, fence {kind} NOT NULL DEFAULT 0)")).unwrap();
        db.execute_batch("INSERT INTO account (id) VALUES (1)").unwrap();
        let column = FenceColumn::new("account", "fence").unwrap();
        for number in [10, 9] {
            let error = column.update(&db, token(number), &[], &[("id", &1)]).unwrap_err().to_string();
            assert!(error.contains("the column needs an integer type"), "{kind}: {error}");
        }
    }
}

#[test]
fn a_column_is_raised_before_the_read() {
    let (db, column) = accounts();
    let raise = |number, id: i64| column.raise(&db, write_token(number), &[("id", &id)]);
    assert_eq!((raise(34, 2).unwrap(), raise(34, 2).unwrap()), (1, 1));
    assert_eq!(balance(&db, 2), [(0, 34)]);
    assert!(is_refused(raise(33, 2), 34));
    assert!(is_refused(column.update(&db, token(33), &[("balance", &1)], &[("id", &2)]), 34));
    assert_eq!(raise(35, 1).unwrap(), 2);
    assert_eq!(balance(&db, 1), [(0, 35), (0, 35)]);
    let missing = raise(36, 3).unwrap_err();
    assert!(matches!(&missing, SqlError::NoRow { table } if table == "account"), "{missing}");
}
