//! A runtime for blocking code. A thread runs a future itself; the tasks, timers and sockets of the future are on the bridge's thread.

use std::convert::Infallible;
use std::io;
use std::sync::mpsc::SyncSender;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
use tokio::task::unconstrained;

/// A tokio runtime on a thread of its own. Clones share it, and it ends with the last of them.
///
/// Its tasks are dropped then. Dropping a bridge waits for nothing, and is allowed in async code.
#[derive(Clone, Debug)]
pub struct Bridge {
    runtime: Handle,
    /// Nothing is sent: the thread ends once all senders are gone.
    _open: mpsc::Sender<Infallible>,
}

impl Bridge {
    /// Starts the thread and its runtime.
    ///
    /// # Errors
    /// If the system cannot start a thread, or the runtime cannot be made.
    pub fn start() -> io::Result<Self> {
        let (open, until) = mpsc::channel(1);
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        thread::Builder::new().name("leasehold-bridge".into()).spawn(move || run(&tell, until))?;
        let runtime = told.recv().unwrap_or_else(|_| Err(io::Error::other("the bridge's thread ended at once")))?;
        Ok(Self { runtime, _open: open })
    }

    /// The runtime, to spawn tasks on it. The handle does not keep it alive.
    pub const fn handle(&self) -> &Handle {
        &self.runtime
    }

    /// Runs a future in the calling thread, which sleeps while it has to wait. The tasks that the future spawns, its timers and its
    /// sockets belong to the bridge's runtime.
    ///
    /// Any thread may call this, even one that runs an async task: until it returns, that thread runs no other task. Only a task of
    /// the bridge itself must not, since it would wait for its own thread.
    ///
    /// # Panics
    /// If the future panics. The bridge stays usable.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _entered = self.runtime.enter();
        // In a task that has used up its time slice, tokio would otherwise have the future wait for the next slice, which does not
        // begin before this call returns.
        pollster::block_on(unconstrained(future))
    }
}

fn run(tell: &SyncSender<io::Result<Handle>>, mut until: mpsc::Receiver<Infallible>) {
    // Made on this thread: a runtime that is dropped within another one panics.
    match Builder::new_current_thread().enable_all().thread_name("leasehold-bridge-blocking").build() {
        Ok(runtime) => {
            _ = tell.send(Ok(runtime.handle().clone()));
            runtime.block_on(until.recv());
            // Unlike a drop, this does not wait for what `spawn_blocking` runs. Nobody needs its results.
            runtime.shutdown_background();
        }
        Err(error) => _ = tell.send(Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::time::Duration;

    use tokio::task::spawn_blocking;
    use tokio::time::sleep;

    use super::*;

    /// How long something may take that must happen.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Needs a timer and a task of the bridge.
    async fn slow_sum() -> u32 {
        sleep(Duration::from_millis(1)).await;
        1 + tokio::spawn(async { 1 }).await.unwrap()
    }

    /// Runs an async task of the user's, on a runtime that has nothing else. Whatever it blocks on, the test ends.
    fn in_a_task<T: Send + 'static>(task: impl AsyncFnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            tell.send(runtime.block_on(task()))
        });
        told.recv_timeout(PATIENCE).unwrap()
    }

    /// Spawns a task that never ends. Says when it was dropped.
    fn endless_task(bridge: &Bridge) -> Receiver<Infallible> {
        let (held, dropped) = channel();
        bridge.handle().spawn(async move {
            std::future::pending::<()>().await;
            drop(held);
        });
        dropped
    }

    #[track_caller]
    fn is_dropped(task: &Receiver<Infallible>) {
        assert_eq!(task.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_plain_thread_waits_for_a_future() {
        let bridge = Bridge::start().unwrap();
        let sums = thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| bridge.block_on(slow_sum())));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(sums, [2; 4]);
    }

    #[test]
    fn so_does_a_task_of_another_runtime_and_what_that_runs_beside_it() {
        let sums = in_a_task(async || {
            let bridge = Bridge::start().unwrap();
            let beside = bridge.clone();
            [bridge.block_on(slow_sum()), spawn_blocking(move || beside.block_on(slow_sum())).await.unwrap()]
        });
        assert_eq!(sums, [2; 2]);
    }

    #[test]
    fn a_task_waits_more_often_than_its_time_slice_allows() {
        let received = in_a_task(async || {
            let bridge = Bridge::start().unwrap();
            let (sender, mut receiver) = mpsc::unbounded_channel();
            (0..1_000).for_each(|number| sender.send(number).unwrap());
            (0..1_000).filter(|number| bridge.block_on(receiver.recv()) == Some(*number)).count()
        });
        assert_eq!(received, 1_000);
    }

    #[test]
    fn the_last_bridge_takes_its_tasks_along_and_can_be_dropped_in_a_task() {
        let task = in_a_task(async || {
            let bridge = Bridge::start().unwrap();
            let task = endless_task(&bridge);
            let other = bridge.clone();
            drop(bridge);
            assert_eq!(other.block_on(slow_sum()), 2);
            task
        });
        is_dropped(&task);
    }

    #[test]
    fn a_blocking_call_that_hangs_delays_nobody() {
        let bridge = Bridge::start().unwrap();
        let (task, (end, hangs)) = (endless_task(&bridge), channel::<Infallible>());
        bridge.handle().spawn_blocking(move || hangs.recv_timeout(PATIENCE * 2));
        drop(bridge);
        is_dropped(&task);
        drop(end);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let bridge = Bridge::start().unwrap();
        let panics = async {
            slow_sum().await;
            std::panic::resume_unwind(Box::new("no"))
        };
        let panic = catch_unwind(AssertUnwindSafe(|| bridge.block_on::<_>(panics))).map(|never: Infallible| never);
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"no"));
        assert_eq!(bridge.block_on(slow_sum()), 2);
    }
}
