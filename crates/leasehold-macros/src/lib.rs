//! `#[leasehold::locked]`: a function whose body runs under a distributed lock.
//!
//! Use it through `leasehold` with the feature `macros`; the code that it makes calls `leasehold`.
//!
//! `settings` reads what stands in the attribute, `name` the name of the lock in it, and `function` what is below it. `expand`
//! puts them together. `mistakes` collects what is wrong, so that all of it is reported at once.

mod expand;
mod function;
mod mistakes;
mod name;
mod settings;

use proc_macro2::TokenStream;
use quote::quote;
use syn::Result;

use settings::Settings;

/// Runs the body of a function under a lock: acquires it, works, and releases it.
///
/// It works on async and on plain functions, free ones and methods. The function keeps its signature. It must return
/// a `Result` whose error implements `From<leasehold::Error>`: acquiring the lock can fail, and the lock can be lost. The future of an async function
/// is `Send` only if its result is.
///
/// ```
/// # struct Row;
/// # async fn raise(_: leasehold::WriteToken) -> Result<(), std::io::Error> { Ok(()) }
/// # async fn write(_: leasehold::FencingToken, _: &[Row]) -> Result<(), std::io::Error> { Ok(()) }
/// type BoxError = Box<dyn std::error::Error + Send + Sync>;
///
/// struct Importer {
///     locks: leasehold::Client,
/// }
///
/// impl Importer {
///     #[leasehold::locked(client = self.locks, name = "import:{tenant}", ttl = "30s", wait = "5s", guard = guard)]
///     async fn import(&self, tenant: &str, rows: Vec<Row>) -> Result<usize, BoxError> {
///         raise(guard.write_token()).await?; // before anything is read
///         write(guard.fencing_token(), &rows).await?;
///         Ok(rows.len())
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let importer = Importer { locks: leasehold::connect("memory:").await? };
/// # assert_eq!(importer.import("acme", vec![Row]).await?, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Settings
///
/// | setting | meaning |
/// |---|---|
/// | `client = EXPRESSION` | the client: a `leasehold::Client` for an `async fn`, otherwise a `leasehold::blocking::Client`; also a reference to one, or an `Arc` |
/// | `name = "sync:{tenant}"` | the name of the lock. It captures arguments as `format!` does; the compiler checks that they exist |
/// | `name = EXPRESSION` | the same for other names, such as `format!("sync:{}", self.tenant)`: what a `mutex` takes |
/// | `ttl = "30s"` | how long the store keeps the lease without a renewal; 30 s if not set |
/// | `wait = "5s"` | how long to wait for the lock. If not set, without limit, or not at all if there is `on_busy` |
/// | `on_busy = "error"` | if the lock is still held at the end of the wait, return the error `AcquireError::TimedOut` (the default) |
/// | `on_busy = "skip"` | in that case, return `Ok(None)`, and do nothing. The function returns `Result<Option<T>, E>` |
/// | `guard = NAME` | the name of the guard in the body, a `&Guard`: for its fencing token, and for `check` |
/// | `max_hold = "1h"` | how long the lock is held at most; then it is lost. If not set, as long as the body takes |
/// | `why = "TEXT"` | why the lock is held, for waiters and operators |
/// | `crate = PATH` | the path of `leasehold`, if you have renamed or re-exported it |
///
/// Only `client` and `name` are required. Durations are text with a unit, like those in configurations. They are checked when
/// the function is compiled, as are other mistakes.
///
/// # If the lock is lost
///
/// An *async* function stops: its body is dropped at its next await point, and the function returns the loss as its error.
///
/// The body of a *plain* function runs to its end, because nothing can stop a thread. Then the function returns the loss as its
/// error, whatever the body returned. So long work should call `guard.check()?` between its steps.
///
/// If the store is unreachable, the function returns an error after an operation timeout or two, whatever the `wait`, and the body does not
/// run. To wait for the store, acquire a mutex with `on_unavailable` in the function instead.
///
/// An error of the lock takes precedence over one of the body. `Error::Acquire` means that the lock was not
/// acquired, and the body has not begun; or that the body could not acquire another lock or change a hold, and returned that.
///
/// # Arguments
///
/// The arguments are dropped at the end of the body, before the lock is released. `return` and `?` end the body, and the lock is
/// released. A panic of the body also releases it. The part of an argument that a pattern leaves out (`Order { id, .. }`) is dropped after the release if
/// `client` or `name` uses something that the pattern binds; name the whole argument to avoid that.
///
/// # When not to use it
///
/// - For a part of a function. Acquire the lock there.
/// - For a function that calls itself, or another locked function, under the same name: it would wait for itself. Pass the guard, or, with
///   threads, use a re-entrant lock.
/// - For methods of a trait under `#[async_trait]`, which turns them into plain functions. Lock an `async fn` that the method calls.
///
/// # Cancel safety
/// Dropping the future of an async function gives up the wait. If the body has begun, it is dropped, and the lock is released in
/// the background.
///
/// # Examples
/// Work that another machine may be doing already:
///
/// ```
/// use leasehold::{Error, blocking::Client};
///
/// #[leasehold::locked(client = locks, name = "nightly-report", on_busy = "skip")]
/// fn report(locks: &Client) -> Result<Option<u32>, Error> {
///     Ok(Some(42)) // the number of pages
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = leasehold::blocking::connect("memory:")?;
/// let other = locks.mutex("nightly-report").acquire()?;
/// assert_eq!(report(&locks)?, None);
/// other.release()?;
/// assert_eq!(report(&locks)?, Some(42));
/// # Ok(())
/// # }
/// ```
#[proc_macro_attribute]
pub fn locked(settings: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let item = TokenStream::from(item);
    under_lock(settings.into(), item.clone())
        .unwrap_or_else(|mistakes| {
            let mistakes = mistakes.into_compile_error();
            // The function stays, so that its callers are not reported as well. Its body is not what is wrong.
            quote!(#mistakes #[allow(unused)] #item)
        })
        .into()
}

fn under_lock(settings: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let function = function::read(item)?;
    let settings = Settings::read(settings)?;
    function::check(&function.sig, &settings)?;
    let returned = function::returns(&function.sig)?;
    Ok(expand::expand(&settings, &function, returned))
}
