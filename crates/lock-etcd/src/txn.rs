//! Transactions, and what their answers list.

use tonic::Status;

use crate::directory::Directory;
use crate::entry::Entry;
use crate::listed::{Changes, Listed};
use crate::proto::{
    Compare, CompareResult, CompareTarget, CompareWith, DeleteRangeRequest, KeyValue, PutRequest, RangeRequest,
    RangeResponse, Request, RequestOp, Response, SortOrder, SortTarget, TxnRequest, TxnResponse,
};
use crate::tokens::Base;

fn compare(key: Vec<u8>, target: CompareTarget, with: CompareWith) -> Compare {
    Compare { result: CompareResult::Equal.into(), target: target.into(), key, with: Some(with), range_end: Vec::new() }
}

/// That there is no such key.
pub(crate) fn is_absent(key: Vec<u8>) -> Compare {
    compare(key, CompareTarget::Version, CompareWith::Version(0))
}

/// That the key was created then, and is there.
pub(crate) fn is_of(key: Vec<u8>, created: i64) -> Compare {
    compare(key, CompareTarget::Create, CompareWith::Create(created))
}

/// That there is such a key.
pub(crate) fn is_present(key: Vec<u8>) -> Compare {
    Compare { result: CompareResult::Greater.into(), ..compare(key, CompareTarget::Version, CompareWith::Version(0)) }
}

/// That this is the latest change of the key; 0 if there is no such key.
pub(crate) fn is_at(key: Vec<u8>, modified: i64) -> Compare {
    compare(key, CompareTarget::Mod, CompareWith::Mod(modified))
}

/// That these listed entries are still there.
pub(crate) fn stand<'a>(listed: &Listed, keys: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<Compare> {
    let entries = keys.into_iter().filter_map(|key| listed.get(key));
    entries.map(|entry| is_of(entry.key.clone(), entry.version.created)).collect()
}

/// That the directory has no entry.
pub(crate) fn is_empty(directory: &Directory) -> Compare {
    let (key, range_end) = directory.range();
    Compare { range_end, ..compare(key, CompareTarget::Create, CompareWith::Create(0)) }
}

/// That no entry was written into the directory since this revision.
pub(crate) fn is_unchanged(directory: &Directory, since: i64) -> Compare {
    let (key, range_end) = directory.range();
    let with = CompareWith::Mod(since.saturating_add(1));
    Compare { result: CompareResult::Less.into(), range_end, ..compare(key, CompareTarget::Mod, with) }
}

const fn op(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

pub(crate) const fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    op(Request::Put(PutRequest { key, value, lease }))
}

pub(crate) const fn delete(key: Vec<u8>) -> RequestOp {
    op(Request::DeleteRange(DeleteRangeRequest { key, range_end: Vec::new() }))
}

/// Reads a key. Not from the memory of one server: as an operation of a transaction, it makes all of it wait for the leader. A transaction
/// without one would be answered by a server that is cut off.
pub(crate) fn get(key: Vec<u8>) -> RequestOp {
    op(Request::Range(RangeRequest { key, ..RangeRequest::default() }))
}

/// Lists the first keys of a range, in their order.
pub(crate) fn keys((key, range_end): (Vec<u8>, Vec<u8>), limit: i64) -> RequestOp {
    op(Request::Range(RangeRequest { key, range_end, limit, ..RangeRequest::default() }))
}

/// Lists the first entries in the order of their creation.
pub(crate) fn list(directory: &Directory, limit: i64) -> RequestOp {
    let (key, range_end) = directory.range();
    op(Request::Range(RangeRequest {
        key,
        range_end,
        limit,
        sort_order: SortOrder::Ascend.into(),
        sort_target: SortTarget::Create.into(),
    }))
}

/// Has a transaction written into the log that else only reads. Nobody writes this key.
pub(crate) fn log(root: &str) -> RequestOp {
    delete(format!("{root}leasehold-none").into_bytes())
}

/// Whether a transaction is written into the log. One that only reads is not.
pub(crate) fn is_logged(transaction: &TxnRequest) -> bool {
    let all = transaction.success.iter().chain(&transaction.failure);
    all.into_iter().any(|op| !matches!(op.request, Some(Request::Range(_))))
}

