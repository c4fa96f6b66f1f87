//! `lab list`: what there is.

use crate::arguments::Family;
use crate::measure::probes;
use crate::museum::museum_number;
use crate::{Misuse, Verdict};
use clap::ValueEnum;
use ironleaf::lab::PLANTED;
use ironleaf_model::Promise;
use ironleaf_sim::campaign::Summary;
use ironleaf_sim::choices::DELAYS;

/// Prints everything that has a name.
pub fn list() -> Result<Verdict, Misuse> {
    println!("families");
    for family in Family::value_variants() {
        let value = family.to_possible_value();
        let (name, help) = value.as_ref().map_or(("", None), |value| (value.get_name(), value.get_help()));
        println!("  {name:<14} {}", help.map(ToString::to_string).unwrap_or_default());
    }
    println!("choices (the site of a deviation in a scenario)");
    let delays = format!("{:?} to {:?}", DELAYS[0], DELAYS[DELAYS.len() - 1]);
    for (site, meaning) in [
        ("wake", format!("a task that was woken runs later: pick i is the i-th delay, {delays}")),
        ("point", "a task is held at a labelled point of the engine: pick i is the i-th delay".to_owned()),
        ("latency", "an I/O takes a quarter to a hundred times as long as usual".to_owned()),
        ("crash", "the machine crashes: 1 is power loss, 2 the death of the process".to_owned()),
        ("power_loss", "what a power loss keeps: a class, then details".to_owned()),
        ("fault", "an I/O fails".to_owned()),
    ] {
        println!("  {site:<14} {meaning}");
    }
    println!("outcomes of a power loss");
    for kind in Summary::loss_kinds() {
        println!("  {kind}");
    }
    println!("probes of the engine");
    for (name, _) in probes() {
        println!("  {name}");
    }
    println!("promises that are checked (docs/guarantees.md)");
    for promise in Promise::ALL {
        println!("  {:<14} {}", promise.name(), promise.meaning());
    }
    println!("  {:<14} the engine neither panics, nor hangs, nor fails to open after a crash", "liveness");
    println!("planted bugs (cargo museum)");
    for bug in PLANTED {
        println!("  {:<32} {:<4} {}", bug.name, museum_number(bug), bug.mechanism);
    }
    Ok(Verdict::Clean)
}
