//! Functions of all forms compile without a warning, and what they need reaches their bodies.
#![deny(warnings, clippy::all, clippy::pedantic, clippy::nursery)]

use std::error::Error;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::sync::Arc;

use leasehold::Client;

use crate::support::{Bench, Failed};

/// Where the clients are, behind references of all kinds.
struct Shop<'a, T> {
    locks: &'a Arc<Client>,
    threads: Box<leasehold::blocking::Client>,
    stock: T,
}

const PREFIX: &str = "shop";

type Outcome<T, E = Box<dyn Error + Send + Sync>> = Result<T, E>;

impl<'a, T> Shop<'a, T>
where
    T: Debug + Clone + Send + Sync,
{
    fn locks(&self) -> &Client {
        self.locks
    }

    /// Generic, with a lifetime in its result.
    #[leasehold::locked(client = self.locks, name = "{PREFIX}:{key:?}", guard = held)]
    pub(crate) async fn generic<K, const N: usize>(&self, key: K, text: &'a str) -> Outcome<(&'a str, u64)>
    where
        K: Debug + Send,
    {
        tokio::task::yield_now().await;
        Ok((&text[..N], held.fencing_token().get()))
    }

    /// A lifetime that is not written.
    #[leasehold::locked(client = self.locks(), name = format!("{PREFIX}:{:?}", self.stock))]
    async fn elided(&self, _unused: &str) -> Result<&T, leasehold::Error> {
        Ok(&self.stock)
    }

    /// In one line.
    #[rustfmt::skip]
    #[leasehold::locked(client = self.threads, name = "braces")]
    fn braces(&self) -> Outcome<T> { Ok(self.stock.clone()) }

    /// With a receiver that it changes, and arguments that it takes apart and consumes.
    #[leasehold::locked(client = self.locks, name = "{low}:{high}", ttl = "1m 30s", wait = "500ms")]
    async fn mutable(&mut self, (low, high): (u32, u32), mut add: Vec<T>, out: &mut Vec<T>) -> Outcome<()> {
        add.push(self.stock.clone());
        for _ in low..high {
            tokio::task::yield_now().await;
            out.append(&mut add);
        }
        let Some(last) = out.last() else { return Err("nothing".into()) };
        self.stock = last.clone();
        Ok(())
    }

    #[leasehold::locked(client = self.threads, name = "{PREFIX}:{low}")]
    fn plain(mut self, low: impl Display, add: T) -> Outcome<T> {
        let old = std::mem::replace(&mut self.stock, add);
        drop(self);
        Ok(old)
    }

    #[leasehold::locked(client = self.threads, name = "shop {{{PREFIX}}}", on_busy = "skip", guard = held)]
    fn opaque(&self, up_to: u32) -> Outcome<Option<impl Iterator<Item = u32> + use<T>>> {
        if up_to == 0 {
            Err("nothing")?;
        }
        let bytes: u32 = held.name().as_str().bytes().map(|_| 1).sum();
        Ok(Some((0..up_to).map(move |number| number + bytes)))
    }
}

trait Work {
    fn client(&self) -> &Client;

    fn work(&self, tenant: &str) -> impl Future<Output = Result<usize, Failed>> + Send;

    #[leasehold::locked(client = self.client(), name = "default:{tenant}")]
    async fn by_default(&self, tenant: &str) -> Result<usize, Failed>
    where
        Self: Sync,
    {
        self.work(tenant).await
    }
}

impl Work for Client {
    fn client(&self) -> &Client {
        self
    }

    #[leasehold::locked(client = self, name = "work:{tenant}")]
    async fn work(&self, tenant: &str) -> Result<usize, Failed> {
        Ok(tenant.len())
    }
}

/// The attribute's own variables are not those of the function.
#[leasehold::locked(client = client, name = "{lock}:{ended}:{type}", guard = guard)]
async fn hygiene(client: &Client, lock: u8, ended: u8, r#type: &str) -> Result<String, Failed> {
    let name = guard.name().to_string();
    guard.check().map_err(|_| Failed::Work("lost"))?;
    assert!(client.mutex(&name).is_held_by(guard));
    Ok(format!("{name} {lock} {ended} {type}"))
}

mod own {
    pub(super) use leasehold as renamed;
}

#[own::renamed::locked(client = client, name = "renamed", crate = crate::forms::own::renamed)]
async fn renamed(client: Client) -> Result<(), Failed> {
    #![allow(clippy::let_unit_value, reason = "an attribute inside of the body")]
    let done = ();
    Ok(done)
}

/// Values that are converted to the type of the result where they are returned.
#[leasehold::locked(client = client, name = "converted")]
async fn converted(client: &Client) -> Outcome<Box<dyn Fn(u8) -> u8 + Send>> {
    if client.warnings().is_empty() {
        return Ok(Box::new(|number| number + 1));
    }
    Ok(Box::new(|number| number))
}

/// Bodies that do not reach their ends.
#[leasehold::locked(client = client, name = "returns")]
async fn returns(client: &Client) -> Result<u8, Failed> {
    return Ok(u8::from(client.warnings().is_empty()));
}

#[leasehold::locked(client = client, name = "loops")]
fn loops(client: &leasehold::blocking::Client) -> Result<u8, Failed> {
    loop {
        if client.warnings().is_empty() {
            return Ok(0);
        }
    }
}

#[leasehold::locked(client = client, name = "panics")]
fn panics(client: &leasehold::blocking::Client) -> Result<u8, Failed> {
    unimplemented!("for {client:?}")
}

#[tokio::test]
async fn all_forms_of_functions_can_be_locked() -> Outcome<()> {
    let bench = Bench::new();
    let locks = Arc::new(bench.client());
    let shop = || Shop { locks: &locks, threads: Box::new(bench.blocking()), stock: "pear".to_owned() };
    let mut shop_changed = shop();
    assert_eq!(shop_changed.generic::<_, 2>(7, "apple").await?.0, "ap");
    assert_eq!(shop_changed.elided("").await?, "pear");
    let mut out = Vec::new();
    shop_changed.mutable((1, 3), vec!["fig".to_owned()], &mut out).await?;
    assert_eq!(out, ["fig", "pear"]);
    assert_eq!(shop().plain(1, "fig".to_owned())?, "pear");
    assert_eq!(shop().braces()?, "pear");
    assert_eq!(shop().opaque(2)?.unwrap().collect::<Vec<_>>(), [11, 12]);
    assert_eq!(locks.by_default("acme").await.unwrap(), 4);
    assert_eq!(hygiene(&locks, 1, 2, "x").await.unwrap(), "1:2:x 1 2 x");
    renamed(Client::clone(&locks)).await.unwrap();
    assert_eq!((returns(&locks).await, loops(&bench.blocking())), (Ok(1), Ok(0)));
    assert_eq!(converted(&locks).await?(1), 2);
    _ = panics;
    Ok(())
}

#[tokio::test]
async fn the_future_can_be_spawned() {
    let locks = Bench::new().client();
    let task = tokio::spawn(async move {
        let (locks, threads) = (Arc::new(locks), leasehold::blocking::connect("memory:").unwrap());
        let mut shop = Shop { locks: &locks, threads: Box::new(threads), stock: 3 };
        shop.mutable((0, 1), vec![1], &mut Vec::new()).await.unwrap();
        shop.generic::<_, 1>("key", "apple").await.unwrap().0.len() + shop.locks.work("acme").await.unwrap()
    });
    assert_eq!(task.await.unwrap(), 5);
}
