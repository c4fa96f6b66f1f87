//! A recorded run is the same run again, and a recording that does not fit is noticed.

use super::*;

/// A made-up run: a few actors meet choices of every site, over three lives. Gives every pick.
fn run(choices: &Choices) -> Vec<u64> {
    let mut picks = Vec::new();
    for life in 0..3 {
        choices.set_life(life);
        for operation in 0..40 {
            choices.set_actor(if operation % 3 == 0 { "client 0" } else { "client 1" }, Some(operation / 8));
            picks.push(choices.pick(Site::Wake, "client", 9));
            picks.push(choices.pick(Site::Point, "commit", 9));
            picks.push(choices.pick(Site::Latency, "write", 8));
            picks.push(choices.pick(Site::Crash, "write submitted", 3));
        }
        choices.set_actor("machine", None);
        picks.push(choices.pick(Site::PowerLoss, "class", 12));
    }
    picks
}

fn recorded(deviations: Vec<Deviation>, strict: bool) -> Choices {
    Choices::new(Source::Recorded { deviations, strict })
}

fn deviation(label: &str, ordinal: u32, pick: u64) -> Deviation {
    let name = ChoiceName {
        life: 1,
        site: Site::Latency,
        label: label.to_owned(),
        actor: "client 0".to_owned(),
        operation: Some(0),
        ordinal,
    };
    Deviation { name, pick }
}

#[test]
fn replaying_the_recording_of_a_seeded_run_reproduces_every_pick() {
    for seed in 0..200 {
        let seeded = Choices::new(Source::Seeded { seed });
        let picks = run(&seeded);
        let replay = recorded(seeded.recorded(), true);
        assert_eq!(run(&replay), picks, "seed {seed}");
        assert_eq!(replay.recorded(), seeded.recorded());
        assert_eq!(replay.fired(), seeded.fired());
        assert_eq!(replay.unmet(), []);
        assert_eq!(replay.finish(), None);
    }
}

#[test]
fn the_default_course_picks_nothing_but_zeros() {
    let choices = Choices::new(Source::Default);
    assert!(run(&choices).iter().all(|pick| *pick == 0));
    assert_eq!(choices.recorded(), []);
}

#[test]
fn picks_stay_below_the_limit_and_every_alternative_is_met() {
    let mut met = [0_u64; 9];
    for seed in 0..50 {
        let choices = Choices::new(Source::Seeded { seed });
        for _ in 0..100 {
            met[usize::try_from(choices.pick(Site::Wake, "client", 9)).unwrap()] += 1;
            assert_eq!(choices.pick(Site::Wake, "client", 1), 0);
            assert_eq!(choices.pick(Site::PowerLoss, "drop", 1), 0);
        }
    }
    assert!(met.iter().all(|count| *count > 0), "{met:?}");
}

#[test]
fn strict_replay_reports_a_pick_that_is_not_offered() {
    let expected = deviation("write", 0, 8);
    let strict = recorded(vec![deviation("write", 1, 2), expected.clone()], true);
    run(&strict);
    let divergence = strict.finish().unwrap();
    assert_eq!(divergence, Divergence { expected, met: Met::Alternatives(8) });
    assert_eq!(
        divergence.to_string(),
        "expected life 1, latency \"write\" of \"client 0\" in operation 0, ordinal 0: pick 8; \
         met a choice between 8 alternatives there"
    );
}

#[test]
fn strict_replay_reports_the_first_deviation_that_is_never_met_once_its_life_is_over() {
    let expected = deviation("write", 7, 1);
    let strict = recorded(vec![deviation("write", 0, 1), expected.clone(), deviation("sync", 0, 1)], true);
    strict.set_life(1);
    strict.set_actor("client 0", Some(0));
    for _ in 0..3 {
        strict.pick(Site::Latency, "write", 8);
    }
    assert_eq!(strict.divergence(), None, "the life may still come to it");
    strict.set_life(2);
    assert_eq!(strict.divergence(), Some(Divergence { expected, met: Met::Occurrences(3) }));
    assert_eq!(strict.unmet(), [deviation("write", 7, 1), deviation("sync", 0, 1)]);
}

#[test]
fn tolerant_replay_drops_what_does_not_fit() {
    let tolerant = recorded(vec![deviation("write", 0, 99), deviation("write", 1, 2)], false);
    run(&tolerant);
    assert_eq!(tolerant.recorded(), [deviation("write", 1, 2)]);
    assert_eq!(tolerant.unmet(), [deviation("write", 0, 99)]);
    assert_eq!(tolerant.finish(), None);
}

#[test]
fn names_do_not_shift_when_other_operations_go() {
    let choices = Choices::new(Source::Recorded { deviations: vec![deviation("write", 0, 3)], strict: true });
    choices.set_life(1);
    choices.set_actor("client 1", Some(4));
    choices.pick(Site::Latency, "write", 8);
    choices.set_actor("client 0", None);
    choices.pick(Site::Latency, "write", 8);
    choices.set_actor("client 0", Some(0));
    assert_eq!(choices.pick(Site::Latency, "write", 8), 3);
}

#[test]
fn a_deviation_is_one_flat_table_and_unknown_keys_are_refused() {
    let text = toml::to_string(&deviation("write", 2, 5)).unwrap();
    assert_eq!(
        text,
        "life = 1\nsite = \"latency\"\nlabel = \"write\"\nactor = \"client 0\"\noperation = 0\nordinal = 2\npick = 5\n"
    );
    assert_eq!(toml::from_str::<Deviation>(&text).unwrap(), deviation("write", 2, 5));
    assert!(toml::from_str::<Deviation>(&format!("{text}colour = 1\n")).is_err());
}

#[test]
fn a_watched_site_shows_every_alternative() {
    let choices = Choices::new(Source::Default);
    choices.watch(Some(Site::PowerLoss));
    run(&choices);
    let watched = choices.take_watched();
    assert_eq!(watched.len(), 3);
    assert!(watched.iter().all(|choice| choice.limit == 12 && choice.pick == 0));
    assert_eq!(watched[2].name.life, 2);
}

#[test]
fn seeds_differ_in_density_and_most_runs_crash() {
    let (mut undelayed, mut crashes) = (0, 0);
    for seed in 0..400 {
        let choices = Choices::new(Source::Seeded { seed });
        choices.set_crash_points(8);
        run(&choices);
        let fired = choices.fired();
        undelayed += u64::from(!fired.contains_key(&(Site::Wake, "client".to_owned())));
        crashes += fired.get(&(Site::Crash, "write submitted".to_owned())).copied().unwrap_or(0);
    }
    assert!((30..90).contains(&undelayed), "one seed in eight has no delays: {undelayed} of 400");
    assert!((600..1000).contains(&crashes), "about two crashes a seed: {crashes} in 400");
}
