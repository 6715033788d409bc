//! The entry of one owner: how it is created, found again and deleted.

use futures_util::future::join;
use lock_core::{Claim, FencingToken, Holder, Lease, Owner, Released, Slots, TokenRange};
use zookeeper_client::{CreateMode, Error};

use crate::data::Data;
use crate::directory::{Directory, drawn_by};
use crate::entry::{self, EntryId, Listed, Role, Turn};
use crate::session::Session;

/// From this number on, a directory takes no more entries: Curator's order and ours would part at 2^31.
const NUMBER_END: i64 = i32::MAX as i64 - 1_000_000;

/// How many spare slots a claim chooses among after another claim was faster. Chosen: as many claims seldom collide again.
const CHOICE: usize = 64;

/// What one owner has in the directory of a lock.
pub(crate) struct Place {
    pub(crate) directory: Directory,
    pub(crate) state: State,
    id: EntryId,
}

/// What is known of the entry.
pub(crate) enum State {
    /// There is none.
    None,
    /// Perhaps there is one: its creation was sent and not answered, or somebody else has created it.
    Unknown,
    /// There is one.
    There(Entry),
}

/// The entry of an owner.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) child: String,
    /// The transaction that its tokens are of. Permits that have no slots yet have no tokens.
    pub(crate) drawn_by: i64,
    /// The slots of its permits.
    pub(crate) slots: Slots,
    /// Whether it ends with this session.
    is_ours: bool,
    /// Whether it was found to hold.
    pub(crate) is_granted: bool,
}

impl Place {
    /// The place of an owner that has no entry yet.
    pub(crate) fn new(owner: Owner, directory: Directory) -> Self {
        Self { directory, state: State::None, id: EntryId::of(owner) }
    }

    /// The place of an owner that may have an entry.
    pub(crate) fn unknown(owner: Owner, directory: Directory) -> Self {
        Self { state: State::Unknown, ..Self::new(owner, directory) }
    }

    /// The entry, if there is one.
    pub(crate) fn entry(&self) -> Option<Entry> {
        match &self.state {
            State::There(entry) => Some(entry.clone()),
            State::None | State::Unknown => None,
        }
    }

    /// Remembers that the entry holds.
    pub(crate) fn mark_granted(&mut self) {
        if let State::There(entry) = &mut self.state {
            entry.is_granted = true;
        }
    }

