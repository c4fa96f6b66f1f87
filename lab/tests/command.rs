//! The command line itself: what it answers to odd files, odd outputs and interrupts.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn lab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    command
}

fn run(arguments: &[&str]) -> Output {
    lab().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const SCENARIO: &str = "scenarios/b11-an-object-grows-and-shrinks.toml";

#[test]
fn a_file_without_an_end_and_files_that_are_no_scenarios_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let (unknown, empty) = (dir.path().join("unknown.toml"), dir.path().join("empty.toml"));
    std::fs::write(&unknown, "title = \"t\"\npromise = \"B1\"\nclients = []\ncolour = 3\n").unwrap();
    std::fs::write(&empty, "").unwrap();
    let place = |path: &Path| path.display().to_string();
    for (file, expected) in [
        ("/dev/zero".to_owned(), "longer than"),
        (place(dir.path()), "cannot read the scenario"),
        (place(&dir.path().join("none.toml")), "cannot read the scenario"),
        (place(&unknown), "colour"),
        (place(&empty), "title"),
    ] {
        let output = run(&["replay", &file]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected) && errors.contains(&file), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn output_that_nobody_can_store_is_an_error_and_a_reader_that_has_gone_is_not() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = lab().arg("list").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("standard output"));

    let mut child = lab().arg("list").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_replay_stops_behind_the_operation_that_it_is_told() {
    let whole = text(&run(&["replay", SCENARIO]).stdout);
    let output = run(&["replay", SCENARIO, "--until", "4"]);
    let part = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(whole.contains("operation 5:") && part.contains("operation 4:"), "{part}");
    assert!(!part.contains("operation 5:") && part.contains("stopped before the end"), "{part}");
    let output = run(&["replay", SCENARIO, "--until", "4000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("has no operation 4000"));
}

/// The first interrupt ends a campaign in order: what it has found so far is told.
#[test]
fn an_interrupted_campaign_prints_its_summary() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("json");
    let mut child = lab()
        .args(["run", "--family", "crash", "--for", "10m", "--json"])
        .arg(&json)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The file is made before the first seed is run, when the interrupt is already listened for.
    while !json.exists() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut summary = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_to_string(&mut summary).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{summary}");
    assert!(summary.lines().any(|line| line.starts_with("seeds ")), "{summary}");
    assert!(BufReader::new(File::open(&json).unwrap()).lines().count() > 0, "the JSON is written as well");
}

#[test]
fn crash_images_are_explored_and_refused_in_one_line_where_there_is_nothing_to_explore() {
    let output = run(&["crashes", "--bounded", "1"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("EXHAUSTIVE to depth 1") && said.ends_with("clean\n"), "{said}");
    let output = run(&["crashes", "nowhere.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("nowhere.toml"));
    assert_eq!(run(&["crashes"]).status.code(), Some(2));
}

#[test]
fn a_dump_goes_into_an_empty_directory_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("disk");
    let to = to.to_str().unwrap();
    assert_eq!(run(&["replay", SCENARIO, "--dump", to]).status.code(), Some(0));
    let files = || std::fs::read_dir(Path::new(to).join("db")).unwrap().count();
    let dumped = files();
    assert!(dumped > 3, "{dumped} files");
    let output = run(&["replay", SCENARIO, "--dump", to]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("holds files"), "{}", text(&output.stderr));
    assert_eq!(files(), dumped);
}
