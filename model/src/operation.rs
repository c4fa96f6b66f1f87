//! Everything a client can ask of a database.
//!
//! An operation has a one-line text form ([`Display`](std::fmt::Display) and [`FromStr`](std::str::FromStr)), which
//! is what scenario files hold. Levels of durability stand at the end of a write; `synced` is the default and is
//! left out.
//!
//! ```text
//! set KEY FIELD VALUE [synced|written|buffered]        insert (counted: answers what was there)
//! put KEY MEMBER                                       add    (counted)
//! remove KEY NAME                                      take   (counted)
//! delete KEY
//! set-many KEY FIELD[0..300] VALUE     fields FIELD0000 to FIELD0299, each with its own value
//! put-many KEY MEMBER[0..300]          remove-many KEY NAME[0..300]
//! batch [EDIT; EDIT; …] [LEVEL]        the edits above, applied together
//! abandon WRITE                        begins one of the above, and drops its future at its first suspension
//! abandon at N WRITE                   the same at its N-th suspension
//! hold WRITE    hold at N WRITE        the same, but drops it only when the client's next operation has ended
//! transaction [READ; EDIT; READ; …] [LEVEL]    reads and edits (no counted ones), together or not at all
//! get KEY FIELD    contains KEY NAME    len KEY    kind KEY
//! scan KEY [FROM]..[[=]TO] [limit N]    scan-reverse (from the last to the first)    keys PREFIX
//! snapshot SLOT    drop-snapshot SLOT
//! snapshot-get SLOT KEY FIELD           likewise snapshot-contains, -len, -kind, -scan, -scan-reverse, -keys
//! flush    checkpoint    check
//! ```
//!
//! Names and values are words of letters, digits, `_` and `-`, or quoted with escapes: `"a b\n\x00"`. `WORD*N` is the
//! word repeated to N bytes.

mod text;

pub use text::ParseError;
pub(crate) use text::Word;

use ironleaf::{Durability, Kind, WriteBatch};
use serde::{Deserialize, Serialize};

/// One request of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Operation {
    /// Applies edits together.
    Write(Write),
    /// Begins a write and leaves its future at a suspension.
    Abandon {
        /// The write.
        write: Write,
        /// At which of its suspensions, from 1.
        suspension: u32,
        /// Whether the future is kept, without polling it, until the client's next operation has ended.
        is_held: bool,
    },
    /// Reads and edits in a transaction, and commits it.
    Transaction(Transaction),
    /// Reads the present state.
    Read(Read),
    /// Takes a snapshot into a slot of the client, dropping the one that was there.
    Snapshot {
        /// The slot.
        slot: u8,
    },
    /// Reads the snapshot in a slot.
    SnapshotRead {
        /// The slot.
        slot: u8,
        /// What is read.
        read: Read,
    },
    /// Drops the snapshot in a slot.
    DropSnapshot {
        /// The slot.
        slot: u8,
    },
    /// Makes everything before it durable.
    Flush,
    /// Writes the memtable to pages.
    Checkpoint,
    /// Has the engine verify itself.
    Check,
}

/// Edits that are applied together, and the level at which they are acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// In order; each sees the ones before it.
    pub edits: Vec<Edit>,
    /// The level.
    pub durability: Durability,
}

/// What a transaction does, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The reads, each with the number of edits before it.
    pub reads: Vec<(usize, Read)>,
    /// The edits, none of them counted, and the level.
    pub write: Write,
}

/// One edit of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are what the names say; the grammar above explains them")]
pub enum Edit {
    Set { key: Vec<u8>, field: Vec<u8>, value: Vec<u8> },
    Insert { key: Vec<u8>, field: Vec<u8>, value: Vec<u8> },
    Put { key: Vec<u8>, member: Vec<u8> },
    Add { key: Vec<u8>, member: Vec<u8> },
    Remove { key: Vec<u8>, name: Vec<u8> },
    Take { key: Vec<u8>, name: Vec<u8> },
    Delete { key: Vec<u8> },
    SetMany { key: Vec<u8>, fields: NameRange, value: ValueStem },
    PutMany { key: Vec<u8>, members: NameRange },
    RemoveMany { key: Vec<u8>, names: NameRange },
}

