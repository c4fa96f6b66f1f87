//! The events that a subscriber gets are those of the table in the reference, with their levels and fields.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]

mod refusing_disk;

use ironleaf::blocking::Database;
use ironleaf::env::{DiskErrorKind, Env, os};
use ironleaf::{Durability, Options};
use refusing_disk::{Call, RefusingDisk};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

type Events = BTreeMap<String, (String, BTreeSet<String>)>;

/// Keeps level and fields of every event by its message.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Events>>);

#[derive(Default)]
struct Fields {
    message: String,
    names: BTreeSet<String>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.names.insert(field.name().to_owned());
        }
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ironleaf")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().to_string().to_lowercase();
        self.0.lock().unwrap().insert(fields.message, (level, fields.names));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

const WORKS: u8 = 0;
const IS_FULL: u8 = 1;
const FAILS: u8 = 2;

/// The rows of the table of events: name, level, fields.
fn table() -> Events {
    let reference = include_str!("../../docs/reference.md");
    let section = reference.split("\n## ").find(|section| section.starts_with("Events")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let fields = cells[3].split(", ").map(|field| field.trim_matches('`').to_owned()).collect();
        (cells[1].trim_matches('`').to_owned(), (cells[2].to_owned(), fields))
    })
    .collect()
}

#[test]
fn the_table_of_events_has_what_a_subscriber_gets() {
    let collector = Collector::default();
    tracing::subscriber::set_global_default(collector.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let machine = runtime.block_on(async { os::environment().unwrap() });
    let switch = Arc::new(AtomicU8::new(WORKS));
    let refuse = {
        let switch = switch.clone();
        move |call| match (switch.load(SeqCst), call) {
            (IS_FULL, Call::Create) => Some(DiskErrorKind::Full),
            (FAILS, Call::SyncDirectory) => Some(DiskErrorKind::Io),
            _ => None,
        }
    };
    let disk = Arc::new(RefusingDisk { disk: machine.disk.clone(), refuse });
    let env = Env { disk, ..machine };
    let options = Options {
        memory_bytes: 256 << 10,
        log_segment_bytes: 16 << 10,
        page_bytes: 1 << 10,
        page_segment_bytes: 16 << 10,
        durability: Durability::Written,
        ..Options::default()
    };
    let open =
        || runtime.block_on(ironleaf::Database::open(env.clone(), dir.path().join("db"), options.clone()));
    let db = open().unwrap();
    runtime.block_on(async {
        for n in 0..600u32 {
            db.set("k", (n % 150).to_le_bytes(), [n as u8; 100]).await.unwrap();
            if n % 50 == 0 {
                db.checkpoint().await.unwrap();
            }
        }
        for n in 0..400u32 {
            db.set("more than a page segment", n.to_le_bytes(), [1; 100]).await.unwrap();
        }
        switch.store(IS_FULL, SeqCst);
        // A checkpoint that finds the disk full spends the reserve, and is as far as before.
        assert!(db.checkpoint().await.is_err());
        switch.store(WORKS, SeqCst);
        db.checkpoint().await.unwrap();
        while db.set("k", "after", "v").await.is_err() {}
        db.close().await.unwrap();
    });
    let db = open().unwrap();
    runtime.block_on(async {
        switch.store(FAILS, SeqCst);
        // The next log segment, or the next page segment, needs its name to be durable.
        for n in 0..400u32 {
            let _ = db.set("more than a page segment", n.to_le_bytes(), [2; 100]).await;
        }
        assert!(db.checkpoint().await.is_err());
        let _ = db.close().await;
    });
    drop(Database::open_read_only(dir.path().join("db"), Options::default()));
    assert_eq!(*collector.0.lock().unwrap(), table());
}
