//! Does what failed under madsim fail on the laboratory's executor as well?
//!
//! There a schedule is a list that can be cut down and read. The recording's choices have the same names on both, so
//! most of them find their place; if they do not bring the failure about, a few hundred fresh schedules may.

use crate::choices::Source;
use crate::runner::{RunOptions, run};
use crate::scenario::Scenario;
use std::sync::Arc;

/// Fresh schedules that are tried.
const SCHEDULES: u64 = 300;

/// The scenario of a run under madsim as it fails, in the same way, on the laboratory's executor; `None` for a scenario
/// that ran there in the first place, or if nothing brought it about.
pub(super) fn fails_elsewhere(
    recorded: &Scenario,
    fingerprint: &str,
    may_go_on: impl Fn() -> bool,
) -> Option<Scenario> {
    let seed = recorded.madsim?;
    let scenario = Arc::new(Scenario { madsim: None, deviations: Vec::new(), ..recorded.clone() });
    let replay = Source::Recorded { deviations: recorded.all_deviations(), strict: false };
    let fresh = (0..SCHEDULES).map(|offset| Source::Seeded { seed: seed.wrapping_add(offset) });
    for source in std::iter::once(replay).chain(fresh) {
        if !may_go_on() {
            return None;
        }
        let report = run(&scenario, source, RunOptions::default());
        if report.fingerprint() == Some(fingerprint) {
            let deviations = report.recorded();
            return Some(Scenario { deviations, ..Arc::unwrap_or_clone(scenario) });
        }
    }
    None
}
