//! `lab list`: what there is.

use crate::arguments::{Family, Runtime};
use crate::museum::museum_number;
use crate::{Misuse, Verdict};
use clap::ValueEnum;
use ironleaf::lab::{PLANTED, PROBES};
use ironleaf_model::Promise;
use ironleaf_sim::campaign::Summary;
use ironleaf_sim::choices::DELAYS;
use ironleaf_sim::disk::{DAMAGE_KINDS, FAULT_KINDS, Fault};

/// The engine's promises. Oracles and scenarios are named after them.
const PROMISES: [(&str, &str); 12] = [
    ("B1", "one order: commits have one total order, and a batch is atomic"),
    ("B2", "visibility: commits become visible in that order, at once"),
    ("B3", "durability: what was acknowledged at a level survives what the level names"),
    ("B4", "prefix: a recovered state is a prefix of the order, and does not roll back"),
    ("B5", "snapshots: a snapshot never changes, and a scan answers as of one position"),
    ("B6", "failed I/O poisons the database and is never hidden"),
    ("B7", "a full disk is an ordinary error that changes nothing"),
    ("B8", "damage is never served: it gives a typed error (not in campaigns yet)"),
    ("B9", "bad input gets a typed error and changes nothing"),
    ("B10", "memory stays within its budget"),
    ("B11", "space comes back, and check proves where every page is"),
    ("B12", "cancellation: a commit whose future is dropped is whole or absent"),
];

/// Prints the values of an option with their meaning.
fn values<V: ValueEnum>() {
    for value in V::value_variants() {
        let value = value.to_possible_value();
        let (name, help) = value.as_ref().map_or(("", None), |value| (value.get_name(), value.get_help()));
        say!("  {name:<14} {}", help.map(ToString::to_string).unwrap_or_default());
    }
}

/// Prints everything that has a name.
pub fn list() -> Result<Verdict, Misuse> {
    say!("families");
    values::<Family>();
    say!("runtimes (--runtime)");
    values::<Runtime>();
    say!("choices (the site of a deviation in a scenario)");
    let delays = format!("{:?} to {:?}", DELAYS[0], DELAYS[DELAYS.len() - 1]);
    for (site, meaning) in [
        ("wake", format!("a task that was woken runs later: pick i is the i-th delay, {delays}")),
        ("point", "a task is held at a labelled point of the engine: pick i is the i-th delay".to_owned()),
        ("latency", "an I/O takes a quarter to a hundred times as long as usual".to_owned()),
        ("crash", "the machine crashes: 1 is power loss, 2 the death of the process".to_owned()),
        ("power_loss", "what a power loss keeps: a class, then details".to_owned()),
        ("fault", "an operation of the disk fails, finds the disk full, or stalls".to_owned()),
    ] {
        say!("  {site:<14} {meaning}");
    }
    say!("outcomes of a power loss");
    for kind in Summary::loss_kinds() {
        say!("  {kind}");
    }
    say!(
        "faults (knobs; the family faults turns some of the first on in each seed, corruption some of the last four)"
    );
    for fault in Fault::all() {
        say!("  {:<14} {}", fault.name(), fault.meaning());
    }
    say!("kinds of fault (how often each had an effect is in the summary)");
    for kind in FAULT_KINDS.into_iter().chain(DAMAGE_KINDS) {
        say!("  {kind}");
    }
    say!("probes of the engine");
    for name in PROBES {
        say!("  {name}");
    }
    say!("promises (docs/guarantees.md)");
    for (code, meaning) in PROMISES {
        say!("  {code:<14} {meaning}");
    }
    say!("oracles (each failure is named after the one that found it)");
    for promise in Promise::ALL {
        say!("  {:<14} {}", promise.name(), promise.meaning());
    }
    say!("  {:<14} the engine neither panics, nor hangs, nor fails to open after a crash", "liveness");
    say!("planted bugs (cargo museum)");
    for bug in PLANTED {
        say!("  {:<32} {:<4} {}", bug.name, museum_number(bug), bug.mechanism);
    }
    Ok(Verdict::Clean)
}
