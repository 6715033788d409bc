//! The JSON schema of configurations, `docs/book/src/configuration.schema.json`: it is up to date, and it agrees with what is read. To
//! rewrite it, run `cargo xtask schema`.

use std::path::PathBuf;

use boon::{Compiler, Schemas};
use leasehold::{BackendConfig, LockOptions};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::{Value, json};

/// A configuration file with the choice of a store and the options of a lock. A program has further tables in it, or keeps these
/// two elsewhere: then its own schema refers to `definitions/BackendConfig` and `definitions/LockOptions`.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "Configuration of leasehold")]
#[expect(dead_code, reason = "it is only read")]
struct Config {
    store: BackendConfig,
    #[serde(default)]
    lock: LockOptions,
}

fn docs(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../docs/book/src", file].iter().collect()
}

/// The schema as the types have it. Editors know draft 7 best.
fn schema() -> Value {
    SchemaSettings::draft07().into_generator().into_root_schema_for::<Config>().to_value()
}

/// Whether a validator accepts a value, and whether it can be read.
fn verdicts(given: &Value) -> (Result<(), String>, Result<(), String>) {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("mem:///schema.json", schema()).unwrap();
    let index = compiler.compile("mem:///schema.json", &mut schemas).unwrap();
    let valid = schemas.validate(given, index).map_err(|error| error.to_string());
    let read = serde_json::from_value::<Config>(given.clone()).map(drop).map_err(|error| error.to_string());
    (valid, read)
}

fn assert_accepted(given: &Value) {
    assert_eq!(verdicts(given), (Ok(()), Ok(())), "{given}");
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = docs("configuration.schema.json");
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(&path, format!("{:#}\n", schema())).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    let published: Value = serde_json::from_str(&published).unwrap_or_default();
    assert!(published == schema(), "{} is out of date; run `cargo xtask schema`", path.display());
}

#[test]
fn examples_of_the_pages_are_valid() {
    let library = std::fs::read_to_string(docs("../../../crates/leasehold/src/lib.rs")).unwrap().replace("//! ", "");
    let library = library.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0.to_owned());
    let pages = test_support::pages::blocks_in("toml").into_iter().map(|block| block.code);
    let others = ["[dependencies]", "[dev-dependencies]", "# leasehold.toml"]; // of Cargo and of the command, with tests of their own
    let examples: Vec<_> =
        pages.chain(library).filter(|code| others.iter().all(|other| !code.starts_with(other))).collect();
    for example in &examples {
        assert_accepted(&toml::from_str(example).unwrap());
    }
    let count = examples.len();
    assert!(count >= 8, "there are {count} examples");
}

#[test]
fn what_can_be_read_is_valid() {
    for store in [
        json!("redis://h"),
        json!("sqlite:locks.db?prefix=shop&op_timeout=500ms"),
        json!("memory:"),
        json!({ "backend": "redis", "url": "valkeys://h/2" }),
        json!({ "backend": "redis", "url": "valkey+cluster://h1,h2" }),
        json!("valkey+cluster://h1,h2"),
        json!("valkey+sentinel://h1,h2/orders"),
        json!("valkey+unix:///run/valkey.sock"),
        json!("unix:///run/redis.sock?db=3"),
        json!("rediss+sentinel://h1:26379,h2,h3/orders/2?max_ttl=6s"),
        json!({ "backend": "memory", "name": null }),
        json!({ "backend": "sqlite", "path": "a", "prefix": "leaseholders", "op_timeout": null }),
        json!({ "backend": "redis", "url": "redis://h", "sentinel": null, "replicas": 65535, "failover": "grant" }),
        json!({ "backend": "redis", "sentinel": { "nodes": ["h"], "master": "m", "database": 0, "ssl": true } }),
        json!("redis+cluster://h1:7000,h2?max_ttl=6s"),
        json!({ "backend": "redis", "url": "redis+cluster://h1:7000,h2" }),
        json!({ "backend": "redis", "cluster": { "nodes": ["h1", "h2:7000"], "password": "s", "ssl": true } }),
        json!("postgres://app@db1,db2:5433/shop?sslmode=require&schema=locks"),
        json!("postgresql://[::1]/shop?op_timeout=500ms"),
        json!("mysql://app@db1,db2:3307/shop?sslmode=require&prefix=a"),
        json!({ "backend": "mysql", "url": "mariadb://h/shop", "prefix": "a", "op_timeout": "1s", "sslmode": null }),
        json!({ "backend": "postgres", "url": "postgres://h/shop", "prefix": "a", "schema": "locks", "op_timeout": "1s" }),
        json!({ "backend": "postgres", "url": "postgresql://h/shop", "sslmode": "disable", "sslrootcert": "/etc/ca.pem" }),
        json!({ "backend": "postgres", "url": "postgres://h/shop", "schema": null, "sslmode": null, "op_timeout": null }),
        json!("etcd://e1,e2:2380//shop?prefix=a"),
        json!({ "backend": "etcd", "url": "etcds://app:s@e1/shop", "op_timeout": "1s", "sslrootcert": "/etc/ca.pem", "sslcert": null }),
        json!({ "backend": "redlock", "url": "redlock://a,b,c", "nodes": [], "max_ttl": null }),
        json!({ "backend": "redlock", "nodes": ["redis://a", "b:1", "c"], "url": null }),
    ] {
        assert_accepted(&json!({ "store": store }));
    }
    for ttl in ["100ms", " 1h30m ", "1.5 min", "2 weeks", "1M 2d", "200000µs"] {
        assert_accepted(&json!({ "store": "memory:", "lock": { "ttl": ttl } }));
    }
    for wait in [json!("0"), json!("0s"), json!("0s 1ns"), Value::Null] {
        assert_accepted(&json!({ "store": "memory:", "lock": { "wait": wait } }));
    }
    let all = serde_json::to_value(LockOptions::default().why("nightly").max_requests(3).barging()).unwrap();
    assert_accepted(&json!({ "store": "memory:", "lock": all, "of the program": 1 }));
}

