//! The one-line text form of operations.

use super::{Edit, NameRange, Operation, Read, ScanEnd, Transaction, ValueStem, Write, repeat_to};
use ironleaf::Durability;
use std::fmt;
use std::str::FromStr;

/// Longest value that `WORD*N` may stand for: more than any limit of the engine, and little memory.
const REPEAT_BYTES_MAX: u64 = 1 << 20;
/// Longest that all names and values of one write may be together: far more than a log segment of any scenario.
const WRITE_BYTES_MAX: u64 = 64 << 20;
/// Most names that one range may stand for.
const RANGE_LEN_MAX: u32 = 100_000;

const EDITS: &str = "set, insert, put, add, remove, take, delete, set-many, put-many and remove-many";
const OPERATIONS: &str = "set, insert, put, add, remove, take, delete, set-many, put-many, remove-many, batch, \
    transaction, abandon, hold, get, contains, len, kind, scan, scan-reverse, keys, snapshot, drop-snapshot, snapshot-get \
    and so on, flush, checkpoint and check";

/// A line that is not an operation: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("character {column} of the operation: {message}")]
pub struct ParseError {
    /// Counted from 1.
    pub column: usize,
    /// What was expected and what was found.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name or value, with the length to which it is repeated.
    Word {
        bytes: Vec<u8>,
        repeat: Option<u64>,
        quoted: bool,
    },
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word { bytes, repeat, .. } => {
                write_word(f, bytes)?;
                repeat.map_or(Ok(()), |len| write!(f, "*{len}"))
            }
            Self::Sign(sign) => write!(f, "`{sign}`"),
        }
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

const SIGNS: [&str; 6] = ["..=", "..", "[", "]", ";", "*"];

struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl Tokens<'_> {
    fn error(&self, at: usize, message: impl Into<String>) -> ParseError {
        let column = self.text.get(..at).map_or(at, |before| before.chars().count()) + 1;
        ParseError { column, message: message.into() }
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn skip_spaces(&mut self) {
        while self.bytes().get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Result<Option<Token>, ParseError> {
        self.skip_spaces();
        let rest = &self.text[self.at..];
        let Some(first) = rest.bytes().next() else { return Ok(None) };
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            self.at += sign.len();
            return Ok(Some(Token::Sign(sign)));
        }
        let (bytes, quoted) = if first == b'"' {
            (self.quoted()?, true)
        } else {
            let len = rest.bytes().take_while(|byte| is_plain(*byte)).count();
            if len == 0 {
                let found = rest.chars().next().unwrap_or_default();
                return Err(self.error(self.at, format!("{found:?} must stand in a quoted word")));
            }
            self.at += len;
            (rest.as_bytes()[..len].to_vec(), false)
        };
        let repeat = self.repeat()?;
        Ok(Some(Token::Word { bytes, repeat, quoted }))
    }

    /// The `*N` after a word.
    fn repeat(&mut self) -> Result<Option<u64>, ParseError> {
        if self.bytes().get(self.at) != Some(&b'*') {
            return Ok(None);
        }
        let start = self.at + 1;
        let len = self.bytes()[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = &self.text[start..start + len];
        self.at = start + len;
        match number.parse() {
            Ok(number) if number <= REPEAT_BYTES_MAX => Ok(Some(number)),
            _ => {
                Err(self
                    .error(start, format!("after `*` comes a length of at most {REPEAT_BYTES_MAX} bytes")))
            }
        }
    }

    fn quoted(&mut self) -> Result<Vec<u8>, ParseError> {
        let start = self.at;
        let mut word = Vec::new();
        self.at += 1;
        loop {
            let Some(byte) = self.bytes().get(self.at).copied() else {
                return Err(self.error(start, "this quoted word has no closing `\"`"));
            };
            self.at += 1;
            match byte {
                b'"' => return Ok(word),
                b'\\' => word.push(self.escape()?),
                _ => word.push(byte),
            }
        }
    }

    fn escape(&mut self) -> Result<u8, ParseError> {
        let start = self.at - 1;
        let byte = self.bytes().get(self.at).copied();
        self.at += 1;
        match byte {
            Some(b'n') => Ok(b'\n'),
            Some(b't') => Ok(b'\t'),
            Some(b'\\') => Ok(b'\\'),
            Some(b'"') => Ok(b'"'),
            Some(b'x') => {
                let digits = self.text.get(self.at..self.at + 2);
                let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                self.at += 2;
                value.ok_or_else(|| self.error(start, "after `\\x` come two hexadecimal digits"))
            }
            _ => Err(self.error(start, "unknown escape; there are \\n \\t \\\\ \\\" \\xNN")),
        }
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    peeked: Option<Option<Token>>,
    /// Where the last token began.
    start: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Result<Option<&Token>, ParseError> {
        if self.peeked.is_none() {
            self.tokens.skip_spaces();
            self.start = self.tokens.at;
            self.peeked = Some(self.tokens.next()?);
        }
        Ok(self.peeked.as_ref().and_then(Option::as_ref))
    }

    fn next(&mut self) -> Result<Option<Token>, ParseError> {
        self.peek()?;
        Ok(self.peeked.take().flatten())
    }

    fn unexpected(&self, expected: &str, found: Option<Token>) -> ParseError {
        let found = found.map_or_else(|| "the end of the line".to_owned(), |token| token.to_string());
        self.tokens.error(self.start, format!("expected {expected}, found {found}"))
    }

    fn word(&mut self, what: &str) -> Result<Vec<u8>, ParseError> {
        match self.next()? {
            Some(Token::Word { bytes, repeat: None, .. }) => Ok(bytes),
            Some(Token::Word { bytes, repeat: Some(len), .. }) if !bytes.is_empty() || len == 0 => {
                Ok(repeat_to(&bytes, len as usize))
            }
            found => Err(self.unexpected(what, found)),
        }
    }

    fn number<N: FromStr>(&mut self, what: &str) -> Result<N, ParseError> {
        match self.next()? {
            Some(Token::Word { bytes, repeat: None, quoted: false }) => {
                std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
                    self.unexpected(what, Some(Token::Word { bytes, repeat: None, quoted: false }))
                })
            }
            found => Err(self.unexpected(what, found)),
        }
    }

    fn sign(&mut self, sign: &'static str) -> Result<(), ParseError> {
        match self.next()? {
            Some(Token::Sign(found)) if found == sign => Ok(()),
            found => Err(self.unexpected(&format!("`{sign}`"), found)),
        }
    }

    fn takes_sign(&mut self, sign: &'static str) -> Result<bool, ParseError> {
        let taken = self.peek()? == Some(&Token::Sign(sign));
        if taken {
            self.next()?;
        }
        Ok(taken)
    }

    /// The plain word at the beginning of an operation or edit.
    fn verb(&mut self, what: &str) -> Result<String, ParseError> {
        match self.next()? {
            Some(Token::Word { bytes, repeat: None, quoted: false }) => {
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            found => Err(self.unexpected(what, found)),
        }
    }

    fn range(&mut self, what: &str) -> Result<NameRange, ParseError> {
        let stem = self.word(what)?;
        self.sign("[")?;
        let from = self.number("the first number")?;
        self.sign("..")?;
        let to = self.number("the number after the last")?;
        if to < from || to - from > RANGE_LEN_MAX {
            let message =
                format!("a range goes up and has at most {RANGE_LEN_MAX} names, found {from}..{to}");
            return Err(self.tokens.error(self.start, message));
        }
        self.sign("]")?;
        Ok(NameRange { stem, from, to })
    }

    fn stem(&mut self) -> Result<ValueStem, ParseError> {
        match self.next()? {
            Some(Token::Word { bytes, repeat, .. }) => {
                Ok(ValueStem { word: bytes, len: repeat.map(|len| len as u32) })
            }
            found => Err(self.unexpected("a value", found)),
        }
    }

    /// The edit that `verb` begins; `None` if it begins none.
    fn edit(&mut self, verb: &str) -> Result<Option<Edit>, ParseError> {
        const VERBS: [&str; 10] = [
            "set",
            "insert",
            "put",
            "add",
            "remove",
            "take",
            "delete",
            "set-many",
            "put-many",
            "remove-many",
        ];
        if !VERBS.contains(&verb) {
            return Ok(None);
        }
        let key = self.word("a key")?;
        Ok(Some(match verb {
            "set" => Edit::Set { key, field: self.word("a field")?, value: self.word("a value")? },
            "insert" => Edit::Insert { key, field: self.word("a field")?, value: self.word("a value")? },
            "put" => Edit::Put { key, member: self.word("a member")? },
            "add" => Edit::Add { key, member: self.word("a member")? },
            "remove" => Edit::Remove { key, name: self.word("a field or member")? },
            "take" => Edit::Take { key, name: self.word("a field or member")? },
            "set-many" => Edit::SetMany { key, fields: self.range("a field")?, value: self.stem()? },
            "put-many" => Edit::PutMany { key, members: self.range("a member")? },
            "remove-many" => Edit::RemoveMany { key, names: self.range("a field or member")? },
            _ => Edit::Delete { key },
        }))
    }

    fn level(&mut self) -> Result<Durability, ParseError> {
        let level = match self.peek()? {
            None => return Ok(Durability::Synced),
            Some(Token::Word { bytes, repeat: None, quoted: false }) => match bytes.as_slice() {
                b"synced" => Some(Durability::Synced),
                b"written" => Some(Durability::Written),
                b"buffered" => Some(Durability::Buffered),
                _ => None,
            },
            Some(_) => None,
        };
        let found = self.next()?;
        level.ok_or_else(|| self.unexpected("synced, written, buffered or the end of the line", found))
    }

    fn batch(&mut self) -> Result<Write, ParseError> {
        // The level may also stand before the edits.
        let early = match self.peek()? {
            Some(Token::Sign("[")) => None,
            _ => Some(self.level()?),
        };
        self.sign("[")?;
        let mut edits = Vec::new();
        while !self.takes_sign("]")? {
            let verb = self.verb("an edit or `]`")?;
            let start = self.start;
            let edit = self.edit(&verb)?;
            edits.push(edit.ok_or_else(|| {
                self.tokens.error(start, format!("`{verb}` is no edit; there are {EDITS}"))
            })?);
            if !self.takes_sign(";")? && self.peek()? != Some(&Token::Sign("]")) {
                let found = self.next()?;
                return Err(self.unexpected("`;` or `]`", found));
            }
        }
        let durability = match early {
            Some(level) => level,
            None => self.level()?,
        };
        Ok(Write { edits, durability })
    }

    fn transaction(&mut self) -> Result<Transaction, ParseError> {
        self.sign("[")?;
        let (mut reads, mut edits) = (Vec::new(), Vec::new());
        while !self.takes_sign("]")? {
            let verb = self.verb("a read, an edit or `]`")?;
            let start = self.start;
            if verb != "keys"
                && let Some(read) = self.read(&verb)?
            {
                reads.push((edits.len(), read));
            } else if let Some(edit) = self.edit(&verb)?.filter(|edit| !edit.is_counted()) {
                edits.push(edit);
            } else {
                let message = format!(
                    "`{verb}` has no place in a transaction; get, contains, len, kind, scan, scan-reverse, set, \
                     put, remove, delete, set-many, put-many and remove-many have"
                );
                return Err(self.tokens.error(start, message));
            }
            if !self.takes_sign(";")? && self.peek()? != Some(&Token::Sign("]")) {
                let found = self.next()?;
                return Err(self.unexpected("`;` or `]`", found));
            }
        }
        let durability = self.level()?;
        Ok(Transaction { reads, write: Write { edits, durability } })
    }

    fn scan(&mut self, is_reverse: bool) -> Result<Read, ParseError> {
        let key = self.word("a key")?;
        let from = match self.peek()? {
            Some(Token::Word { .. }) => Some(self.word("the first name")?),
            _ => None,
        };
        let to = match self.next()? {
            Some(Token::Sign("..=")) => ScanEnd::With(self.word("the last name")?),
            Some(Token::Sign("..")) => match self.peek()? {
                Some(Token::Word { bytes, quoted, .. }) if *quoted || bytes != b"limit" => {
                    ScanEnd::Before(self.word("the name after the last")?)
                }
                _ => ScanEnd::Open,
            },
            found => return Err(self.unexpected("a range such as `..`, `a..`, `a..b` or `a..=b`", found)),
        };
        let limit = match self.peek()? {
            None | Some(Token::Sign(";" | "]")) => None,
            Some(_) => {
                match self.next()? {
                    Some(Token::Word { bytes, quoted: false, .. }) if bytes == b"limit" => {}
                    found => return Err(self.unexpected("`limit` or the end of the line", found)),
                }
                Some(self.number("a number of entries")?)
            }
        };
        Ok(Read::Scan { key, from, to, limit, is_reverse })
    }

    /// The read that `verb` begins; `None` if it begins none.
    fn read(&mut self, verb: &str) -> Result<Option<Read>, ParseError> {
        Ok(Some(match verb {
            "get" => Read::Get { key: self.word("a key")?, field: self.word("a field")? },
            "contains" => Read::Contains { key: self.word("a key")?, name: self.word("a field or member")? },
            "len" => Read::Len { key: self.word("a key")? },
            "kind" => Read::Kind { key: self.word("a key")? },
            "scan" => self.scan(false)?,
            "scan-reverse" => self.scan(true)?,
            "keys" => Read::Keys { prefix: self.word("a prefix (\"\" for all keys)")? },
            _ => return Ok(None),
        }))
    }

    /// The write that `verb` begins; `None` if it begins none.
    fn write(&mut self, verb: &str) -> Result<Option<Write>, ParseError> {
        if verb == "batch" {
            return Ok(Some(self.batch()?));
        }
        let Some(edit) = self.edit(verb)? else { return Ok(None) };
        Ok(Some(Write { edits: vec![edit], durability: self.level()? }))
    }

    fn operation(&mut self) -> Result<Operation, ParseError> {
        const SLOT: &str = "a slot from 0 to 255";
        let verb = self.verb("an operation")?;
        let start = self.start;
        match verb.as_str() {
            "abandon" | "hold" => {
                let is_held = verb == "hold";
                let mut verb = self.verb("a write")?;
                let suspension = if verb == "at" { self.number("a suspension from 1 on")? } else { 1 };
                if verb == "at" {
                    verb = self.verb("a write")?;
                }
                let start = self.start;
                let write = self.write(&verb)?;
                return write.map(|write| Operation::Abandon { write, suspension, is_held }).ok_or_else(
                    || self.tokens.error(start, format!("`{verb}` is no write; there are batch, {EDITS}")),
                );
            }
            "transaction" => return Ok(Operation::Transaction(self.transaction()?)),
            "snapshot" => return Ok(Operation::Snapshot { slot: self.number(SLOT)? }),
            "drop-snapshot" => return Ok(Operation::DropSnapshot { slot: self.number(SLOT)? }),
            "flush" => return Ok(Operation::Flush),
            "checkpoint" => return Ok(Operation::Checkpoint),
            "check" => return Ok(Operation::Check),
            _ => {}
        }
        if let Some(write) = self.write(&verb)? {
            return Ok(Operation::Write(write));
        }
        if let Some(read) = self.read(&verb)? {
            return Ok(Operation::Read(read));
        }
        if let Some(rest) = verb.strip_prefix("snapshot-")
            && ["get", "contains", "len", "kind", "scan", "scan-reverse", "keys"].contains(&rest)
        {
            let slot = self.number(SLOT)?;
            if let Some(read) = self.read(rest)? {
                return Ok(Operation::SnapshotRead { slot, read });
            }
        }
        Err(self.tokens.error(start, format!("`{verb}` is no operation; there are {OPERATIONS}")))
    }
}

impl FromStr for Operation {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser { tokens: Tokens { text, at: 0 }, peeked: None, start: 0 };
        let operation = parser.operation()?;
        let bytes = operation.as_write().map_or(0, Write::bytes);
        if bytes > WRITE_BYTES_MAX {
            let message = format!("a write has at most {WRITE_BYTES_MAX} bytes in all, found {bytes}");
            return Err(ParseError { column: 1, message });
        }
        match parser.next()? {
            None => Ok(operation),
            found => Err(parser.unexpected("the end of the line", found)),
        }
    }
}

