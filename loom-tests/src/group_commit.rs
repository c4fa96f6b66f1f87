//! Of those who commit at once, one leads: it writes and syncs for all, and tells the others when that has landed.

use crate::Model;
use crate::wait::block_on;
use ironleaf::models::World;
use loom::thread;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

/// Two commits at once; whoever does not lead must be woken, and not before its commit is durable.
pub const FOLLOWERS: Model = Model {
    name: "everyone in a group commit returns, and is durable then",
    body: followers,
    sabotages: &[("landing-not-told", "deadlock")],
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

/// A leader that is dropped on its way leaves the rest to who waits.
pub const ORPHANS: Model = Model {
    name: "a dropped leader of a group commit strands nobody",
    body: orphans,
    sabotages: &[("orphan-forgotten", "deadlock")],
};

fn orphans() {
    let world = World::with_later_syncs();
    let other = thread::spawn({
        let world = world.clone();
        move || commit(&world, "a")
    });
    {
        let mut dropped = pin!(world.set_synced("b", "1"));
        let _ = dropped.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    other.join().expect("the other commit ends");
}
