//! What requests do with nodes.

use zookeeper_client::{Acls, CreateMode, CreateOptions, Error, MultiWriteError, MultiWriteResult, Stat};

use super::Session;
use crate::connect::ANY_VERSION;

impl Session {
    /// The children of a node; `None` if there is no such node.
    pub(crate) async fn children(&self, path: &str) -> Result<Option<Vec<String>>, Error> {
        found(self.read(|client| client.list_children(path)).await)
    }

    /// The data of a node; `None` if there is no such node.
    pub(crate) async fn data(&self, path: &str) -> Result<Option<(Vec<u8>, Stat)>, Error> {
        found(self.read(|client| client.get_data(path)).await)
    }

    /// How nodes of this kind are created.
    pub(crate) fn create_options(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(self.acls)
    }

    /// Asks the leader, so that later reads of this session see everything that was done before.
    pub(crate) async fn catch_up(&self) -> Result<(), Error> {
        self.missing(&[]).await.map(drop)
    }

    /// Has the leader say whether these nodes exist: the first one that does not, by its index. It is asked even if there are none.
    pub(crate) async fn missing(&self, paths: &[&str]) -> Result<Option<usize>, Error> {
        self.write(async |client| {
            let mut checks = client.new_multi_writer();
            for path in paths.iter().chain([&"/"]) {
                checks.add_check_version(path, ANY_VERSION)?;
            }
            match checks.commit().await {
                Ok(_) => Ok(None),
                Err(MultiWriteError::OperationFailed { index, source: Error::NoNode }) => Ok(Some(index)),
                Err(failure) => Err(failure.into()),
            }
        })
        .await
    }

    /// Creates these nodes and changes that one, all or nothing. Returns the transaction.
    pub(crate) async fn create_and_set(&self, nodes: &[String], changed: &str, data: &[u8]) -> Result<i64, Error> {
        let options = self.create_options(CreateMode::Ephemeral);
        self.write(async |client| {
            let mut changes = client.new_multi_writer();
            nodes.iter().try_for_each(|node| changes.add_create(node, b"", &options))?;
            changes.add_set_data(changed, data, None)?;
            match changes.commit().await?.pop() {
                Some(MultiWriteResult::SetData { stat }) => Ok(stat.mzxid),
                _ => Err(Error::UnexpectedError("the answer of a transaction is not complete".to_owned())),
            }
        })
        .await
    }

    /// Makes a directory that clients with any login use.
    pub(crate) async fn make_shared(&self, directory: &str) -> Result<(), Error> {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.write(|client| client.mkdir(directory, &options)).await
    }

    /// Deletes these nodes and leaves a note, all or nothing. The directory of the note is made if it is not there.
    pub(crate) async fn end_and_note(&self, nodes: &[String], note: &str, text: &[u8]) -> Result<(), Error> {
        let options = CreateMode::Persistent.with_acls(self.readable);
        self.make_shared(note.rsplit_once('/').map_or(note, |(directory, _)| directory)).await?;
        self.write(async |client| {
            let mut changes = client.new_multi_writer();
            changes.add_create(note, text, &options)?;
            nodes.iter().try_for_each(|node| changes.add_delete(node, None))?;
            changes.commit().await?;
            Ok(())
        })
        .await
    }

    /// Deletes these nodes, all or none.
    pub(crate) async fn delete(&self, nodes: &[String]) -> Result<(), Error> {
        self.write(async |client| {
            let mut changes = client.new_multi_writer();
            nodes.iter().try_for_each(|node| changes.add_delete(node, None))?;
            changes.commit().await?;
            Ok(())
        })
        .await
    }
}

fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Error::NoNode) => Ok(None),
        Err(failure) => Err(failure),
    }
}