/// The key of the base of the tokens.
pub(crate) fn base_key(root: &str) -> Vec<u8> {
    format!("{root}leasehold-base").into_bytes()
}

/// What lists a directory, the tokens' base, and the changes that waiters have to know of.
pub(crate) fn look(root: &str, directory: &Directory, limit: i64) -> [RequestOp; 3] {
    [list(directory, limit), get(base_key(root)), keys(directory.changes(), 0)]
}

/// Whether the answer says that nothing was compared that does not hold, what was listed last, and the other keys that were read.
pub(crate) struct Told {
    pub(crate) succeeded: bool,
    pub(crate) revision: i64,
    pub(crate) listed: Option<Listed>,
    pub(crate) ranges: Vec<RangeResponse>,
}

impl Told {
    /// Reads the answer to a transaction.
    pub(crate) fn read(answer: TxnResponse) -> Self {
        let revision = answer.header.map_or(0, |header| header.revision);
        let ranges = answer.responses.into_iter().filter_map(range).collect();
        Self { succeeded: answer.succeeded, revision, listed: None, ranges }
    }

    /// Reads the answer to a transaction whose branches both end with [`look`].
    pub(crate) fn read_look(answer: TxnResponse, directory: &Directory) -> Result<Self, Status> {
        let mut told = Self::read(answer);
        let missing = || Status::internal("the answer to a transaction is not complete");
        let changes = Changes::read(directory, &told.ranges.pop().ok_or_else(missing)?);
        let base = base(&told.ranges.pop().ok_or_else(missing)?)?;
        let list = told.ranges.pop().ok_or_else(missing)?;
        told.listed = Some(Listed { changes, ..Listed::read(&list, told.revision, base) });
        Ok(told)
    }

    /// The directory that was listed at this place in its branch, without the base of its tokens.
    pub(crate) fn list(&self, at: usize) -> Option<Listed> {
        Some(Listed::read(self.ranges.get(at)?, self.revision, Base::default()))
    }

    /// The base of the tokens, which was read at this place in its branch.
    pub(crate) fn base(&self, at: usize) -> Result<Base, Status> {
        base(self.ranges.get(at).ok_or_else(|| Status::internal("the base was not answered"))?)
    }

    /// The key that was read at this place in its branch.
    pub(crate) fn kv(&self, at: usize) -> Option<&KeyValue> {
        self.ranges.get(at)?.kvs.first()
    }

    /// The entry that was read at this place in its branch.
    pub(crate) fn key(&self, at: usize) -> Option<Entry> {
        self.kv(at).map(Entry::read)
    }
}

const NO_BASE: &str = "the key leasehold-base is missing";
const DAMAGED_BASE: &str = "the key leasehold-base holds no number";

/// Reads the tokens' base.
fn base(read: &RangeResponse) -> Result<Base, Status> {
    let value = read.kvs.first().ok_or_else(|| Status::failed_precondition(NO_BASE))?;
    Base::read(&value.value).ok_or_else(|| Status::failed_precondition(DAMAGED_BASE))
}

/// Whether a transaction has failed because the base is missing. Then it has written nothing.
pub(crate) fn is_no_base(status: &Status) -> bool {
    status.message() == NO_BASE
}

/// Whether the base of the tokens is damaged. What the transaction has written is there.
pub(crate) fn is_damaged_base(status: &Status) -> bool {
    status.message() == DAMAGED_BASE
}

fn range(op: crate::proto::ResponseOp) -> Option<RangeResponse> {
    match op.response? {
        Response::Range(range) => Some(range),
        Response::Put(_) | Response::DeleteRange(_) => None,
    }
}

/// A transaction whose branches both end with the same operations.
pub(crate) fn transaction(
    compare: Vec<Compare>,
    [success, failure]: [Vec<RequestOp>; 2],
    then: &[RequestOp],
) -> TxnRequest {
    TxnRequest { compare, success: [&success, then].concat(), failure: [&failure, then].concat() }
}