/// Writes a name or value as a word, as it stands in a scenario.
pub(crate) fn write_word(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    match period(bytes) {
        None => write_literal(f, bytes),
        Some(period) => {
            write_literal(f, &bytes[..period])?;
            write!(f, "*{}", bytes.len())
        }
    }
}

fn write_literal(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    if !bytes.is_empty() && bytes.iter().all(|byte| is_plain(*byte)) {
        return bytes.iter().try_for_each(|byte| write!(f, "{}", *byte as char));
    }
    f.write_str("\"")?;
    for byte in bytes {
        match byte {
            b'"' => f.write_str("\\\"")?,
            b'\\' => f.write_str("\\\\")?,
            b'\n' => f.write_str("\\n")?,
            b'\t' => f.write_str("\\t")?,
            b' '..=b'~' => write!(f, "{}", *byte as char)?,
            _ => write!(f, "\\x{byte:02x}")?,
        }
    }
    f.write_str("\"")
}

/// The length of the word of which `bytes` is a repetition that is worth writing as one.
fn period(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < 24 || bytes.len() as u64 > REPEAT_BYTES_MAX {
        return None;
    }
    (1..=12).find(|period| bytes[*period..] == bytes[..bytes.len() - period])
}

/// A name or value, written as a word.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a>(pub &'a [u8]);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_word(f, self.0)
    }
}