    /// Creates the entry, and lists the directory as it is then. `None` if there was no directory.
    pub(crate) async fn create(
        &mut self,
        session: &Session,
        claim: &Claim,
        role: Role,
    ) -> Result<Option<Vec<Listed>>, Error> {
        let beginning = self.id.beginning(role);
        let (path, data) = (self.directory.path(&beginning), Data::of(claim).to_wire());
        let options = session.create_options(CreateMode::EphemeralSequential);
        self.state = State::Unknown;
        let created = session.write(|client| client.create(&path, &data, &options));
        // Sent together, and answered in this order.
        let (created, listed) = join(created, self.directory.listed(session)).await;
        match created {
            Ok((stat, number)) => {
                let child = format!("{beginning}{number}");
                self.state = State::There(Entry {
                    child,
                    drawn_by: stat.czxid,
                    slots: Slots::NONE,
                    is_ours: true,
                    is_granted: false,
                });
                if number.into_i64() >= NUMBER_END {
                    self.leave(session).await?;
                    let message =
                        "the numbers of this directory are used up: use another name, or remove the empty directory";
                    return Err(Error::UnexpectedError(message.to_owned()));
                }
                listed.map(Some)
            }
            Err(Error::NoNode) => {
                self.state = State::None;
                self.directory.make(session).await?;
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Finds out whether there is an entry.
    pub(crate) async fn find(&mut self, session: &Session) -> Result<(), Error> {
        // A creation that is still in flight on an earlier connection is refused: its session has moved.
        let (asked, listed) = join(session.catch_up(), self.directory.listed(session)).await;
        asked?;
        let listed = listed?;
        let Some(found) = listed.iter().find(|entry| self.id.is_of(&entry.child)) else {
            self.state = State::None;
            return Ok(());
        };
        let path = self.directory.path(&found.child);
        let Some((data, stat)) = session.data(&path).await? else {
            self.state = State::None;
            return Ok(());
        };
        let slots = Slots::new(Data::read(&data).map(|data| data.slots).unwrap_or_default());
        let is_granted = match found.role.permits() {
            Some(_) => !slots.get().is_empty(),
            None => entry::decide(&listed, &found.child) == Some(Turn::Granted),
        };
        let (drawn_by, is_ours) = (drawn_by(found.role, &stat), stat.ephemeral_owner == session.id());
        self.state = State::There(Entry { child: found.child.clone(), drawn_by, slots, is_ours, is_granted });
        Ok(())
    }

    /// Takes free slots for an entry whose turn has come, which draws its tokens: the lowest ones or, after a collision, some of the lowest. The
    /// entry has to be looked at again afterwards.
    pub(crate) async fn take_slots(
        &mut self,
        session: &Session,
        claim: &Claim,
        (entry, (count, limit)): (Entry, (u32, u32)),
    ) -> Result<(), Error> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut choice = 0;
        loop {
            // So that no slot is taken for occupied whose holder had left before.
            let (asked, taken) = join(session.catch_up(), self.directory.taken_slots(session)).await;
            asked?;
            let taken = taken?;
            let mut slots: Vec<u32> =
                (0..limit).filter(|slot| !taken.contains(slot)).take(count.saturating_add(choice)).collect();
            if choice > 0 {
                fastrand::shuffle(&mut slots);
            }
            slots.truncate(count);
            if slots.len() < count {
                let slot = self.directory.slot(0);
                let message = format!(
                    "no {count} slots are free although so many permits are: delete the nodes like {slot} that nobody has"
                );
                return Err(Error::UnexpectedError(message));
            }
            let data = Data { slots: slots.clone(), ..Data::of(claim) }.to_wire();
            self.state = State::Unknown;
            let paths: Vec<_> = slots.iter().map(|slot| self.directory.slot(*slot)).collect();
            self.state = match session.create_and_set(&paths, &self.directory.path(&entry.child), &data).await {
                Ok(drawn_by) => State::There(Entry { drawn_by, slots: Slots::new(slots), ..entry }),
                Err(Error::NodeExists) => {
                    choice = CHOICE;
                    continue;
                }
                Err(Error::NoNode) => State::None,
                Err(failure) => return Err(failure),
            };
            return Ok(());
        }
    }

    /// Deletes the entry, whatever is known of it.
    pub(crate) async fn leave(&mut self, session: &Session) -> Result<Released, Error> {
        if matches!(self.state, State::Unknown) {
            self.find(session).await?;
        }
        let Some(entry) = self.entry() else {
            // Asked all the same: a client that is cut off knows nothing.
            return session.catch_up().await.map(|()| Released::NotHeld);
        };
        let released = match session.delete(&self.nodes_of(&entry)).await {
            Ok(()) if entry.is_granted => Released::Released,
            Ok(()) => Released::Left,
            Err(Error::NoNode) => {
                self.delete_rest(session, &entry).await?;
                Released::NotHeld
            }
            Err(failure) => return Err(failure),
        };
        self.state = State::None;
        Ok(released)
    }

    /// Deletes what is left of an entry whose nodes are not all there: somebody has deleted some by hand.
    async fn delete_rest(&self, session: &Session, entry: &Entry) -> Result<(), Error> {
        let mut rest = vec![self.directory.path(&entry.child)];
        for slot in entry.slots.get() {
            let path = self.directory.slot(*slot);
            let stat = session.read(|client| client.check_stat(&path)).await?;
            rest.extend(stat.filter(|stat| stat.czxid == entry.drawn_by).map(|_| path));
        }
        for path in rest {
            match session.delete(&[path]).await {
                Ok(()) | Err(Error::NoNode) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn nodes_of(&self, entry: &Entry) -> Vec<String> {
        let slots = entry.slots.get().iter().map(|slot| self.directory.slot(*slot));
        slots.chain([self.directory.path(&entry.child)]).collect()
    }

    /// The nodes of a lease, if it is the grant of this place. With [`Whose::Session`] only if it ends with this session.
    pub(crate) async fn nodes(
        &mut self,
        session: &Session,
        lease: &Lease,
        whose: Whose,
    ) -> Result<Option<Vec<String>>, Error> {
        if matches!(self.state, State::Unknown) {
            self.find(session).await?;
        }
        let State::There(entry) = &self.state else { return Ok(None) };
        let is_it = session.base().tokens(entry.drawn_by, lease.tokens.width()) == Ok(lease.tokens);
        let counts = is_it && (entry.is_ours || whose == Whose::Anybody);
        Ok(counts.then(|| self.nodes_of(entry)))
    }

    /// The lowest token of the present exclusive holder, if it is above these.
    pub(crate) async fn higher(&self, session: &Session, tokens: TokenRange) -> Result<Option<FencingToken>, Error> {
        let listed = self.directory.listed(session).await?;
        if !listed.first().is_some_and(|first| first.role.is_exclusive()) {
            return Ok(None);
        }
        let Some(Holder::Leasehold { tokens: later, .. }) = self.directory.holder(session, &listed).await? else {
            return Ok(None);
        };
        Ok(Some(later.low()).filter(|low| *low > tokens.high()))
    }
}

/// Whose entries count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those of this session.
    Session,
    /// Those of any session.
    Anybody,
}
