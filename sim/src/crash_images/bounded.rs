//! Every short scenario over a small alphabet.

use crate::scenario::{Client, EngineOptions, Finale, Numbered, Scenario};
use ironleaf_model::Operation;
use std::sync::Arc;

/// What the operations are taken from: each level, each kind of object, each way of ending one, batches, and what
/// moves data from memory to the log and from the log to pages.
pub const ALPHABET: [&str; 8] = [
    "set h a x",
    "set h b y*600 buffered",
    "put s m written",
    "remove h a",
    "delete h buffered",
    "batch [set h a z; put s n; set other f v] synced",
    "flush",
    "checkpoint",
];

/// How many scenarios have exactly `operations` operations.
#[must_use]
pub const fn bounded_count(operations: u32) -> u64 {
    (ALPHABET.len() as u64).pow(operations)
}

/// The scenario number `index` of those with exactly `operations` operations, by one client.
///
/// # Panics
/// If there are not so many.
#[must_use]
pub fn bounded(operations: u32, index: u64) -> Scenario {
    assert!(index < bounded_count(operations), "there are {} such scenarios", bounded_count(operations));
    let letters = ALPHABET.len() as u64;
    let digit = |place: u32| (index / letters.pow(operations - 1 - place) % letters) as usize;
    let texts = (0..operations).map(|place| ALPHABET[digit(place)]);
    let numbered = (1..).zip(texts).map(|(id, text)| {
        let operation: Operation = text.parse().expect("the alphabet is in the language of operations");
        Numbered { id, operation: Arc::new(operation) }
    });
    Scenario {
        title: format!("Bounded scenario {index} of {operations} operations"),
        promise: "every legal crash image recovers as promised".to_owned(),
        entropy: 0,
        madsim: None,
        finale: Finale::PowerLoss,
        finale_keep: None,
        settle: false,
        close: false,
        faults: Vec::new(),
        reopen_memory_bytes: Vec::new(),
        options: EngineOptions::default(),
        clients: vec![Client { operations: numbered.collect() }],
        crashes: Vec::new(),
        deviations: Vec::new(),
        expect: crate::scenario::Expectation::Pass,
    }
}
