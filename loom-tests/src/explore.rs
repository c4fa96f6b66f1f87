//! Runs a model to the end, or to its first failure.

use crate::Model;
use ironleaf::sabotage;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Preemptions at which most published races show, and the models still end within seconds.
const PREEMPTIONS: usize = 3;
/// Operations of one run; far more than any model has.
const OPERATIONS_MAX: usize = 50_000;

/// What came of a model.
#[derive(Debug)]
pub struct Explored {
    /// Interleavings that were run.
    pub interleavings: usize,
    /// What the first that failed said.
    pub failure: Option<String>,
}

thread_local! {
    /// What panicked first in the model that runs on this thread, and where: all else follows from it.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The panic hook that models need: notes and does not print, for a sabotaged model panics as it should.
pub fn note_panic(panic: &PanicHookInfo<'_>) {
    PANIC.with_borrow_mut(|noted| _ = noted.get_or_insert_with(|| panic.to_string()));
}

/// Runs `model` under every interleaving, with `sabotage` if there is one.
///
/// # Panics
/// If there is no such sabotage, or [`note_panic`] is not the panic hook.
#[must_use]
pub fn explore(model: &Model, sabotage: Option<&str>) -> Explored {
    assert!(sabotage::activate(sabotage), "no sabotage is called {sabotage:?}");
    let mut builder = loom::model::Builder::new();
    builder.max_branches = OPERATIONS_MAX;
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    let interleavings = Arc::new(AtomicUsize::new(0));
    let (counted, body) = (interleavings.clone(), model.body);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            body();
        });
    }));
    assert!(sabotage::activate(None), "none is always there");
    let noted = PANIC.take();
    let failure = outcome.err().map(|_| noted.expect("note_panic is the panic hook"));
    Explored { interleavings: interleavings.load(Ordering::Relaxed), failure }
}
