//! Methods of a client beyond single locks.

use super::all::{All, all};
use super::degrading::Degrading;
use super::election::Election;
use super::job::Job;
use super::single_flight::SingleFlight;
use super::{Client, both};

/// Methods of a client beyond single locks. Import it to call them.
#[both]
pub trait Kit {
    /// All locks of a set, which are acquired and released together. [`all`] does that for locks of several clients.
    ///
    /// # Examples
    /// ```
    /// # mod leasehold { pub use lock_kit::{nonblocking, nonblocking::Kit}; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// use leasehold::Kit;
    ///
    /// let guard = locks.all(["account:7", "account:3"]).acquire().await?;
    /// for (name, token) in guard.write_tokens() {
    ///     println!("raise the fence of {name} to {token}"); // all of them before you read; account:7 first, as listed
    /// }
    /// for (name, token) in guard.tokens() {
    ///     println!("write to {name} with token {token}");
    /// }
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    fn all<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> All;

    #[blocking_only]
    /// A lock that the thread which holds it can acquire again.
    fn reentrant(&self, name: impl AsRef<str>) -> super::Reentrant;

    /// A lock that falls back to a process-local lock while the store is unreachable. [`Degrading`] has an example.
    fn degrading(&self, name: impl AsRef<str>) -> Degrading;

    /// Scheduled work that one of several machines does. [`Job`] has an example.
    fn job(&self, name: impl AsRef<str>) -> Job;

    /// One leader among several machines, with fail-over. [`Election`] has an example.
    fn election(&self, name: impl AsRef<str>) -> Election;

    /// A value that is computed once for all its callers, in all processes. [`SingleFlight`] has an example.
    fn single_flight(&self, key: impl AsRef<str>) -> SingleFlight;
}

#[both]
impl Kit for Client {
    fn all<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> All {
        all(names.into_iter().map(|name| self.mutex(name)))
    }

    #[blocking_only]
    fn reentrant(&self, name: impl AsRef<str>) -> super::Reentrant {
        super::Reentrant::new(self.mutex(name))
    }

    fn degrading(&self, name: impl AsRef<str>) -> Degrading {
        Degrading::new(self.mutex(name))
    }

    fn job(&self, name: impl AsRef<str>) -> Job {
        Job::new(self, name.as_ref())
    }

    fn election(&self, name: impl AsRef<str>) -> Election {
        Election::new(self, name.as_ref())
    }

    fn single_flight(&self, key: impl AsRef<str>) -> SingleFlight {
        SingleFlight::new(self, key.as_ref())
    }
}
