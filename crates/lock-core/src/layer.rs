//! A backend that wraps another one.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::inspect::{Entry, Page, Query, Revoked};
use crate::latch::{self, Seen};
use crate::limit::{self, Usage};
use crate::{
    Answer, AsyncBackend, Backend, BackendError, BlockingBackend, Capabilities, Claim, EventSink, Fenced, FencingToken,
    Lease, Location, LockName, Note, ReleaseRequest, Released, Renewed,
};

/// A backend that wraps another one, such as one that counts or delays requests.
///
/// Implement this and [`AsyncLayer`], [`BlockingLayer`] or both; the type is then a backend. Each method passes its call on
/// to [`inner`](Self::inner) unless it is overridden, so a layer has all that the inner backend has: its latches, limits,
/// listings, warnings and locations, and its connection for the keeper.
///
/// Where both are in scope, a call has to name the trait: `Backend::capabilities(&layer)`.
pub trait Layer: fmt::Debug + Send + Sync + 'static {
    /// The backend that is wrapped: that of a type, or `dyn AsyncBackend` or `dyn BlockingBackend` for any.
    type Inner: Backend + ?Sized;

    /// The backend that is wrapped.
    fn inner(&self) -> &Arc<Self::Inner>;

    /// As [`Backend::capabilities`].
    fn capabilities(&self) -> Capabilities {
        self.inner().capabilities()
    }

    /// As [`Backend::listen`].
    fn listen(&self, sink: EventSink) {
        self.inner().listen(sink);
    }

    /// As [`Backend::locate`].
    fn locate(&self, name: &LockName) -> Option<Location> {
        self.inner().locate(name)
    }

    /// As [`Backend::holds`].
    fn holds(&self, lease: &Lease) {
        self.inner().holds(lease);
    }

    /// As [`Backend::end_session`].
    fn end_session(&self) {
        self.inner().end_session();
    }

    /// As [`Backend::warnings`].
    fn warnings(&self) -> Vec<String> {
        self.inner().warnings()
    }
}

impl<L: Layer + ?Sized> Backend for L {
    fn capabilities(&self) -> Capabilities {
        Layer::capabilities(self)
    }

    fn listen(&self, sink: EventSink) {
        Layer::listen(self, sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        Layer::locate(self, name)
    }

    fn holds(&self, lease: &Lease) {
        Layer::holds(self, lease);
    }

    fn end_session(&self) {
        Layer::end_session(self);
    }

    fn warnings(&self) -> Vec<String> {
        Layer::warnings(self)
    }
}

/// The future of an answer.
type Reply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Defines both layers from the list of verbs. The async methods have the signatures that `async_trait` gives to `async fn`, so
/// that they can return the future of the inner backend itself.
macro_rules! layers {
    ($($verb:ident<$($life:lifetime),+>($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        /// The calls from tokio that pass through a [`Layer`]. Override them as `async fn` under `async_trait`.
        pub trait AsyncLayer: Layer<Inner: AsyncBackend> {
            /// The same layer over another backend: over the inner one's connection for the keeper, through which the
            /// client renews.
            fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend>;

            $(
                #[doc = concat!("As [`AsyncBackend::", stringify!($verb), "`].")]
                ///
                /// # Errors
                /// Those of the inner backend.
                ///
                /// # Cancel safety
                /// As of the inner backend.
                fn $verb<'this, $($life,)* 'async_trait>(
                    &'this self,
                    $($argument: $type,)*
                    within: Duration,
                ) -> Reply<'async_trait, Result<$answer, BackendError>>
                where
                    'this: 'async_trait,
                    $($life: 'async_trait,)*
                    Self: 'async_trait,
                {
                    self.inner().$verb($($argument,)* within)
                }
            )*

            /// As [`AsyncBackend::flush`].
            ///
            /// # Cancel safety
            /// Changes nothing.
            fn flush<'this, 'async_trait>(&'this self, within: Duration) -> Reply<'async_trait, ()>
            where
                'this: 'async_trait,
                Self: 'async_trait,
            {
                self.inner().flush(within)
            }
        }

        impl<L: AsyncLayer> AsyncBackend for L {
            fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
                self.over(Arc::clone(self.inner()).for_keeper())
            }

            $(fn $verb<'this, $($life,)* 'async_trait>(
                &'this self,
                $($argument: $type,)*
                within: Duration,
            ) -> Reply<'async_trait, Result<$answer, BackendError>>
            where
                'this: 'async_trait,
                $($life: 'async_trait,)*
                Self: 'async_trait,
            {
                AsyncLayer::$verb(self, $($argument,)* within)
            })*

            fn flush<'this, 'async_trait>(&'this self, within: Duration) -> Reply<'async_trait, ()>
            where
                'this: 'async_trait,
                Self: 'async_trait,
            {
                AsyncLayer::flush(self, within)
            }
        }

        /// The calls from plain threads that pass through a [`Layer`].
        pub trait BlockingLayer: Layer<Inner: BlockingBackend> {
            /// The same layer over another backend: over the inner one's connection for the keeper, through which the
            /// client renews.
            fn over(&self, inner: Arc<dyn BlockingBackend>) -> Arc<dyn BlockingBackend>;

            $(
                #[doc = concat!("As [`BlockingBackend::", stringify!($verb), "`].")]
                ///
                /// # Errors
                /// Those of the inner backend.
                fn $verb<$($life),*>(&self, $($argument: $type,)* within: Duration) -> Result<$answer, BackendError> {
                    self.inner().$verb($($argument,)* within)
                }
            )*

            /// As [`BlockingBackend::flush`].
            fn flush(&self, within: Duration) {
                self.inner().flush(within);
            }
        }

        impl<L: BlockingLayer> BlockingBackend for L {
            fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
                self.over(Arc::clone(self.inner()).for_keeper())
            }

            $(fn $verb<$($life),*>(&self, $($argument: $type,)* within: Duration) -> Result<$answer, BackendError> {
                BlockingLayer::$verb(self, $($argument,)* within)
            })*

            fn flush(&self, within: Duration) {
                BlockingLayer::flush(self, within);
            }
        }
    };
}

layers! {
    acquire<'a>(claim: &'a Claim) -> Answer;
    renew<'a>(leases: &'a [Lease]) -> Vec<Renewed>;
    release<'a>(request: &'a ReleaseRequest) -> Released;
    fence<'a>(lease: &'a Lease) -> Fenced;
    latch<'a>(request: &'a latch::Request) -> Seen;
    limit<'a>(request: &'a limit::Request) -> Usage;
    holder<'a>(name: &'a LockName) -> Option<Entry>;
    list<'a>(query: &'a Query) -> Page;
    revoke<'a, 'b>(name: &'a LockName, token: FencingToken, by: &'b Note) -> Revoked;
    revoked_by<'a>(name: &'a LockName, highest: FencingToken) -> Option<Note>;
}
