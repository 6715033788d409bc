//! The list of the stores: what this crate has to know of each. ARCHITECTURE.md says what else another store needs.

use lock_core::{Invalid, StoreConfig};

/// A kind of URL, whether or not this build supports it.
pub(crate) struct Scheme {
    pub(crate) name: &'static str,
    /// The feature that it needs.
    pub(crate) feature: &'static str,
    /// The shortest way to write it.
    pub(crate) form: &'static str,
    /// The `backend` of a table.
    pub(crate) store: &'static str,
}

type Parse = fn(&str) -> Result<BackendConfig, Invalid>;

impl Scheme {
    /// How to read a URL of this scheme; `None` if this build does not include its store.
    pub(crate) fn parser(&self) -> Option<Parse> {
        PARSERS.iter().find(|(store, _)| *store == self.store).map(|(_, parse)| *parse)
    }

    /// The error of a URL that gives this scheme, if this build does not include its store.
    pub(crate) fn left_out(&self, given: &str) -> Invalid {
        let (problem, remedy) =
            ("this build does not include that store", format!("build with the feature {}", self.feature));
        Invalid::new("store URL", format!("{given}:..."), problem, remedy)
    }
}

/// Each entry: the documentation, the variant with its configuration, its feature (which is also the `backend` of a table), how to open it for
/// each facade, and its schemes: the feature, the name, and the shortest form.
macro_rules! stores {
    ($(
        $(#[doc = $doc:literal])*
        $Store:ident($Config:ty) = $name:literal,
        async |$async_config:ident| $open_async:expr,
        blocking |$blocking_config:ident| $open_blocking:expr,
        $($feature:literal $scheme:literal: $form:literal,)*
    )*) => {
        /// Which store to use, and how. Reading it from a configuration refuses unknown fields.
        ///
        /// In a configuration file it is a URL, or a table with the name of the backend and the fields of that backend:
        ///
        /// ```
        /// # #[cfg(feature = "sqlite")] {
        /// # use leasehold::BackendConfig;
        /// let config: BackendConfig = serde_json::from_str(r#" "sqlite:/var/lib/shop/locks.db" "#)?;
        /// let config: BackendConfig = serde_json::from_str(r#"{ "backend": "sqlite", "path": "/var/lib/shop/locks.db" }"#)?;
        /// # }
        /// # Ok::<(), serde_json::Error>(())
        /// ```
        ///
        /// Neither `Debug` nor an error of this crate shows a password. A parser may quote the line of the file in an error;
        /// the TOML parser does.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum BackendConfig {
            $(
                $(#[doc = $doc])*
                #[cfg(feature = $name)]
                $Store($Config),
            )*
        }

        /// The form of a table.
        #[derive(serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(
            feature = "schema",
            schemars(rename = "BackendTable", description = "The name of the backend, and its fields.")
        )]
        #[serde(tag = "backend")]
        pub(crate) enum Table {
            $(
                #[cfg(feature = $name)]
                #[serde(rename = $name)]
                $Store($Config),
            )*
            /// Not kept, because it may be a URL with a password in the wrong field.
            #[serde(other)]
            #[cfg_attr(feature = "schema", schemars(skip))]
            Unknown,
        }

        /// The backends, and whether this build includes them.
        pub(crate) const BACKENDS: &[(&str, bool)] = &[$(($name, cfg!(feature = $name)),)*];

        pub(crate) const SCHEMES: &[Scheme] =
            &[$($(Scheme { name: $scheme, feature: $feature, form: $form, store: $name },)*)*];

        /// How to read the URLs of each store that this build includes.
        const PARSERS: &[(&str, Parse)] = &[
            $(
                #[cfg(feature = $name)]
                ($name, |url| <$Config as StoreConfig>::from_url(url).map(BackendConfig::$Store)),
            )*
        ];

        impl Table {
            /// The store; `None` if it is unknown.
            pub(crate) fn config(self) -> Option<BackendConfig> {
                match self {
                    $(
                        #[cfg(feature = $name)]
                        Self::$Store(config) => Some(BackendConfig::$Store(config)),
                    )*
                    Self::Unknown => None,
                }
            }
        }

        impl BackendConfig {
            /// The configuration, as all stores have one.
            pub(crate) fn store(&self) -> &dyn StoreConfig {
                match *self {
                    $(
                        #[cfg(feature = $name)]
                        Self::$Store(ref config) => config,
                    )*
                }
            }

            #[cfg(feature = "async")]
            #[allow(clippy::unused_async, reason = "opening some stores awaits nothing")]
            pub(crate) async fn open_async(
                &self,
            ) -> Result<std::sync::Arc<dyn lock_core::AsyncBackend>, crate::ConnectError> {
                match *self {
                    $(
                        #[cfg(feature = $name)]
                        Self::$Store(ref $async_config) => Ok($open_async),
                    )*
                }
            }

            #[cfg(feature = "blocking")]
            pub(crate) fn open_blocking(
                &self,
            ) -> Result<std::sync::Arc<dyn lock_core::BlockingBackend>, crate::ConnectError> {
                match *self {
                    $(
                        #[cfg(feature = $name)]
                        Self::$Store(ref $blocking_config) => Ok($open_blocking),
                    )*
                }
            }
        }
    };
}

