//! The check in memory.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use lock_core::{FencingToken, WriteToken};
use pollster::block_on;

use crate::Refused;

/// Remembers the highest token that each resource has seen, and refuses lower ones. Use it for resources that one process owns.
///
/// A check alone is not enough: a holder could be paused between the check and its write, and write after a later holder.
/// So [`write`](Self::write) and [`begin_write`](Self::begin_write) make one step of both. A later holder's write waits until
/// those that were let in before have ended, and no earlier one is let in from then on. Writes with equal tokens may run at the
/// same time, because they are one holder's.
///
/// **Raise before you read.** Until a later holder's token is there, an earlier one may still write, even between what the later
/// one reads and what it writes. [`raise`](Self::raise) returns once that cannot happen any more.
///
/// ```
/// # use lock_core as leasehold;
/// # use lock_fence as fence;
/// use fence::Gate;
/// use leasehold::{FencingToken, WriteToken};
///
/// # let [earlier, later] = [33, 34].map(|number| FencingToken::new(number).unwrap());
/// let gate = Gate::new();
/// gate.raise("invoice:42", WriteToken::of_writer(later))?; // guard.write_token(): before anything is read
/// gate.write("invoice:42", later, || println!("this is written"))?; // later = guard.fencing_token()
/// let refused = gate.write("invoice:42", earlier, || println!("this is not")).unwrap_err();
/// assert_eq!(refused.highest, later);
/// # Ok::<(), fence::Refused>(())
/// ```
///
/// The name of a resource can be any text. The permits of a semaphore need a resource for each slot, such as `gpu/3`, because tokens of
/// different slots say nothing about each other.
///
/// The gate forgets everything with its process, and keeps about a hundred bytes for each resource until then. If what it
/// protects outlives the process, keep the tokens where the data is.
#[derive(Default)]
pub struct Gate(Arc<Resources>);

#[derive(Default)]
struct Resources(Mutex<HashMap<Box<str>, Resource>>);

/// What is known of one resource.
struct Resource {
    highest: FencingToken,
    /// The token of the writes that run now, and how many there are.
    running: (FencingToken, usize),
    /// Later holders that wait for their end.
    waiting: Vec<Waker>,
}

impl Gate {
    /// A gate that has seen no token.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a write, unless the resource has seen a higher token. Nothing with another token is written meanwhile.
    ///
    /// # Errors
    /// `Refused`; the write was not run.
    ///
    /// # Blocking
    /// Until the writes of earlier holders have ended. A write must not call this for the same resource with another token:
    /// it would deadlock.
    pub fn write<T>(&self, resource: &str, token: FencingToken, write: impl FnOnce() -> T) -> Result<T, Refused> {
        let _admitted = block_on(self.begin_write(resource, token))?;
        Ok(write())
    }

    /// Lets a write in, unless the resource has seen a higher token, and until what is returned is dropped. Waits until the
    /// writes of earlier holders have ended.
    ///
    /// # Errors
    /// `Refused`, even if the later holder comes only during the wait.
    ///
    /// # Cancel safety
    /// A future that is dropped lets no write in. The resource has seen its token all the same.
    pub async fn begin_write(&self, resource: &str, token: FencingToken) -> Result<Admitted, Refused> {
        poll_fn(|context| self.0.poll_begin(resource, token, context)).await?;
        let running = Running { resources: Arc::clone(&self.0), resource: resource.into() };
        Ok(Admitted { _running: Arc::new(running) })
    }

