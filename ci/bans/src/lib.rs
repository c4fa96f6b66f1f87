//! Code that breaks every ban of `clippy.toml` once. Never built without the feature `violations`.
#![cfg(feature = "violations")]

use std::time::Duration;

/// Types whose order, time or files do not come from the seam.
pub fn types() {
    let map: std::collections::HashMap<u8, u8> = Default::default();
    for _ in &map {}
    let _set: std::collections::HashSet<u8> = Default::default();
    let _state = std::hash::RandomState::new();
    let _instant: Option<std::time::Instant> = None;
    let _time: Option<std::time::SystemTime> = None;
    let _file: Option<std::fs::File> = None;
    let _sender: Option<tokio::sync::watch::Sender<u8>> = None;
    let _receiver: Option<tokio::sync::watch::Receiver<u8>> = None;
}

/// Time and threads past the seam.
pub fn time_and_threads() {
    let _ = std::time::Instant::now();
    let _ = std::time::SystemTime::now();
    let _ = std::thread::spawn(|| {});
    let _ = std::thread::Builder::new().spawn(|| {});
    std::thread::sleep(Duration::ZERO);
    let _ = tokio::time::sleep(Duration::ZERO);
    let _ = tokio::spawn(async {});
    let _ = tokio::task::spawn(async {});
    let _ = tokio::task::spawn_blocking(|| {});
}

/// Files past the seam.
pub fn files() {
    let _ = std::fs::read("");
    let _ = std::fs::read_to_string("");
    let _ = std::fs::write("", "");
    let _ = std::fs::copy("", "");
    let _ = std::fs::metadata("");
    let _ = std::fs::remove_file("");
    let _ = std::fs::remove_dir_all("");
    let _ = std::fs::rename("", "");
    let _ = std::fs::create_dir("");
    let _ = std::fs::create_dir_all("");
    let _ = std::fs::read_dir("");
    let _ = std::fs::OpenOptions::new().open("");
}

/// Orders that depend on a hasher.
pub fn orders(map: &mut hashbrown::HashMap<u8, u8>, set: &mut hashbrown::HashSet<u8>) {
    let _ = map.iter().count();
    let _ = map.iter_mut().count();
    let _ = map.keys().count();
    let _ = map.values().count();
    let _ = map.values_mut().count();
    let _ = map.drain().count();
    map.retain(|_, _| true);
    let _ = set.iter().count();
    let _ = set.drain().count();
    set.retain(|_| true);
}

/// Branches that are taken at random.
pub async fn branches() {
    let (mut one, mut other) = (futures::future::ready(()), futures::future::ready(()));
    futures::select! {
        () = one => {},
        () = other => {},
    }
    tokio::select! {
        () = std::future::ready(()) => {},
        () = std::future::ready(()) => {},
    }
}

/// Lints that stand in the workspace's table.
pub fn lints(value: Option<u8>) {
    println!("{}", value.unwrap());
    eprintln!();
    dbg!(value);
    #[allow(unused_variables)]
    let nothing = ();
    if value.is_none() {
        todo!();
    }
    unsafe {}
}
