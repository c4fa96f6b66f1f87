//! Text for people, JSON for programs.

use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{BufWriter, Result, Stdout, Write, stderr, stdout};

/// Standard output, in one of two forms.
pub struct Output {
    is_json: bool,
    out: BufWriter<Stdout>,
}

impl Output {
    pub fn new(is_json: bool) -> Self {
        Self { is_json, out: BufWriter::new(stdout()) }
    }

    /// Prints `text`, or for programs `json`.
    pub fn print(&mut self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) -> Result<()> {
        if self.is_json { writeln!(self.out, "{}", json()) } else { writeln!(self.out, "{}", text()) }
    }

    /// Says what is not shown: to programs with everything else, to people where it is seen when the rest goes into a
    /// file.
    pub fn left_out(&mut self, what: &dyn Display) -> Result<()> {
        if self.is_json {
            return writeln!(self.out, "{}", json!({ "left_out": what.to_string() }));
        }
        complain(&format_args!("left out: {what}"));
        Ok(())
    }

    /// Hands everything over.
    pub fn finish(&mut self) -> Result<()> {
        self.out.flush()
    }
}

/// Says why a command failed: to people on standard error, to programs on standard output.
pub fn fail(is_json: bool, kind: &str, error: &dyn Display) {
    if is_json {
        let _ = writeln!(stdout(), "{}", json!({ "error": error.to_string(), "kind": kind }));
    } else {
        complain(error);
    }
}

/// Prints a line to standard error.
pub fn complain(line: &dyn Display) {
    let _ = writeln!(stderr(), "ironleaf: {line}");
}

/// Bytes as JSON: text where they are text.
pub fn bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() }),
    }
}