impl fmt::Display for NameRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}..{}]", Word(&self.stem), self.from, self.to)
    }
}

impl fmt::Display for ValueStem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never shortened: `*N` means the length of the values here.
        write_literal(f, &self.word)?;
        self.len.map_or(Ok(()), |len| write!(f, "*{len}"))
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = Word(self.key());
        match self {
            Self::Set { field, value, .. } => write!(f, "set {key} {} {}", Word(field), Word(value)),
            Self::Insert { field, value, .. } => write!(f, "insert {key} {} {}", Word(field), Word(value)),
            Self::Put { member, .. } => write!(f, "put {key} {}", Word(member)),
            Self::Add { member, .. } => write!(f, "add {key} {}", Word(member)),
            Self::Remove { name, .. } => write!(f, "remove {key} {}", Word(name)),
            Self::Take { name, .. } => write!(f, "take {key} {}", Word(name)),
            Self::Delete { .. } => write!(f, "delete {key}"),
            Self::SetMany { fields, value, .. } => write!(f, "set-many {key} {fields} {value}"),
            Self::PutMany { members, .. } => write!(f, "put-many {key} {members}"),
            Self::RemoveMany { names, .. } => write!(f, "remove-many {key} {names}"),
        }
    }
}

/// The level behind a write.
fn write_level(f: &mut fmt::Formatter<'_>, level: Durability) -> fmt::Result {
    f.write_str(match level {
        Durability::Synced => "",
        Durability::Written => " written",
        Durability::Buffered => " buffered",
    })
}

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("transaction [")?;
        let mut separator = "";
        for at in 0..=self.write.edits.len() {
            for read in self.reads_behind(at) {
                write!(f, "{separator}{read}")?;
                separator = "; ";
            }
            if let Some(edit) = self.write.edits.get(at) {
                write!(f, "{separator}{edit}")?;
                separator = "; ";
            }
        }
        f.write_str("]")?;
        write_level(f, self.write.durability)
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.edits.as_slice() {
            [edit] => write!(f, "{edit}")?,
            edits => {
                f.write_str("batch [")?;
                for (at, edit) in edits.iter().enumerate() {
                    write!(f, "{}{edit}", if at == 0 { "" } else { "; " })?;
                }
                f.write_str("]")?;
            }
        }
        write_level(f, self.durability)
    }
}

