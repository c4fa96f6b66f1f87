use super::*;
use crate::choices::{ChoiceName, Site};

fn deviation(ordinal: u32) -> Deviation {
    let name = ChoiceName {
        life: 0,
        site: Site::Wake,
        label: "client".to_owned(),
        actor: "client-0".to_owned(),
        operation: Some(1),
        ordinal,
    };
    Deviation { name, pick: 3 }
}

fn scenario() -> Scenario {
    let mut scenario =
        (0..).map(Scenario::generate).find(|it| it.operation_count() > 120).expect("a long one");
    scenario.deviations = (0..200).map(deviation).collect();
    scenario
}

fn holds(scenario: &Scenario, word: &str) -> bool {
    scenario
        .clients
        .iter()
        .flat_map(|client| &client.operations)
        .any(|it| it.operation.to_string().contains(word))
}

#[test]
fn what_does_not_matter_goes() {
    let scenario = scenario();
    assert!(holds(&scenario, "checkpoint") && holds(&scenario, "set-many"));
    let mut told = 0;
    let shrunk = shrink_with(
        &scenario,
        ShrinkLimits::default(),
        |candidate, deviations| {
            let fails = holds(candidate, "checkpoint")
                && holds(candidate, "set-many")
                && [17, 93].iter().all(|ordinal| deviations.contains(&deviation(*ordinal)));
            fails.then(|| deviations.to_vec())
        },
        |_| {
            told += 1;
            true
        },
    );
    assert_eq!(shrunk.scenario.operation_count(), 2);
    assert_eq!(shrunk.scenario.deviations, [deviation(17), deviation(93)]);
    assert!(!shrunk.scenario.close && shrunk.scenario.finale == Finale::None);
    assert!(shrunk.replays < 400 && told > 0, "{} replays", shrunk.replays);
    let many = shrunk.scenario.clients.iter().flat_map(|client| &client.operations);
    let many =
        many.map(|it| it.operation.to_string()).find(|text| text.contains("set-many")).expect("it matters");
    let (from, to) = many
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .and_then(|(range, _)| range.split_once(".."))
        .expect("a range");
    assert_eq!(to.parse::<u32>().ok(), from.parse::<u32>().ok().map(|from| from + 1), "{many}");
}

#[test]
fn deviations_that_a_run_does_not_meet_go_at_once() {
    let mut scenario = scenario();
    scenario.clients.truncate(1);
    scenario.clients[0].operations.truncate(1);
    let mut most = usize::MAX;
    let shrunk = shrink_with(
        &scenario,
        ShrinkLimits::default(),
        |candidate, deviations| {
            most = most.min(deviations.len());
            let met = deviations.iter().filter(|it| it.name.ordinal % 50 == 0).cloned().collect();
            (candidate.operation_count() == 1).then_some(met)
        },
        |_| true,
    );
    assert_eq!(shrunk.scenario.deviations, []);
    assert!(shrunk.replays < 30, "{} replays", shrunk.replays);
}

#[test]
fn shrinking_ends_when_it_is_told_to() {
    let all = |_: &Arc<Scenario>, deviations: &[Deviation]| Some(deviations.to_vec());
    let stopped = shrink_with(&scenario(), ShrinkLimits::default(), all, |_| false);
    assert_eq!(stopped.replays, 1);
    let none = |_: &Arc<Scenario>, _: &[Deviation]| None;
    let bounded = shrink_with(&scenario(), ShrinkLimits { replays_max: 7 }, none, |_| true);
    assert_eq!(bounded.replays, 7);
    assert_eq!(bounded.scenario, scenario());
}
