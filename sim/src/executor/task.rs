//! Tasks and their wakers.

use super::{Actor, Executor};
use crate::choices::{ActorId, LabelId};
use ironleaf::env::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// A task of one life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskId(usize);

impl TaskId {
    pub(super) const fn new(index: usize) -> Self {
        Self(index)
    }

    pub(super) const fn index(self) -> usize {
        self.0
    }

    pub(super) const fn word(self) -> u64 {
        self.0 as u64
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.0)
    }
}

/// ```text
///              wake                poll               Pending
///   Idle ─────────────▶ Scheduled ─────▶ Running ──────────────▶ Idle
///                           ▲               │ wake                 
///                           │   Pending     ▼          
///                           └───────── RunningWoken         Ready, panic, abort ──▶ Done
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskState {
    Idle,
    Scheduled,
    Running,
    RunningWoken,
    Done,
}

pub(super) struct Task {
    pub(super) name: String,
    actor: ActorId,
    /// The label of its wake-ups: what tasks of this sort have in common.
    pub(super) kind: LabelId,
    pub(super) operation: Option<u32>,
    pub(super) state: TaskState,
    /// Absent while it is polled, and once it is done.
    pub(super) future: Option<BoxFuture<'static, ()>>,
    pub(super) waker: Waker,
}

impl Task {
    pub(super) fn new(
        name: String,
        actor: ActorId,
        kind: LabelId,
        future: BoxFuture<'static, ()>,
        waker: Waker,
    ) -> Self {
        Self { name, actor, kind, operation: None, state: TaskState::Idle, future: Some(future), waker }
    }

    pub(super) fn actor(&self) -> Actor {
        (self.actor, self.operation)
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == TaskState::Done
    }
}

/// The names of the tasks of one life.
#[derive(Default)]
pub(crate) struct TaskNames(BTreeMap<String, u32>);

impl TaskNames {
    /// `name`, or `name#2` for the second task of that name, and so on.
    pub(crate) fn unique(&mut self, name: &str) -> String {
        match self.0.get_mut(name) {
            Some(count) => {
                *count += 1;
                format!("{name}#{count}")
            }
            None => {
                self.0.insert(name.to_owned(), 1);
                name.to_owned()
            }
        }
    }
}

/// The task's name without its number: "client" of "client 3" and of "client#2".
pub(crate) fn kind_of(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = stem.trim_end_matches([' ', '#', '-', '_', '.']);
    if stem.is_empty() { name } else { stem }
}

/// Wakes one task. It is `Send` and `Sync`, as a `Waker` has to be, although one thread runs everything.
pub(super) struct TaskWaker {
    executor: Arc<Executor>,
    task: TaskId,
}

impl TaskWaker {
    pub(super) const fn new(executor: Arc<Executor>, task: TaskId) -> Self {
        Self { executor, task }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.executor.wake(self.task);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.executor.wake(self.task);
    }
}
