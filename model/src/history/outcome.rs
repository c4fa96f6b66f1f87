//! What operations answer and what a database holds.

use crate::model::Model;
use crate::operation::{Answer, Word};
use ironleaf::{ErrorKind, Kind};
use std::fmt;

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A write was acknowledged.
    Committed {
        /// Its place in the order.
        position: u64,
        /// What was there before, for each counted edit.
        outcomes: Vec<Option<Vec<u8>>>,
    },
    /// A transaction was acknowledged.
    Transacted {
        /// Its place in the order; without edits, the position that it read.
        position: u64,
        /// What its reads answered, in order.
        answers: Vec<Answer>,
    },
    /// A read was answered.
    Answered(Answer),
    /// A snapshot was taken.
    Snapshot {
        /// The position it stands for.
        position: u64,
    },
    /// A flush ended.
    Flushed {
        /// The position up to which everything is durable.
        position: u64,
    },
    /// A checkpoint ended.
    Checkpointed {
        /// The position up to which pages hold everything.
        position: u64,
    },
    /// A check ended.
    Checked {
        /// What it found wrong.
        findings: Vec<String>,
    },
    /// Something without an answer ended.
    Done,
    /// There was nothing to do: the slot holds no snapshot.
    Skipped,
    /// The engine refused or failed.
    Failed {
        /// Why.
        kind: ErrorKind,
        /// The error's line.
        message: String,
    },
}

/// Most entries of an answer that are written out.
const ENTRIES_SHOWN: usize = 6;

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Committed { position, outcomes } => {
                write!(f, "committed at {position}")?;
                for (at, outcome) in outcomes.iter().enumerate() {
                    write!(
                        f,
                        "{} {}",
                        if at == 0 { "; before:" } else { "," },
                        OrAbsent(outcome.as_deref())
                    )?;
                }
                Ok(())
            }
            Self::Transacted { position, answers } => {
                write!(f, "committed at {position}")?;
                for (at, answer) in answers.iter().enumerate() {
                    write!(f, "{} {answer}", if at == 0 { "; read:" } else { "," })?;
                }
                Ok(())
            }
            Self::Answered(answer) => write!(f, "{answer}"),
            Self::Snapshot { position } => write!(f, "snapshot at {position}"),
            Self::Flushed { position } => write!(f, "durable up to {position}"),
            Self::Checkpointed { position } => write!(f, "in pages up to {position}"),
            Self::Checked { findings } if findings.is_empty() => f.write_str("nothing wrong"),
            Self::Checked { findings } => write!(f, "found: {}", findings.join("; ")),
            Self::Done => f.write_str("done"),
            Self::Skipped => f.write_str("skipped: no snapshot in this slot"),
            Self::Failed { kind, message } => write!(f, "failed: {kind:?}: {message}"),
        }
    }
}

struct OrAbsent<'a>(Option<&'a [u8]>);

impl fmt::Display for OrAbsent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("nothing"),
            Some(value) => write!(f, "{}", Word(value)),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "{}", OrAbsent(value.as_deref())),
            Self::Present(present) => f.write_str(if *present { "present" } else { "absent" }),
            Self::Count(count) => write!(f, "{count}"),
            Self::Kind(None) => f.write_str("nothing"),
            Self::Kind(Some(kind)) => f.write_str(kind_name(*kind)),
            Self::Entries(entries) => {
                let shown = entries.iter().map(|(name, value)| {
                    if value.is_empty() {
                        Word(name).to_string()
                    } else {
                        format!("{}={}", Word(name), Word(value))
                    }
                });
                write_listed(f, shown)
            }
            Self::Keys(keys) => write_listed(
                f,
                keys.iter().map(|(key, kind)| format!("{} ({})", Word(key), kind_name(*kind))),
            ),
            Self::WrongKind => f.write_str("wrong kind"),
        }
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Hash => "hash",
        Kind::Set => "set",
    }
}