/// Names that are numbered from `from` to below `to`, in order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRange {
    /// What stands before the number.
    pub stem: Vec<u8>,
    /// The first number.
    pub from: u32,
    /// The number after the last.
    pub to: u32,
}

/// Values made of a common beginning and the number of their field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueStem {
    /// The common beginning.
    pub word: Vec<u8>,
    /// Length of each value in bytes: the beginning and the number, repeated. As long as they are, if `None`.
    pub len: Option<u32>,
}

/// A question about the state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are what the names say; the grammar above explains them")]
pub enum Read {
    Get { key: Vec<u8>, field: Vec<u8> },
    Contains { key: Vec<u8>, name: Vec<u8> },
    Len { key: Vec<u8> },
    Kind { key: Vec<u8> },
    Scan { key: Vec<u8>, from: Option<Vec<u8>>, to: ScanEnd, limit: Option<u32>, is_reverse: bool },
    Keys { prefix: Vec<u8> },
}

/// Where a scan ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// With the last name.
    Open,
    /// Before this name.
    Before(Vec<u8>),
    /// With this name.
    With(Vec<u8>),
}

/// The answer to a [`Read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To `get`.
    Value(Option<Vec<u8>>),
    /// To `contains`.
    Present(bool),
    /// To `len`.
    Count(u64),
    /// To `kind`.
    Kind(Option<Kind>),
    /// To `scan`: names and values, empty ones for members.
    Entries(Vec<(Vec<u8>, Vec<u8>)>),
    /// To `keys`.
    Keys(Vec<(Vec<u8>, Kind)>),
    /// The key holds an object of the other kind.
    WrongKind,
}

