//! How a choice is called, in files and in memory.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Where a run could go another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Site {
    /// How long a task that was woken waits before it runs.
    Wake,
    /// How long a task is held at a labelled point of the engine.
    Point,
    /// How long an I/O takes.
    Latency,
    /// Whether the machine crashes here: 1 is power loss, 2 is the death of the process.
    Crash,
    /// What a crash keeps.
    PowerLoss,
    /// Whether an I/O fails.
    Fault,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wake => "wake",
            Self::Point => "point",
            Self::Latency => "latency",
            Self::Crash => "crash",
            Self::PowerLoss => "power_loss",
            Self::Fault => "fault",
        })
    }
}

/// The name of a choice: stable when other operations come or go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChoiceName {
    /// How often the machine had been started before.
    pub life: u32,
    /// What kind of decision it is.
    pub site: Site,
    /// The point, the kind of I/O, the kind of task.
    pub label: String,
    /// The task on whose behalf it is made; the file or directory, for what a crash keeps.
    pub actor: String,
    /// The operation that the task was carrying out.
    pub operation: Option<u32>,
    /// How often a choice with all of the above in common had come up before.
    pub ordinal: u32,
}

impl fmt::Display for ChoiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "life {}, {} \"{}\" of \"{}\"", self.life, self.site, self.label, self.actor)?;
        if let Some(operation) = self.operation {
            write!(f, " in operation {operation}")?;
        }
        write!(f, ", ordinal {}", self.ordinal)
    }
}

/// A choice that was not decided the default way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "FlatDeviation", into = "FlatDeviation")]
pub struct Deviation {
    /// Which choice.
    pub name: ChoiceName,
    /// Which alternative; not 0.
    pub pick: u64,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: pick {}", self.name, self.pick)
    }
}

/// A deviation as files hold it. (serde cannot refuse unknown keys through `flatten`.)
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlatDeviation {
    life: u32,
    site: Site,
    label: String,
    actor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<u32>,
    ordinal: u32,
    pick: u64,
}

impl From<FlatDeviation> for Deviation {
    fn from(flat: FlatDeviation) -> Self {
        let FlatDeviation { life, site, label, actor, operation, ordinal, pick } = flat;
        Self { name: ChoiceName { life, site, label, actor, operation, ordinal }, pick }
    }
}

impl From<Deviation> for FlatDeviation {
    fn from(deviation: Deviation) -> Self {
        let ChoiceName { life, site, label, actor, operation, ordinal } = deviation.name;
        Self { life, site, label, actor, operation, ordinal, pick: deviation.pick }
    }
}

/// A map whose hasher has a fixed seed. Nothing iterates over it.
pub(super) type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::FixedState>;

/// An interned label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LabelId(u32);

/// An interned actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ActorId(u32);

/// What the ordinals of one life count within.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group {
    pub(super) site: Site,
    pub(super) label: LabelId,
    pub(super) actor: ActorId,
    pub(super) operation: Option<u32>,
}

/// An interned [`ChoiceName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) life: u32,
    pub(super) group: Group,
    pub(super) ordinal: u32,
}

/// The interned strings of one run.
#[derive(Default)]
pub(super) struct Names {
    ids: Map<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Names {
    pub(super) fn label(&mut self, text: &str) -> LabelId {
        LabelId(self.intern(text))
    }

    pub(super) fn actor(&mut self, text: &str) -> ActorId {
        ActorId(self.intern(text))
    }

    pub(super) fn label_text(&self, label: LabelId) -> &str {
        &self.texts[label.0 as usize]
    }

    pub(super) fn actor_text(&self, actor: ActorId) -> &str {
        &self.texts[actor.0 as usize]
    }

    pub(super) fn key(&mut self, name: &ChoiceName) -> Key {
        let group = Group {
            site: name.site,
            label: self.label(&name.label),
            actor: self.actor(&name.actor),
            operation: name.operation,
        };
        Key { life: name.life, group, ordinal: name.ordinal }
    }

    pub(super) fn name(&self, key: &Key) -> ChoiceName {
        ChoiceName {
            life: key.life,
            site: key.group.site,
            label: self.label_text(key.group.label).to_owned(),
            actor: self.actor_text(key.group.actor).to_owned(),
            operation: key.group.operation,
            ordinal: key.ordinal,
        }
    }

    fn intern(&mut self, text: &str) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = u32::try_from(self.texts.len()).expect("a run has fewer than 2^32 labels and actors");
        let text: Arc<str> = Arc::from(text);
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }
}
