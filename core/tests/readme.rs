//! The code that a newcomer copies out of the README is the example that is compiled and run by the gate.
#![expect(
    clippy::disallowed_methods,
    reason = "reads the documents of the project, not what the engine stores"
)]

use std::path::Path;

#[test]
fn the_quickstart_of_the_readme_is_the_example() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(core.join("../README.md")).expect("README.md is there");
    let example = std::fs::read_to_string(core.join("examples/quickstart.rs")).expect("the example is there");
    let block = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(block, Some(example.as_str()), "copy core/examples/quickstart.rs into README.md");
}