stores! {
    /// An in-memory store in this process.
    Memory(lock_memory::MemoryConfig) = "memory",
    async |config| std::sync::Arc::new(lock_memory::nonblocking::Memory::open(config)),
    blocking |config| std::sync::Arc::new(lock_memory::blocking::Memory::open(config)),
    "memory" "memory": "memory:",

    /// A file shared by the processes of one machine.
    Sqlite(lock_sqlite::SqliteConfig) = "sqlite",
    async |config| std::sync::Arc::new(lock_sqlite::nonblocking::Sqlite::open(config)?),
    blocking |config| std::sync::Arc::new(lock_sqlite::blocking::Sqlite::open(config)?),
    "sqlite" "sqlite": "sqlite:PATH",

    /// One Redis, the primary that sentinels name, or a cluster.
    Redis(Box<lock_redis::RedisConfig>) = "redis",
    async |config| std::sync::Arc::new(lock_redis::nonblocking::Redis::connect(config).await?),
    blocking |config| std::sync::Arc::new(lock_redis::blocking::Redis::connect(config)?),
    "redis" "redis": "redis://HOST",
    "tls" "rediss": "rediss://HOST",
    "redis" "redis+sentinel": "redis+sentinel://HOST,HOST,HOST/NAME",
    "tls" "rediss+sentinel": "rediss+sentinel://HOST,HOST,HOST/NAME",
    "redis" "redis+cluster": "redis+cluster://HOST,HOST",
    "tls" "rediss+cluster": "rediss+cluster://HOST,HOST",
    "redis" "redis+unix": "redis+unix:///PATH",
    "redis" "unix": "unix:///PATH",
    "redis" "valkey": "valkey://HOST",
    "tls" "valkeys": "valkeys://HOST",
    "redis" "valkey+sentinel": "valkey+sentinel://HOST,HOST,HOST/NAME",
    "tls" "valkeys+sentinel": "valkeys+sentinel://HOST,HOST,HOST/NAME",
    "redis" "valkey+cluster": "valkey+cluster://HOST,HOST",
    "tls" "valkeys+cluster": "valkeys+cluster://HOST,HOST",
    "redis" "valkey+unix": "valkey+unix:///PATH",

    /// A PostgreSQL database.
    Postgres(Box<lock_postgres::PostgresConfig>) = "postgres",
    async |config| std::sync::Arc::new(lock_postgres::nonblocking::connect(config).await?),
    blocking |config| std::sync::Arc::new(lock_postgres::blocking::connect(config)?),
    "postgres" "postgres": "postgres://HOST/DATABASE",
    "postgres" "postgresql": "postgresql://HOST/DATABASE",

    /// A MySQL or MariaDB database.
    Mysql(Box<lock_mysql::MysqlConfig>) = "mysql",
    async |config| std::sync::Arc::new(lock_mysql::nonblocking::connect(config).await?),
    blocking |config| std::sync::Arc::new(lock_mysql::blocking::connect(config)?),
    "mysql" "mysql": "mysql://HOST/DATABASE",
    "mysql" "mariadb": "mariadb://HOST/DATABASE",

    /// A ZooKeeper ensemble.
    Zookeeper(Box<lock_zookeeper::ZookeeperConfig>) = "zookeeper",
    async |config| std::sync::Arc::new(lock_zookeeper::nonblocking::connect(config).await?),
    blocking |config| std::sync::Arc::new(lock_zookeeper::blocking::connect(config)?),
    "zookeeper" "zookeeper": "zookeeper://HOST,HOST,HOST",
    "zookeeper-tls" "zookeeper+tls": "zookeeper+tls://HOST,HOST,HOST?sslrootcert=FILE",

    /// An etcd cluster.
    Etcd(Box<lock_etcd::EtcdConfig>) = "etcd",
    async |config| std::sync::Arc::new(lock_etcd::nonblocking::connect(config).await?),
    blocking |config| std::sync::Arc::new(lock_etcd::blocking::connect(config)?),
    "etcd" "etcd": "etcd://HOST,HOST,HOST",
    "etcd-tls" "etcds": "etcds://HOST,HOST,HOST",

    /// A quorum of independent Redis servers.
    Redlock(lock_redlock::RedlockConfig) = "redlock",
    async |config| std::sync::Arc::new(crate::redlock::nonblocking::connect(config).await?.0),
    blocking |config| std::sync::Arc::new(crate::redlock::blocking::connect(config)?.0),
    "redlock" "redlock": "redlock://HOST,HOST,HOST",
}