#[test]
fn what_cannot_be_read_is_not_valid() {
    let long = "x".repeat(201);
    let stores = [
        json!(7),
        json!("h:6379"),
        json!({ "path": "a" }),
        json!({ "backend": "unknown" }),
        json!({ "backend": "memory", "name": "a/b" }),
        json!({ "backend": "memory", "nmae": "a" }),
        json!({ "backend": "sqlite" }),
        json!({ "backend": "sqlite", "path": "" }),
        json!({ "backend": "sqlite", "path": ":memory:" }),
        json!({ "backend": "sqlite", "path": "a", "prefix": "leasehold" }),
        json!({ "backend": "sqlite", "path": "a", "prefix": null }),
        json!({ "backend": "sqlite", "path": "a", "prefix": "a\nb" }),
        json!({ "backend": "sqlite", "path": "a", "op_timeout": "0s" }),
        json!({ "backend": "redis" }),
        json!({ "backend": "redis", "url": null }),
        json!({ "backend": "redis", "url": "sqlite:a" }),
        json!({ "backend": "redis", "url": "redis://h", "sentinel": { "nodes": ["h"], "master": "m" } }),
        json!({ "backend": "redis", "url": "redis://h", "replicas": 0 }),
        json!({ "backend": "redis", "url": "redis://h", "replicas": 65536 }),
        json!({ "backend": "redis", "url": "redis://h", "failover": "wait" }),
        json!({ "backend": "redis", "url": "redis://h", "max_ttl": 60 }),
        json!({ "backend": "redis", "url": "redis://h", "db": 2 }),
        json!({ "backend": "redis", "sentinel": { "nodes": ["h"] } }),
        json!({ "backend": "redis", "url": "redis://h", "cluster": { "nodes": ["h"] } }),
        json!({ "backend": "redis", "cluster": { "nodes": ["u:p@h"] } }),
        json!({ "backend": "redis", "cluster": { "nodes": ["h"], "database": 1 } }),
        json!({ "backend": "redis", "sentinel": { "nodes": [], "master": "m" } }),
        json!({ "backend": "redis", "sentinel": { "nodes": ["u:p@h"], "master": "m" } }),
        json!({ "backend": "redis", "sentinel": { "nodes": ["h"], "master": "a b" } }),
        json!({ "backend": "redis", "sentinel": { "nodes": ["h"], "master": "m", "tls": true } }),
        json!({ "backend": "mysql", "url": "postgres://h/shop" }),
        json!({ "backend": "mysql", "url": "mysql://h/shop", "schema": "locks" }),
        json!({ "backend": "postgres" }),
        json!({ "backend": "postgres", "url": null }),
        json!({ "backend": "postgres", "url": "redis://h/shop" }),
        json!({ "backend": "postgres", "url": "postgres://h/shop", "schema": "A" }),
        json!({ "backend": "postgres", "url": "postgres://h/shop", "sslmode": "allow" }),
        json!({ "backend": "postgres", "url": "postgres://h/shop", "port": 5432 }),
        json!({ "backend": "postgres", "url": "postgres://h/shop", "op_timeout": "0s" }),
        json!({ "backend": "redlock" }),
        json!({ "backend": "redlock", "nodes": ["a", "b"] }),
        json!({ "backend": "redlock", "nodes": ["a", "a", "b"] }),
        json!({ "backend": "redlock", "url": "redlock://a,b,c", "max_ttl": "1m" }),
    ];
    let stores = stores.into_iter().map(|store| json!({ "store": store }));
    let options = [
        json!({ "tll": "10s" }),
        json!({ "ttl": 30 }),
        json!({ "ttl": "30" }),
        json!({ "ttl": "0s" }),
        json!({ "ttl": "5 fortnights" }),
        json!({ "wait": "-1s" }),
        json!({ "wait": "1." }),
        json!({ "max_requests": 0 }),
        json!({ "max_requests": 4_294_967_296_u64 }),
        json!({ "on_unavailable": "panic" }),
        json!({ "fairness": true }),
        json!({ "why": "a\nb" }),
        json!({ "why": long }),
        json!({ "max_hold": "0s" }),
    ];
    let options = options.into_iter().map(|lock| json!({ "store": "memory:", "lock": lock }));
    for given in stores.chain(options) {
        let (valid, read) = verdicts(&given);
        assert!(valid.is_err() && read.is_err(), "{given}: valid {valid:?}, read {read:?}");
    }
}
