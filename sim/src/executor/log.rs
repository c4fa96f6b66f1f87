//! The rolling digest of everything that happens, and the readable trace of it.

use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What happened. The discriminants are part of the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum EventKind {
    Spawn = 1,
    Poll = 2,
    Delay = 3,
    Abort = 4,
    Crash = 5,
    Submit = 6,
    Complete = 7,
    Note = 8,
    Restart = 9,
    Loss = 10,
    Edit = 11,
    Send = 12,
}

/// Digest, count and trace of one machine's events, over all its lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog {
    digest: u64,
    events: u64,
    life: u32,
    trace: Option<Vec<String>>,
}

impl EventLog {
    pub(crate) fn new(trace: bool) -> Self {
        Self { trace: trace.then(Vec::new), ..Self::default() }
    }

    /// Adds an event. `line` gives its actor and its description, and is asked only where there is a trace.
    pub(crate) fn record<'a>(
        &mut self,
        kind: EventKind,
        words: [u64; 3],
        now: u64,
        line: impl FnOnce() -> (&'a str, String),
    ) {
        let mut bytes = [0; 40];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip([kind as u64, now, words[0], words[1], words[2]]) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        self.digest = xxh3_64_with_seed(&bytes, self.digest);
        self.events += 1;
        if let Some(trace) = &mut self.trace {
            let (actor, detail) = line();
            trace.push(format!("{} {:>12?} {actor}: {detail}", self.life, Duration::from_nanos(now)));
        }
    }

    pub(crate) const fn set_life(&mut self, life: u32) {
        self.life = life;
    }

    pub(crate) const fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) const fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn trace(&self) -> &[String] {
        self.trace.as_deref().unwrap_or_default()
    }

    pub(crate) const fn is_traced(&self) -> bool {
        self.trace.is_some()
    }
}
