//! A checkpoint freezes the active memtable and later puts a root in the place of the frozen edits, while others read
//! and commit. At no moment may an edit be in none of the layers that a reader looks through.

use crate::Model;
use ironleaf::models::World;
use loom::thread;

/// A reader beside a whole checkpoint.
pub const LAYERS: Model = Model {
    name: "an edit is in some layer at every moment of a checkpoint",
    body: layers,
    sabotages: &[("frozen-dropped-first", "a committed edit is in no layer")],
};

fn layers() {
    let (world, mut checkpoints) = World::empty();
    world.set("a", "1");
    let checkpointer = thread::spawn(move || checkpoints.make());
    assert_eq!(world.get("a").as_deref(), Some("1"), "a committed edit is in no layer");
    checkpointer.join().expect("the checkpointer ends");
}

/// A committer beside a whole checkpoint.
pub const COMMITS: Model = Model {
    name: "a commit beside a freeze is in this checkpoint or in the next",
    body: commits,
    sabotages: &[("frozen-outside-the-log", "a commit beside a freeze is lost")],
};

fn commits() {
    let (world, mut checkpoints) = World::empty();
    world.set("a", "1");
    let checkpointer = thread::spawn(move || checkpoints.make());
    world.set("b", "2");
    checkpointer.join().expect("the checkpointer ends");
    assert_eq!(world.get("b").as_deref(), Some("2"), "a commit beside a freeze is lost");
}

/// A snapshot that is registered beside a checkpoint is handed a root, whenever it comes.
pub const SNAPSHOTS: Model = Model {
    name: "a snapshot stays as it is and holds no edits that pages have",
    body: snapshots,
    sabotages: &[("snapshot-taken-first", "a snapshot holds edits that pages have")],
};

fn snapshots() {
    let (world, mut checkpoints) = World::empty();
    world.set("a", "1");
    let checkpointer = thread::spawn(move || checkpoints.make());
    let snapshot = world.snapshot();
    assert_eq!(world.get_in(&snapshot, "a").as_deref(), Some("1"), "a snapshot has changed");
    checkpointer.join().expect("the checkpointer ends");
    assert!(!snapshot.holds_edits(), "a snapshot holds edits that pages have");
    assert_eq!(world.get_in(&snapshot, "a").as_deref(), Some("1"), "a snapshot has changed");
}
