//! Everything that could go more than one way is a named choice.
//!
//! A run is its default course plus a finite list of deviations from it. Whoever needs a decision (when does a woken
//! task run, how long does a write take, what does a power loss keep) asks [`Choices::pick`]; 0 is the undisturbed
//! course. The answers come from a [`Source`]: nothing but zeros, a seeded policy, a
//! recorded list, or an enumerator.
//!
//! A choice is named by where it is made rather than by when: (life, site, label, actor, operation, ordinal within
//! these). So a recorded deviation still finds its place after operations were removed or code was changed.

mod names;
mod policy;
mod source;

#[cfg(test)]
mod tests;

pub use names::{ChoiceName, Deviation, Site};
pub use policy::{ABANDONED, DELAYS};
pub use source::{Divergence, Met, Source};

pub(crate) use names::{ActorId, LabelId};

use names::{Group, Key, Names};
use source::Course;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The choices of one run, shared by everything that makes them. Cheap to clone.
#[derive(Clone)]
pub struct Choices(Arc<Mutex<Inner>>);

struct Inner {
    course: Course,
    names: Names,
    life: u32,
    actor: ActorId,
    operation: Option<u32>,
    ordinals: names::Map<Group, u32>,
    taken: Vec<(Key, u64)>,
    watched: Option<Site>,
    watched_picks: Vec<(Key, u64, u64)>,
}

/// A choice that came up at a site that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Where it came up.
    pub name: ChoiceName,
    /// How many alternatives it had, the default included.
    pub limit: u64,
    /// What was picked.
    pub pick: u64,
}

impl fmt::Debug for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("Choices").field("life", &inner.life).field("taken", &inner.taken.len()).finish()
    }
}

impl Choices {
    /// The choices of a run that has not started.
    #[must_use]
    pub fn new(source: Source) -> Self {
        let mut names = Names::default();
        let actor = names.actor("");
        let course = Course::new(source, &mut names);
        Self(Arc::new(Mutex::new(Inner {
            course,
            names,
            life: 0,
            actor,
            operation: None,
            ordinals: names::Map::default(),
            taken: Vec::new(),
            watched: None,
            watched_picks: Vec::new(),
        })))
    }

    /// Decides between `limit` alternatives at `site`; 0 is the undisturbed course, and every pick is below `limit`.
    pub fn pick(&self, site: Site, label: &str, limit: u64) -> u64 {
        let mut inner = self.lock();
        let label = inner.names.label(label);
        let (actor, operation) = (inner.actor, inner.operation);
        inner.pick(site, label, actor, operation, limit)
    }

    /// The same for an actor that is not the current one.
    pub(crate) fn pick_for(
        &self,
        (actor, operation): (ActorId, Option<u32>),
        site: Site,
        label: LabelId,
        limit: u64,
    ) -> u64 {
        self.lock().pick(site, label, actor, operation, limit)
    }

    /// Starts to name choices after `life`: how often the machine has been started before in this run.
    pub fn set_life(&self, life: u32) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        if life == inner.life {
            return;
        }
        inner.course.end_life(inner.life, &inner.names, &inner.ordinals);
        inner.course.begin_life(life);
        inner.ordinals.clear();
        inner.life = life;
    }

    /// Names the actor, and the operation within it, that the following choices belong to.
    pub fn set_actor(&self, actor: &str, operation: Option<u32>) {
        let mut inner = self.lock();
        inner.actor = inner.names.actor(actor);
        inner.operation = operation;
    }

    pub(crate) fn set_actor_id(&self, actor: ActorId, operation: Option<u32>) {
        let mut inner = self.lock();
        inner.actor = actor;
        inner.operation = operation;
    }

    pub(crate) fn actor_id(&self, name: &str) -> ActorId {
        self.lock().names.actor(name)
    }

    pub(crate) fn actor_text(&self, actor: ActorId) -> String {
        self.lock().names.actor_text(actor).to_owned()
    }

    pub(crate) fn label_id(&self, label: &str) -> LabelId {
        self.lock().names.label(label)
    }

    /// Tells the seeded policy how many crash points a life about has; crashes are spread log-uniformly over them.
    /// Without a word from the caller it assumes 1000.
    pub fn set_crash_points(&self, crash_points: u64) {
        self.lock().course.set_crash_points(crash_points);
    }

    /// Every deviation so far, in the order met. As a [`Source::Recorded`] it makes the same run again.
    #[must_use]
    pub fn recorded(&self) -> Vec<Deviation> {
        let inner = self.lock();
        inner.taken.iter().map(|(key, pick)| Deviation { name: inner.names.name(key), pick: *pick }).collect()
    }

    /// The deviations of a recorded source that the run has not met, in the order of the list.
    #[must_use]
    pub fn unmet(&self) -> Vec<Deviation> {
        let inner = self.lock();
        inner.course.unmet(&inner.names)
    }

    /// The first deviation that did not fit so far, where replay is strict. A life that is not over may still meet
    /// its deviations; [`finish`](Self::finish) counts it as over.
    #[must_use]
    pub fn divergence(&self) -> Option<Divergence> {
        self.lock().course.divergence()
    }

    /// Ends the last life and gives the first deviation that did not fit, where replay is strict.
    #[must_use]
    pub fn finish(&self) -> Option<Divergence> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.course.end_life(inner.life, &inner.names, &inner.ordinals);
        inner.course.divergence()
    }

    /// How often each kind of deviation was taken.
    #[must_use]
    pub fn fired(&self) -> BTreeMap<(Site, String), u64> {
        let inner = self.lock();
        let mut fired = BTreeMap::new();
        for (key, _) in &inner.taken {
            *fired.entry((key.group.site, key.group.label)).or_insert(0) += 1;
        }
        fired
            .into_iter()
            .map(|((site, label), count)| ((site, inner.names.label_text(label).to_owned()), count))
            .collect()
    }

    /// From now on keeps every choice that comes up at `site`, zero picks included; `None` stops. An enumerator
    /// learns from it which alternatives there are.
    pub fn watch(&self, site: Option<Site>) {
        self.lock().watched = site;
    }

    /// What came up at the watched site, in the order met; empties the list.
    #[must_use]
    pub fn take_watched(&self) -> Vec<Watched> {
        let mut inner = self.lock();
        let picks = std::mem::take(&mut inner.watched_picks);
        picks
            .into_iter()
            .map(|(key, limit, pick)| Watched { name: inner.names.name(&key), limit, pick })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn pick(
        &mut self,
        site: Site,
        label: LabelId,
        actor: ActorId,
        operation: Option<u32>,
        limit: u64,
    ) -> u64 {
        let group = Group { site, label, actor, operation };
        let counter = self.ordinals.entry(group).or_insert(0);
        let key = Key { life: self.life, group, ordinal: *counter };
        *counter += 1;
        let pick = self.course.pick(&key, limit, &self.names);
        if pick != 0 {
            self.taken.push((key, pick));
        }
        if self.watched == Some(site) {
            self.watched_picks.push((key, limit, pick));
        }
        pick
    }
}
