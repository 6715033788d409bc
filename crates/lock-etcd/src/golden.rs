//! The messages beside those of `etcdctl`, which a proxy records. What it cannot send is tried with the server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use futures_util::StreamExt;
use futures_util::stream::{iter, pending};
use lock_core::Prefix;
use prost::Message;
use serde_json::Value;
use test_support::bounds::{PATIENCE, output_of, wait_for};
use test_support::{EtcdServer, Shared};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::EtcdConfig;
use crate::cluster::Cluster;
use crate::proto::{
    Compare, CompareResult, CompareTarget, CompareWith, DeleteRangeRequest, Event, Header, KeyValue, LeaseGrantRequest,
    LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse,
    PutRequest, RangeRequest, RangeResponse, Request, RequestOp, Response, SortOrder, SortTarget, TxnRequest,
    TxnResponse, WatchAct, WatchCancel, WatchCreate, WatchFilter, WatchRequest, WatchResponse,
};
use crate::servers::Servers;
use crate::txn;

/// What a client begins a connection with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn server() -> Arc<EtcdServer> {
    static SERVER: Shared<EtcdServer> = Shared::new();
    SERVER.get(EtcdServer::start)
}

/// Passes one connection on, and keeps what is sent and answered.
struct Recorder {
    port: u16,
    kept: [Arc<Mutex<Vec<u8>>>; 2],
}

impl Recorder {
    fn before(server: &EtcdServer) -> Self {
        let (listener, to) = (TcpListener::bind(("127.0.0.1", 0)).unwrap(), server.port());
        let (port, kept) = (listener.local_addr().unwrap().port(), <[Arc<Mutex<Vec<u8>>>; 2]>::default());
        let [sent, answered] = kept.clone();
        thread::spawn(move || {
            let client = listener.accept().unwrap().0;
            let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || pass((client, server), &sent));
            pass(back, &answered);
        });
        Self { port, kept }
    }

    /// The messages of its one call: the requests and the answers.
    fn messages(&self) -> [Vec<Vec<u8>>; 2] {
        self.kept.each_ref().map(|kept| messages(&kept.lock().unwrap()))
    }
}

fn pass((mut from, mut to): (TcpStream, TcpStream), kept: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        kept.lock().unwrap().extend(&bytes[..count]);
        to.write_all(&bytes[..count]).unwrap_or_default();
    }
}

fn messages(sent: &[u8]) -> Vec<Vec<u8>> {
    let (mut frames, mut data) = (sent.strip_prefix(PREFACE).unwrap_or(sent), Vec::new());
    while let [high, middle, low, kind, _flags, _, _, _, _, rest @ ..] = frames {
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let Some((payload, others)) = rest.split_at_checked(length) else { break };
        data.extend_from_slice(if *kind == 0 { payload } else { &[] });
        frames = others;
    }
    let (mut data, mut found) = (&data[..], Vec::new());
    while let [0, a, b, c, d, rest @ ..] = data {
        let Some((message, others)) = rest.split_at_checked(u32::from_be_bytes([*a, *b, *c, *d]) as usize) else {
            break;
        };
        found.push(message.to_vec());
        data = others;
    }
    found
}