/// Writes the first of many entries, and a checksum over all of them so that no difference hides.
fn write_listed(f: &mut fmt::Formatter<'_>, entries: impl ExactSizeIterator<Item = String>) -> fmt::Result {
    let (len, mut checksum) = (entries.len(), 0xcbf2_9ce4_8422_2325_u64);
    write!(f, "{len} entries")?;
    for (at, entry) in entries.enumerate() {
        for byte in entry.bytes().chain([0]) {
            checksum = (checksum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        if at < ENTRIES_SHOWN {
            write!(f, "{} {entry}", if at == 0 { ":" } else { "," })?;
        }
    }
    if len > ENTRIES_SHOWN { write!(f, ", … (checksum {checksum:016x})") } else { Ok(()) }
}

/// Everything a database holds, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The objects.
    pub objects: Vec<Held>,
    /// What could not be read, in the words of the errors.
    pub unread: Vec<String>,
    /// Whether there may be keys that could not be read.
    pub lacks_keys: bool,
}

/// One object of [`Contents`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its key.
    pub key: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Its length, as the database says; `None` if that cannot be read.
    pub len: Option<u64>,
    /// Names and values (empty for members), in order.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether there may be entries that could not be read.
    pub lacks_entries: bool,
}

impl Contents {
    /// The first difference to the model, for people; `None` if there is none. What could not be read is none.
    #[must_use]
    pub fn difference(&self, model: &Model) -> Option<String> {
        // Of what cannot all be read nobody knows whether it is empty.
        let is_known = |held: &&Held| self.unread.is_empty() || !held.entries.is_empty();
        let mut found = self.objects.iter().peekable();
        for (key, object) in model.objects() {
            while found.next_if(|held| held.key.as_slice() < key && !is_known(held)).is_some() {}
            let Some(held) = found.next_if(|held| held.key == key) else {
                match found.peek() {
                    Some(held) if held.key.as_slice() < key => break,
                    _ if self.lacks_keys => continue,
                    _ => return Some(format!("key {} is missing", Word(key))),
                }
            };
            if held.kind != object.kind() {
                let (found, expected) = (kind_name(held.kind), kind_name(object.kind()));
                return Some(format!("key {} holds a {found}, not a {expected}", Word(key)));
            }
            let difference = held.differing_entry(object.entries());
            if difference.is_some() {
                return difference;
            }
            if let Some(len) = held.len.filter(|len| *len != object.len() as u64) {
                return Some(format!("key {} says it has {len} entries, not {}", Word(key), object.len()));
            }
        }
        found.find(is_known).map(|held| format!("key {} is there, but should not be", Word(&held.key)))
    }

    /// A line for each object.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |held: &Held| {
            let entries = Answer::Entries(held.entries.clone());
            let lacks = if held.lacks_entries { ", and what cannot be read" } else { "" };
            format!("{} ({}) {entries}{lacks}", Word(&held.key), kind_name(held.kind))
        };
        let unread = self.unread.iter().map(|error| format!("unread: {error}"));
        self.objects.iter().map(line).chain(unread).collect()
    }
}

impl Held {
    fn differing_entry<'a>(&self, expected: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Option<String> {
        let key = Word(&self.key);
        let mut found = self.entries.iter().map(|(name, value)| (&name[..], &value[..])).peekable();
        let surplus = |(name, value)| format!("key {key} has {}={}, but should not", Word(name), Word(value));
        for (name, value) in expected {
            match found.next_if(|(same, _)| *same == name) {
                Some((_, same)) if same == value => {}
                Some((_, other)) => {
                    return Some(format!(
                        "key {key} has {}={}, not {}",
                        Word(name),
                        Word(other),
                        Word(value)
                    ));
                }
                None => match found.peek() {
                    Some(entry) if entry.0 < name => return Some(surplus(*entry)),
                    _ if self.lacks_entries => {}
                    _ => return Some(format!("key {key} lacks {}={}", Word(name), Word(value))),
                },
            }
        }
        found.next().map(surplus)
    }
}
