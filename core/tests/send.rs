//! Every public future may move between threads: a runtime with several of them takes it.

use ironleaf::{Cursor, Database, Options, Snapshot, WriteBatch, env::Env};

fn sendable<T: Send>(_: T) {}

#[expect(dead_code, reason = "is right once it compiles")]
fn futures_of_a_database(db: &Database, env: Env) {
    sendable(Database::open(env.clone(), "p", Options::default()));
    sendable(Database::open_path("p"));
    sendable(Database::open_read_only(env, "p", Options::default()));
    sendable(Database::open_path_read_only("p"));
    sendable(db.commit(WriteBatch::new()));
    sendable(db.set("k", "f", "v"));
    sendable(db.set_many("k", [("f", "v")]));
    sendable(db.put("k", "m"));
    sendable(db.put_many("k", ["m"]));
    sendable(db.remove("k", "f"));
    sendable(db.delete("k"));
    sendable(db.insert("k", "f", "v"));
    sendable(db.add("k", "m"));
    sendable(db.take("k", "f"));
    sendable(db.get("k", "f"));
    sendable(db.get_with("k", "f", <[u8]>::len));
    sendable(db.contains("k", "f"));
    sendable(db.len("k"));
    sendable(db.kind("k"));
    sendable(db.flush());
    sendable(db.checkpoint());
    sendable(db.check());
    sendable(db.close());
}

#[expect(dead_code, reason = "is right once it compiles")]
fn futures_of_views(db: &Database, snapshot: &Snapshot, cursor: &Cursor) {
    sendable(snapshot.get("k", "f"));
    sendable(snapshot.get_with("k", "f", <[u8]>::len));
    sendable(snapshot.contains("k", "f"));
    sendable(snapshot.len("k"));
    sendable(snapshot.kind("k"));
    sendable(snapshot.scan("k", ..).next());
    sendable(snapshot.resume(cursor).next());
    sendable(snapshot.keys("p").next());
    sendable(db.transaction().commit());
}

#[test]
fn handles_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Database>();
    shared::<Snapshot>();
    shared::<Options>();
    shared::<WriteBatch>();
}
