use super::*;

const SCENARIO: &str = r#"title = "a synced write survives"
promise = "B3 durability"

[[clients]]
operations = ["set k1 f1 v1", "get k1 f1", "17: flush", "check"]

[[clients]]
operations = ['set k2 f1 "a b"']

[[crashes]]
kind = "power_loss"
keep = "none"
after_operation = 17

[[crashes]]
kind = "process_death"
during = "sync submitted"
actor = "client-0"
operation = 18
occurrence = 2
"#;

fn read(text: &str) -> Scenario {
    Scenario::from_toml("test.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn operations_are_numbered_by_client_and_by_hand() {
    let scenario = read(SCENARIO);
    let ids = |client: usize| scenario.clients[client].operations.iter().map(|it| it.id).collect::<Vec<_>>();
    assert_eq!((ids(0), ids(1)), (vec![1, 2, 17, 18], vec![1001]));
    assert_eq!(scenario.owner(1001), Some(1));
    assert_eq!((scenario.finale, &scenario.expect), (Finale::PowerLoss, &Expectation::Pass));
}

#[test]
fn planned_crashes_stand_for_deviations() {
    let deviations: Vec<String> = read(SCENARIO).all_deviations().iter().map(ToString::to_string).collect();
    assert_eq!(
        deviations,
        [
            "life 0, crash \"ack\" of \"client-0\" in operation 17, ordinal 0: pick 1",
            "life 0, power_loss \"class\" of \"machine\", ordinal 0: pick 1",
            "life 1, crash \"sync submitted\" of \"client-0\" in operation 18, ordinal 1: pick 2",
        ]
    );
}

#[test]
fn every_keep_names_a_class_of_the_disk() {
    for keep in [
        Keep::None,
        Keep::AllButNewest,
        Keep::OnlyNewest,
        Keep::NewestTorn,
        Keep::NoEntries,
        Keep::NoLengths,
        Keep::NotInFlight,
    ] {
        assert!(kept(0, CrashKind::PowerLoss, Some(keep)).is_some_and(|it| it.pick > 0), "{keep:?}");
    }
    assert_eq!(kept(0, CrashKind::PowerLoss, Some(Keep::All)), None);
    assert_eq!(kept(0, CrashKind::ProcessDeath, Some(Keep::None)), None);
}

#[test]
fn a_scenario_reads_back_as_it_was_saved() {
    let written = read(SCENARIO);
    assert_eq!(read(&written.to_toml()), written);
    for seed in 0..100 {
        let mut scenario = Scenario::generate(seed);
        scenario.deviations = written.all_deviations();
        scenario.expect = Expectation::Failure {
            fingerprint: "B3 durability".to_owned(),
            bug: Some("ack-early".to_owned()),
        };
        assert_eq!(read(&scenario.to_toml()), scenario, "seed {seed}");
    }
}

#[test]
fn a_saved_scenario_is_made_for_reading() {
    let mut scenario = read(SCENARIO);
    scenario.deviations = scenario.all_deviations().split_off(2);
    scenario.crashes.clear();
    let text = scenario.to_toml();
    let expected = r#"
[[clients]]
operations = [
    "set k1 f1 v1",
    "get k1 f1",
    "17: flush",
    "check",
]
"#;
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("life = 1\nsite = \"crash\"\nlabel = \"sync submitted\"\n"), "{text}");
}

#[test]
fn errors_name_file_line_column_and_what_is_expected() {
    for (from, to, expected) in [
        ("promise =", "promize =", "test.toml:2:1: unknown field `promize`, expected one of"),
        ("title = \"a synced write survives\"\n", "", "test.toml:1:1: missing field `title`"),
        (
            "\"get k1 f1\"",
            "\"get k1\"",
            "test.toml:5:31: character 7 of the operation: expected a field, found the end of the line: get k1",
        ),
        ("\"17: flush\"", "\"1: flush\"", "test.toml:5:44: another operation has the number 1"),
        ("after_operation = 17", "after_operation = 99", "test.toml:13:19: there is no operation 99"),
        ("after_operation = 17\n", "", "test.toml:1:1: a crash has `after_operation` or `during`"),
        ("actor = \"client-0\"\n", "", "test.toml:17:10: a crash with `during` names its `actor`"),
        (
            "\"power_loss\"",
            "\"powerloss\"",
            "test.toml:11:8: unknown variant `powerloss`, expected `power_loss` or `process_death`",
        ),
        ("keep = \"none\"", "keep = 3", "test.toml:12:8: "),
        (
            "[[clients]]",
            "[options]\npage_bytez = 3\n[[clients]]",
            "test.toml:5:1: unknown field `page_bytez`, expected one of",
        ),
        (
            "occurrence = 2",
            "occurrence = 2\n[expect]\nbug = \"x\"",
            "a planted `bug` goes with the `failure` that it causes",
        ),
        ("[[clients]]", "[[clients", "test.toml:4:10: "),
        (
            "\"sync submitted\"",
            "\"sync begun\"",
            "test.toml:17:10: nothing is called \"sync begun\"; `during` is \"ack\", \"abandoned\", \"write submitted\", \"write completed\"",
        ),
        (
            "\"client-0\"",
            "\"client-7\"",
            "test.toml:17:10: there is no client-7; the first of the 2 clients is client-0",
        ),
        (
            "[[clients]]",
            "[options]\nmemory_bytes = 10\n[[clients]]",
            "test.toml:4:1: option memory_bytes is 10",
        ),
        (
            "[[clients]]",
            "[options]\nmemory_bytes = -1\n[[clients]]",
            "expected a whole number that is not negative",
        ),
        (
            "occurrence = 2",
            "occurrence = 2\n[expect]\nfailure = \"B3\"",
            "no failure is called \"B3\"; there are \"B1 order\"",
        ),
        (
            "occurrence = 2",
            "occurrence = 2\n[expect]\noutcome = \"fail\"",
            "expected `pass`; a scenario that is to fail names its `failure`",
        ),
    ] {
        let text = SCENARIO.replacen(from, to, 1);
        assert_ne!(text, SCENARIO);
        let error = Scenario::from_toml("test.toml", &text).expect_err(to).to_string();
        assert!(error.contains(expected), "{error}\ndoes not contain\n{expected}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_seed_always_stands_for_the_same_scenario() {
    assert_eq!(Scenario::generate(3), Scenario::generate(3));
    assert_ne!(Scenario::generate(3), Scenario::generate(4));
    for seed in 0..200 {
        Scenario::generate(seed).options.to_options().validate().expect("generated options are valid");
    }
}
