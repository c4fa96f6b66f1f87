//! One writer adds to a memtable while readers look things up without a lock. What a reader's position says is visible
//! must be there, whole, whatever order the processor gives the writer's stores.

use crate::Model;
use ironleaf::models::Generation;
use loom::thread;
use std::sync::Arc;

const UNPUBLISHED: &str = "indices are published after their elements";

/// Two batches of two objects each, and a reader that asks for both objects at the position it sees.
pub const BATCHES: Model = Model {
    name: "a visible batch is there whole and in its version",
    body: batches,
    sabotages: &[
        ("position-shown-first", "is visible and not there"),
        ("position-shown-relaxed", "is visible and not there"),
        ("slot-published-relaxed", UNPUBLISHED),
        ("version-linked-relaxed", UNPUBLISHED),
        ("length-published-relaxed", UNPUBLISHED),
    ],
};

fn batches() {
    let memtable = Arc::new(Generation::empty());
    let writer = thread::spawn({
        let memtable = memtable.clone();
        move || {
            memtable.set(1, &["a", "b"], "f", "1");
            memtable.set(2, &["a", "b"], "f", "2");
        }
    });
    let position = memtable.visible();
    let expected = (position > 0).then(|| position.to_string());
    for key in ["b", "a"] {
        let found = memtable.get(key, "f", position);
        assert_eq!(found, expected, "position {position} is visible and not there in {key}");
    }
    writer.join().expect("the writer ends");
    assert_eq!(memtable.visible(), 2);
    assert_eq!(memtable.all("f", 1), [Some("1".into()), Some("1".into())]);
}

/// The second object outgrows the table's first slots, and the third the vector's first bucket.
pub const GROWTH: Model = Model {
    name: "a table that grows keeps what readers know of",
    body: growth,
    sabotages: &[
        ("slots-published-empty", "an object that was there is gone"),
        ("slot-published-relaxed", UNPUBLISHED),
        ("length-published-relaxed", UNPUBLISHED),
    ],
};

fn growth() {
    let memtable = Arc::new(Generation::empty());
    let writer = thread::spawn({
        let memtable = memtable.clone();
        move || {
            memtable.set(1, &["a"], "f", "1");
            memtable.set(2, &["b", "c"], "f", "2");
        }
    });
    if memtable.visible() > 0 {
        assert_eq!(memtable.get("a", "f", 1).as_deref(), Some("1"), "an object that was there is gone");
        assert_eq!(memtable.all("f", 1)[0].as_deref(), Some("1"), "an object that was there is gone");
    }
    writer.join().expect("the writer ends");
    assert_eq!(memtable.all("f", 2).len(), 3);
}
