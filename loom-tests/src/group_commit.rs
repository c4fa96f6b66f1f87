//! Those who commit at once share a write and a sync: whoever is polled drives them, and all are told when they have
//! ended.

use crate::Model;
use crate::wait::block_on;
use ironleaf::models::World;
use loom::thread::{self, JoinHandle};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

/// Two commits at once; both must be woken, and not before their commit is durable.
pub const FOLLOWERS: Model = Model {
    name: "everyone in a group commit returns, and is durable then",
    body: followers,
    sabotages: &[("joint-end-not-told", "deadlock"), ("joint-awaited-late", "deadlock")],
};

fn followers() {
    let (world, _) = World::empty();
    let other = thread::spawn({
        let world = world.clone();
        move || commit(&world, "a")
    });
    commit(&world, "b");
    other.join().expect("the other commit ends");
}

fn commit(world: &World, key: &str) {
    let position = block_on(world.set_synced(key, "1"));
    assert!(world.durable() >= position, "commit {position} was acknowledged and is not durable");
}

/// A commit that is polled once, and then kept and not polled, leaves the rest to who waits.
pub const KEPT: Model = Model {
    name: "a commit that is not polled on strands nobody",
    body: || beside_another(|other, _kept| other.join().expect("the other commit ends")),
    sabotages: &[("joint-awaited-late", "deadlock")],
};

/// The same for one that is dropped.
pub const DROPPED: Model = Model {
    name: "a commit that is dropped strands nobody",
    body: || {
        beside_another(|other, dropped| {
            drop(dropped);
            other.join().expect("the other commit ends");
        });
    },
    sabotages: &[("joint-awaited-late", "deadlock")],
};

type Commitment = Pin<Box<dyn Future<Output = u64>>>;

/// Begins a commit while another thread makes one.
fn beside_another(goes_on: fn(JoinHandle<()>, Commitment)) {
    let world = World::with_later_syncs();
    let other = thread::spawn({
        let world = world.clone();
        move || commit(&world, "a")
    });
    let mut begun: Commitment = Box::pin(async move { world.set_synced("b", "1").await });
    let _ = begun.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    goes_on(other, begun);
}