/// The request of a command, the answer, and what it prints of that.
fn call(server: &EtcdServer, words: &[&str], input: &str) -> (Vec<u8>, Vec<u8>, Value) {
    let recorder = Recorder::before(server);
    let mut command = server.etcdctl_at(recorder.port, &[words, &["-w", "json"]].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = output_of(child, "etcdctl");
    assert!(output.status.success(), "{words:?}: {output:?}");
    let [requests, answers] = recorder.messages();
    assert_eq!((requests.len(), answers.len()), (1, 1), "{words:?}");
    (requests[0].clone(), answers[0].clone(), serde_json::from_slice(&output.stdout).unwrap())
}

/// What a command sends.
fn sent(server: &EtcdServer, words: &[&str]) -> Vec<u8> {
    call(server, words, "").0
}

/// A lease, as `etcdctl` names it.
fn lease(server: &EtcdServer) -> (i64, String) {
    let (sent, answer, told) = call(server, &["lease", "grant", "60"], "");
    assert_eq!(sent, LeaseGrantRequest { ttl: 60 }.encode_to_vec());
    let id = told["ID"].as_i64().unwrap();
    let granted = LeaseGrantResponse { header: header(&told), id, ttl: told["TTL"].as_i64().unwrap() };
    assert_eq!((LeaseGrantResponse::decode(&answer[..]).unwrap(), granted.ttl), (granted, 60));
    (id, format!("{id:x}"))
}

fn header(told: &Value) -> Option<Header> {
    let [cluster_id, member_id, raft_term] =
        ["cluster_id", "member_id", "raft_term"].map(|field| told[field].as_u64().unwrap());
    Some(Header { cluster_id, member_id, revision: told["revision"].as_i64().unwrap(), raft_term })
}

/// A key as it is printed; its name and its value are known.
fn printed(told: &Value, key: &str, value: &str) -> KeyValue {
    let [create_revision, mod_revision] =
        ["create_revision", "mod_revision"].map(|field| told[field].as_i64().unwrap());
    let lease = told["lease"].as_i64().unwrap_or_default();
    KeyValue { key: key.into(), create_revision, mod_revision, value: value.into(), lease }
}

#[test]
fn leases_are_asked_for_and_answered_as_by_etcdctl() {
    let server = server();
    let (id, hex) = lease(&server);
    let (sent, answer, told) = call(&server, &["lease", "keep-alive", "--once", &hex], "");
    assert_eq!(sent, LeaseKeepAliveRequest { id }.encode_to_vec());
    let kept = LeaseKeepAliveResponse { header: header(&told), id, ttl: told["TTL"].as_i64().unwrap() };
    assert_eq!((LeaseKeepAliveResponse::decode(&answer[..]).unwrap(), kept.ttl), (kept, 60));
    let (sent, answer, told) = call(&server, &["lease", "timetolive", &hex], "");
    assert_eq!(sent, LeaseTimeToLiveRequest { id }.encode_to_vec());
    let left = LeaseTimeToLiveResponse { ttl: told["ttl"].as_i64().unwrap() };
    assert!(left.ttl > 0 && LeaseTimeToLiveResponse::decode(&answer[..]).unwrap() == left, "{told}");
}

#[test]
fn keys_are_written_listed_and_deleted_as_by_etcdctl() {
    let server = server();
    let (id, hex) = lease(&server);
    let put = PutRequest { key: "golden/b".into(), value: "1".into(), lease: id };
    assert_eq!(sent(&server, &["put", "--lease", &hex, "golden/b", "1"]), put.encode_to_vec());
    sent(&server, &["put", "golden/a", "2"]);
    sent(&server, &["put", "golden/b", "3", "--ignore-lease"]);
    let sorted = ["get", "--prefix", "--limit", "33", "--sort-by", "CREATE", "--order", "ASCEND", "golden/"];
    let (sent_list, answer, told) = call(&server, &sorted, "");
    let list = RangeRequest {
        key: "golden/".into(),
        range_end: "golden0".into(),
        limit: 33,
        sort_order: SortOrder::Ascend.into(),
        sort_target: SortTarget::Create.into(),
    };
    assert_eq!(sent_list, list.encode_to_vec());
    let kvs = vec![printed(&told["kvs"][0], "golden/b", "3"), printed(&told["kvs"][1], "golden/a", "2")];
    assert!(kvs[0].lease == id && kvs[0].mod_revision > kvs[1].create_revision, "{told}");
    assert_eq!(RangeResponse::decode(&answer[..]).unwrap(), RangeResponse { kvs, count: 2 });
    let delete = DeleteRangeRequest { key: "golden/".into(), range_end: "golden0".into() };
    assert_eq!(sent(&server, &["del", "--prefix", "golden/"]), delete.encode_to_vec());
}

#[test]
fn a_transaction_is_sent_and_answered_as_by_etcdctl() {
    let compare = |result: CompareResult, target: CompareTarget, key: &str, with| Compare {
        result: result.into(),
        target: target.into(),
        key: key.into(),
        with: Some(with),
        range_end: Vec::new(),
    };
    let op = |request| RequestOp { request: Some(request) };
    let get = |key: &str| op(Request::Range(RangeRequest { key: key.into(), ..RangeRequest::default() }));
    let put = PutRequest { key: "golden-txn/k".into(), value: "v".into(), lease: 0 };
    let delete = DeleteRangeRequest { key: "golden-txn/d".into(), range_end: Vec::new() };
    let transaction = TxnRequest {
        compare: vec![
            compare(CompareResult::Equal, CompareTarget::Version, "golden-txn/x", CompareWith::Version(0)),
            compare(CompareResult::Equal, CompareTarget::Create, "golden-txn/y", CompareWith::Create(0)),
            compare(CompareResult::Less, CompareTarget::Mod, "golden-txn/z", CompareWith::Mod(9)),
        ],
        success: vec![op(Request::Put(put)), op(Request::DeleteRange(delete)), get("golden-txn/k")],
        failure: vec![get("golden-txn/x")],
    };
    let text = "version(\"golden-txn/x\") = \"0\"\ncreate(\"golden-txn/y\") = \"0\"\nmod(\"golden-txn/z\") < \"9\"\n\n\
                put golden-txn/k v\ndel golden-txn/d\nget golden-txn/k\n\nget golden-txn/x\n\n";
    let (sent, answer, told) = call(&server(), &["txn"], text);
    assert_eq!(sent, transaction.encode_to_vec());
    let TxnResponse { header: answered, succeeded, responses } = TxnResponse::decode(&answer[..]).unwrap();
    assert_eq!((answered, succeeded), (header(&told["header"]), true));
    let [put, deleted, listed] = responses.try_into().unwrap();
    assert!(matches!((put.response, deleted.response), (Some(Response::Put(_)), Some(Response::DeleteRange(_)))));
    let read = &told["responses"][2]["Response"]["response_range"]["kvs"][0];
    let Some(Response::Range(listed)) = listed.response else { panic!("{listed:?}") };
    assert_eq!(listed, RangeResponse { kvs: vec![printed(read, "golden-txn/k", "v")], count: 1 });
}

#[test]
fn a_watch_is_asked_for_as_by_etcdctl() {
    let server = server();
    let recorder = Recorder::before(&server);
    let mut watching = server.etcdctl_at(recorder.port, &["watch", "--prefix", "golden-watch/"]);
    let mut watching = watching.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the watch", || !recorder.messages()[1].is_empty());
    server.run(&["put", "golden-watch/k", "v"]);
    wait_for("the change", || recorder.messages()[1].len() == 2);
    watching.kill().unwrap();
    watching.wait().unwrap();
    let [requests, answers] = recorder.messages();
    let create = WatchCreate {
        key: "golden-watch/".into(),
        range_end: "golden-watch0".into(),
        filters: Vec::new(),
        watch_id: 0,
    };
    assert_eq!(requests, [WatchRequest { act: Some(WatchAct::Create(create)) }.encode_to_vec()]);
    let answers = answers.iter().map(|answer| WatchResponse::decode(&answer[..]).unwrap());
    let [begun, changed] = answers.collect::<Vec<_>>().try_into().unwrap();
    let revision = changed.header.unwrap().revision;
    assert!(begun.created && !changed.created && begun.events.is_empty() && begun.header.unwrap().revision < revision);
    let kv = KeyValue {
        key: "golden-watch/k".into(),
        create_revision: revision,
        mod_revision: revision,
        value: "v".into(),
        lease: 0,
    };
    assert_eq!(changed.events, [Event { kv: Some(kv) }]);
}

/// `etcdctl` has no words for these: a filter, a number, and the end of one of several watches.
#[test]
fn a_watch_has_the_number_that_it_was_given_and_tells_ends_alone() {
    let (runtime, server) = (Runtime::new().unwrap(), server());
    let cluster = cluster(&server, &runtime);
    let (key, range_end) = (b"golden-ends/".to_vec(), b"golden-ends0".to_vec());
    let create = |watch_id, filters| {
        WatchAct::Create(WatchCreate { key: key.clone(), range_end: range_end.clone(), filters, watch_id })
    };
    let acts = [
        create(7, vec![WatchFilter::NoPut.into()]),
        create(8, Vec::new()),
        WatchAct::Cancel(WatchCancel { watch_id: 8 }),
    ];
    let requests = iter(acts).map(|act| WatchRequest { act: Some(act) }).chain(pending());
    runtime.block_on(async {
        let mut answers =
            timeout(PATIENCE, cluster.servers.stream(0, "/etcdserverpb.Watch/Watch", requests)).await.unwrap().unwrap();
        let mut next =
            async || -> WatchResponse { timeout(PATIENCE, answers.message()).await.unwrap().unwrap().unwrap() };
        for begun in [7, 8] {
            let answer = next().await;
            assert!(answer.created && !answer.canceled && answer.watch_id == begun, "{answer:?}");
        }
        let ended = next().await;
        assert!(ended.canceled && ended.watch_id == 8, "{ended:?}");
        server.run(&["put", "golden-ends/k", "v"]);
        server.run(&["del", "golden-ends/k"]);
        let told = next().await;
        let [Event { kv: Some(kv) }] = &told.events[..] else { panic!("{told:?}") };
        assert!(told.watch_id == 7 && kv.key == b"golden-ends/k" && kv.value.is_empty(), "{told:?}");
    });
}

/// Nor for this one: a comparison of all keys of a range.
#[test]
fn a_comparison_holds_for_all_keys_of_a_range() {
    let (runtime, server) = (Runtime::new().unwrap(), server());
    let cluster = cluster(&server, &runtime);
    let directory = cluster.directory(&"golden-range".parse().unwrap());
    let is_empty = || {
        let transaction = txn::transaction(vec![txn::is_empty(&directory)], [vec![], vec![]], &[]);
        runtime.block_on(cluster.transact(transaction)).unwrap().0.succeeded
    };
    assert!(is_empty());
    server.run(&["put", &String::from_utf8(directory.entry(1)).unwrap(), "v"]);
    assert!(!is_empty());
}

fn cluster(server: &EtcdServer, runtime: &Runtime) -> Cluster {
    let servers = Servers::new(&EtcdConfig::from_url(&server.url()).unwrap(), runtime.handle()).unwrap();
    Cluster::new(servers, "golden-cluster/".to_owned(), Prefix::default(), runtime.handle())
}
