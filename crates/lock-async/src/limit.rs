//! A request about the limit of a semaphore.

use lock_core::Operation;
use lock_core::limit::{LimitError, Usage};
use lock_host::LimitCall;

use crate::both;
use crate::driver::{Driver, ask};

/// Sends a request about a limit.
#[both]
pub(crate) async fn ask_limit(
    LimitCall { context, within, request }: LimitCall<'_, Driver>,
) -> Result<Usage, LimitError> {
    let answer = ask(context, &request.name, Operation::Limit, |store| store.limit(&request, within)).await;
    Ok(answer.map_err(|error| error.with_name(&request.name))?)
}