/// What one edit does to one name, or to a whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Sets a field.
    Set(&'a [u8], &'a [u8]),
    /// Puts a member.
    Put(&'a [u8]),
    /// Removes a field or member.
    Remove(&'a [u8]),
    /// Deletes the object.
    Delete,
}

impl NameRange {
    /// The name with the number `at`.
    #[must_use]
    pub fn name(&self, at: u32) -> Vec<u8> {
        let mut name = self.stem.clone();
        push_number(&mut name, at);
        name
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.to.saturating_sub(self.from) as usize
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Appends `number` in four digits or more, so that names sort like their numbers up to 9999.
fn push_number(bytes: &mut Vec<u8>, number: u32) {
    let mut digits = [b'0'; 10];
    let mut at = digits.len();
    let mut rest = number;
    while rest > 0 || at > digits.len() - 4 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    bytes.extend_from_slice(&digits[at..]);
}

impl ValueStem {
    /// The value of the field with the number `at`.
    #[must_use]
    pub fn value(&self, at: u32) -> Vec<u8> {
        let mut value = self.word.clone();
        value.push(b'.');
        push_number(&mut value, at);
        match self.len {
            None => value,
            Some(len) => repeat_to(&value, len as usize),
        }
    }
}

/// `word`, repeated or cut to `len` bytes. Empty if there is nothing to repeat.
#[must_use]
pub fn repeat_to(word: &[u8], len: usize) -> Vec<u8> {
    word.iter().copied().cycle().take(len).collect()
}

impl Edit {
    /// The object that is edited.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Set { key, .. }
            | Self::Insert { key, .. }
            | Self::Put { key, .. }
            | Self::Add { key, .. }
            | Self::Remove { key, .. }
            | Self::Take { key, .. }
            | Self::Delete { key }
            | Self::SetMany { key, .. }
            | Self::PutMany { key, .. }
            | Self::RemoveMany { key, .. } => key,
        }
    }

    /// Bytes of all keys, names and values. Those that are numbered count without their numbers.
    fn bytes(&self) -> u64 {
        let of_range = |range: &NameRange, value: usize| {
            let each = (self.key().len() + range.stem.len() + value) as u64;
            u64::from(range.to.saturating_sub(range.from)).saturating_mul(each)
        };
        match self {
            Self::Set { key, field, value } | Self::Insert { key, field, value } => {
                (key.len() + field.len() + value.len()) as u64
            }
            Self::Put { key, member: name }
            | Self::Add { key, member: name }
            | Self::Remove { key, name }
            | Self::Take { key, name } => (key.len() + name.len()) as u64,
            Self::Delete { key } => key.len() as u64,
            Self::SetMany { fields, value, .. } => {
                of_range(fields, value.len.map_or(value.word.len(), |len| len as usize))
            }
            Self::PutMany { members: names, .. } | Self::RemoveMany { names, .. } => of_range(names, 0),
        }
    }

    /// Whether the answer says what was there before.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        matches!(self, Self::Insert { .. } | Self::Add { .. } | Self::Take { .. })
    }

    /// Calls `apply` for each name that is edited, in order, until it fails.
    pub fn try_for_each<E>(&self, mut apply: impl FnMut(Action<'_>) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Set { field, value, .. } | Self::Insert { field, value, .. } => {
                apply(Action::Set(field, value))
            }
            Self::Put { member, .. } | Self::Add { member, .. } => apply(Action::Put(member)),
            Self::Remove { name, .. } | Self::Take { name, .. } => apply(Action::Remove(name)),
            Self::Delete { .. } => apply(Action::Delete),
            Self::SetMany { fields, value, .. } => (fields.from..fields.to)
                .try_for_each(|at| apply(Action::Set(&fields.name(at), &value.value(at)))),
            Self::PutMany { members, .. } => {
                (members.from..members.to).try_for_each(|at| apply(Action::Put(&members.name(at))))
            }
            Self::RemoveMany { names, .. } => {
                (names.from..names.to).try_for_each(|at| apply(Action::Remove(&names.name(at))))
            }
        }
    }

    /// Adds this edit to a batch.
    pub fn add_to(&self, batch: &mut WriteBatch) {
        let (key, counted) = (self.key(), self.is_counted());
        let added: Result<(), std::convert::Infallible> = self.try_for_each(|action| {
            match (action, counted) {
                (Action::Set(field, value), false) => batch.set(key, field, value),
                (Action::Set(field, value), true) => batch.insert(key, field, value),
                (Action::Put(member), false) => batch.put(key, member),
                (Action::Put(member), true) => batch.add(key, member),
                (Action::Remove(name), false) => batch.remove(key, name),
                (Action::Remove(name), true) => batch.take(key, name),
                (Action::Delete, _) => batch.delete(key),
            };
            Ok(())
        });
        let Ok(()) = added;
    }
}

impl Write {
    /// Bytes of all keys, names and values.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.edits.iter().map(Edit::bytes).fold(0, u64::saturating_add)
    }

    /// The engine's batch for these edits.
    #[must_use]
    pub fn to_batch(&self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.durability(self.durability);
        for edit in &self.edits {
            edit.add_to(&mut batch);
        }
        batch
    }

    /// Whether nothing is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.iter().all(|edit| match edit {
            Edit::SetMany { fields: names, .. }
            | Edit::PutMany { members: names, .. }
            | Edit::RemoveMany { names, .. } => names.is_empty(),
            _ => false,
        })
    }
}

impl Read {
    /// The object that is read; `None` for a read of keys.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Get { key, .. }
            | Self::Contains { key, .. }
            | Self::Len { key }
            | Self::Kind { key }
            | Self::Scan { key, .. } => Some(key),
            Self::Keys { .. } => None,
        }
    }
}

impl Transaction {
    /// The reads behind so many edits.
    pub fn reads_behind(&self, edits: usize) -> impl Iterator<Item = &Read> {
        self.reads.iter().filter(move |(before, _)| *before == edits).map(|(_, read)| read)
    }
}

impl Operation {
    /// What is written, if anything.
    #[must_use]
    pub fn as_write(&self) -> Option<&Write> {
        match self {
            Self::Write(write)
            | Self::Abandon { write, .. }
            | Self::Transaction(Transaction { write, .. }) => Some(write),
            _ => None,
        }
    }
}

impl From<Operation> for String {
    fn from(operation: Operation) -> Self {
        operation.to_string()
    }
}

impl TryFrom<String> for Operation {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}