    /// Notes the token of a new holder, and waits until the writes of earlier holders have ended. From then on nothing changes
    /// the resource but this holder, or a later one. So this comes first, and then the holder reads what it will change.
    ///
    /// A reader cannot raise: it would shut out the other readers.
    ///
    /// ```compile_fail,E0308
    /// # use lock_fence::Gate;
    /// # fn f(reader: &lock_core::Hold) -> Result<(), lock_fence::Refused> {
    /// Gate::new().raise("invoice:42", reader.token()) // this is a `FencingToken`
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Refused`, even if the later holder comes only during the wait. Read nothing, and stop.
    ///
    /// # Blocking
    /// Until the writes of earlier holders have ended. A write must not call this for its own resource with another token: it would
    /// deadlock.
    pub fn raise(&self, resource: &str, token: WriteToken) -> Result<(), Refused> {
        block_on(self.raise_async(resource, token))
    }

    /// As [`raise`](Self::raise), in async code.
    ///
    /// # Errors
    /// As [`raise`](Self::raise).
    ///
    /// # Cancel safety
    /// If the future is dropped, earlier writes may still run. The resource has seen its token all the same; call it again before
    /// you read.
    pub async fn raise_async(&self, resource: &str, token: WriteToken) -> Result<(), Refused> {
        self.begin_write(resource, token.into()).await.map(drop)
    }

    /// Notes a token, unless the resource has seen a higher one. Waits for nothing, so earlier writes may still run.
    ///
    /// This is for code that does one thing at a time, and writes before it checks another token. Other code needs
    /// [`raise`](Self::raise), and [`write`](Self::write) or [`begin_write`](Self::begin_write).
    ///
    /// # Errors
    /// `Refused`.
    pub fn check(&self, resource: &str, token: FencingToken) -> Result<(), Refused> {
        note(&mut self.0.lock(), resource, token).map(|_| ())
    }

    /// Checks for a reader that no later holder has raised the fence: the resource has seen no token that is higher. Notes nothing, so a
    /// reader never shuts out a writer.
    ///
    /// # Errors
    /// `Refused`: a later holder has raised the fence, so what the reader knows is out of date.
    pub fn check_read(&self, resource: &str, token: FencingToken) -> Result<(), Refused> {
        match self.highest(resource) {
            Some(highest) if highest > token => Err(Refused { token, highest }),
            _ => Ok(()),
        }
    }

    /// The highest token that the resource has seen.
    pub fn highest(&self, resource: &str) -> Option<FencingToken> {
        self.0.lock().get(resource).map(|known| known.highest)
    }
}

impl Resources {
    fn poll_begin(&self, resource: &str, token: FencingToken, context: &Context<'_>) -> Poll<Result<(), Refused>> {
        let mut resources = self.lock();
        let known = note(&mut resources, resource, token)?;
        match &mut known.running {
            (running, count) if *count == 0 || *running == token => {
                (*running, *count) = (token, *count + 1);
                Poll::Ready(Ok(()))
            }
            _ => {
                if !known.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                    known.waiting.push(context.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    fn end(&self, resource: &str) {
        let mut resources = self.lock();
        let Some(known) = resources.get_mut(resource) else { return };
        known.running.1 = known.running.1.saturating_sub(1);
        if known.running.1 == 0 {
            let waiting = std::mem::take(&mut known.waiting);
            drop(resources);
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// The map is whole even after a panic, since none happens while it is changed.
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Resource>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes a token of a writer, unless there was a higher one.
fn note<'a>(
    resources: &'a mut HashMap<Box<str>, Resource>,
    resource: &str,
    token: FencingToken,
) -> Result<&'a mut Resource, Refused> {
    let unseen = || Resource { highest: token, running: (token, 0), waiting: Vec::new() };
    let known = resources.entry(resource.into()).or_insert_with(unseen);
    if known.highest > token {
        return Err(Refused { token, highest: known.highest });
    }
    known.highest = token;
    Ok(known)
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("resources", &self.0.lock().len()).finish()
    }
}

/// A write that a [`Gate`] has let in. Nothing with another token is written to its resource until all clones of this are dropped.
///
/// Give a clone to each task and thread that does a part of the write. Work that holds none is not counted: a later holder's write
/// is let in beside it.
#[must_use = "the write is over when this is dropped"]
#[derive(Clone, Debug)]
pub struct Admitted {
    _running: Arc<Running>,
}

/// A write in flight. It ends when this is dropped.
struct Running {
    resources: Arc<Resources>,
    resource: Box<str>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.resources.end(&self.resource);
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Running").field(&self.resource).finish()
    }
}
