use super::*;
use crate::generator::{Bounds, generate};
use crate::operation::Operation;

fn model() -> Model {
    Model::new(Limits { value_bytes_max: 100 })
}

/// Applies a line such as `batch [set a f v]`.
fn apply(model: &mut Model, line: &str) -> Result<Vec<Option<Vec<u8>>>, Refusal> {
    match line.parse::<Operation>() {
        Ok(Operation::Write(write)) => model.apply(&write.edits),
        other => panic!("{line}: {other:?}"),
    }
}

fn answer(model: &Model, line: &str) -> Answer {
    match line.parse::<Operation>() {
        Ok(Operation::Read(read)) => {
            let answer = model.answer(&read);
            assert!(model.agrees(&read, &answer), "{line}");
            answer
        }
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_key_keeps_its_kind_until_its_last_name_goes() {
    let mut model = model();
    assert_eq!(apply(&mut model, "set k f v"), Ok(vec![]));
    assert_eq!(apply(&mut model, "put k m"), Err(Refusal::WrongKind));
    assert_eq!(answer(&model, "kind k"), Answer::Kind(Some(Kind::Hash)));
    assert_eq!(apply(&mut model, "remove k f"), Ok(vec![]));
    assert_eq!(answer(&model, "kind k"), Answer::Kind(None));
    assert_eq!(apply(&mut model, "put k m"), Ok(vec![]));
    assert_eq!(answer(&model, "get k m"), Answer::WrongKind);
    assert_eq!(answer(&model, "contains k m"), Answer::Present(true));
}

#[test]
fn a_refused_batch_changes_nothing() {
    let mut model = model();
    apply(&mut model, "put s m").expect("s is free");
    assert_eq!(
        apply(&mut model, "batch [set a f v; delete s; put s m2; set s f v]"),
        Err(Refusal::WrongKind)
    );
    assert_eq!(answer(&model, "keys \"\""), Answer::Keys(vec![(b"s".to_vec(), Kind::Set)]));
    assert_eq!(answer(&model, "scan s .."), Answer::Entries(vec![(b"m".to_vec(), vec![])]));
}

#[test]
fn edits_of_a_batch_see_the_ones_before_them() {
    let mut model = model();
    apply(&mut model, "set k f v").expect("k is free");
    assert_eq!(apply(&mut model, "batch [delete k; put k m]"), Ok(vec![]));
    assert_eq!(answer(&model, "kind k"), Answer::Kind(Some(Kind::Set)));
    let outcomes =
        apply(&mut model, "batch [add k n; add k n; take k n; take k n; insert j f a; insert j f b]");
    let empty = Some(vec![]);
    assert_eq!(outcomes, Ok(vec![None, empty.clone(), empty, None, None, Some(b"a".to_vec())]));
}

#[test]
fn names_and_values_outside_of_the_limits_are_invalid() {
    let mut model = model();
    for line in
        ["set \"\" f v", "set k f x*101", "put k x*65537", "put x*65537 m", "batch [set a f v; delete \"\"]"]
    {
        assert_eq!(apply(&mut model, line), Err(Refusal::InvalidInput), "{line}");
    }
    assert_eq!(apply(&mut model, "set k \"\" x*100"), Ok(vec![]));
    assert_eq!(model.objects().count(), 1);
}

#[test]
fn scans_keep_to_their_range_and_limit() {
    let mut model = model();
    apply(&mut model, "batch [put s a; put s b; put s c; put s d; put t x]").expect("free keys");
    let names = |line| match answer(&model, line) {
        Answer::Entries(entries) => entries
            .into_iter()
            .map(|(name, _)| String::from_utf8_lossy(&name).into_owned())
            .collect::<String>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(names("scan s .."), "abcd");
    assert_eq!(names("scan s b..d"), "bc");
    assert_eq!(names("scan s b..=d limit 2"), "bc");
    assert_eq!(names("scan s bb..=d"), "cd");
    assert_eq!(names("scan s .. limit 0"), "");
    assert_eq!(names("scan absent .."), "");
}

#[test]
fn undoing_leads_back_to_every_earlier_state() {
    for seed in 0..60 {
        let mut model = model();
        let mut states = vec![(model.mark(), format!("{:?}", model.objects))];
        for operation in
            generate(seed, &Bounds { operations_max: 60, ..Bounds::default() }).into_iter().flatten()
        {
            if let Operation::Write(write) = operation {
                let before = format!("{:?}", model.objects);
                match model.apply(&write.edits) {
                    Ok(_) => states.push((model.mark(), format!("{:?}", model.objects))),
                    Err(_) => assert_eq!(format!("{:?}", model.objects), before),
                }
            }
        }
        for (mark, state) in states.into_iter().rev() {
            model.undo_to(mark);
            assert_eq!(format!("{:?}", model.objects), state);
        }
    }
}