impl Read {
    fn write_arguments(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get { key, field: name } | Self::Contains { key, name } => {
                write!(f, "{} {}", Word(key), Word(name))
            }
            Self::Len { key } | Self::Kind { key } => write!(f, "{}", Word(key)),
            Self::Keys { prefix } => write!(f, "{}", Word(prefix)),
            Self::Scan { key, from, to, limit, .. } => {
                write!(f, "{} ", Word(key))?;
                if let Some(from) = from {
                    write!(f, "{}", Word(from))?;
                }
                match to {
                    ScanEnd::Open => f.write_str("..")?,
                    // Unquoted, this name would be taken for the limit's keyword.
                    ScanEnd::Before(to) if to == b"limit" => f.write_str("..\"limit\"")?,
                    ScanEnd::Before(to) => write!(f, "..{}", Word(to))?,
                    ScanEnd::With(to) => write!(f, "..={}", Word(to))?,
                }
                limit.map_or(Ok(()), |limit| write!(f, " limit {limit}"))
            }
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::Get { .. } => "get",
            Self::Contains { .. } => "contains",
            Self::Len { .. } => "len",
            Self::Kind { .. } => "kind",
            Self::Scan { is_reverse: false, .. } => "scan",
            Self::Scan { is_reverse: true, .. } => "scan-reverse",
            Self::Keys { .. } => "keys",
        }
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb())?;
        self.write_arguments(f)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(write) => write!(f, "{write}"),
            Self::Abandon { write, suspension, is_held } => {
                f.write_str(if *is_held { "hold " } else { "abandon " })?;
                if *suspension > 1 {
                    write!(f, "at {suspension} ")?;
                }
                write!(f, "{write}")
            }
            Self::Transaction(transaction) => write!(f, "{transaction}"),
            Self::Read(read) => write!(f, "{read}"),
            Self::Snapshot { slot } => write!(f, "snapshot {slot}"),
            Self::SnapshotRead { slot, read } => {
                write!(f, "snapshot-{} {slot} ", read.verb())?;
                read.write_arguments(f)
            }
            Self::DropSnapshot { slot } => write!(f, "drop-snapshot {slot}"),
            Self::Flush => f.write_str("flush"),
            Self::Checkpoint => f.write_str("checkpoint"),
            Self::Check => f.write_str("check"),
        }
    }
}

#[cfg(test)]
mod tests;
