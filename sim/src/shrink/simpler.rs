//! What an operation may be replaced by.

use ironleaf_model::operation::{NameRange, ScanEnd, Transaction};
use ironleaf_model::{Edit, Operation, Read, Write};

/// Values are not made shorter than this.
const SHORT_VALUE_BYTES: usize = 24;

/// Simpler operations, the simplest first.
pub(super) fn candidates(operation: &Operation) -> Vec<Operation> {
    match operation {
        Operation::Write(write) => simpler_writes(write).into_iter().map(Operation::Write).collect(),
        Operation::Abandon { write, suspension, is_held } => {
            let (suspension, is_held) = (*suspension, *is_held);
            let abandon = |write, suspension, is_held| Operation::Abandon { write, suspension, is_held };
            let as_write = Operation::Write(write.clone());
            let dropped = is_held.then(|| abandon(write.clone(), suspension, false));
            let earlier = (suspension > 1).then(|| abandon(write.clone(), 1, is_held));
            let simpler = simpler_writes(write).into_iter();
            let simpler = simpler.map(|write| abandon(write, suspension, is_held));
            std::iter::once(as_write).chain(dropped).chain(earlier).chain(simpler).collect()
        }
        Operation::Transaction(transaction) => simpler_transactions(transaction),
        Operation::Read(read) => simpler_reads(read).into_iter().map(Operation::Read).collect(),
        Operation::SnapshotRead { slot, read } => simpler_reads(read)
            .into_iter()
            .map(|read| Operation::SnapshotRead { slot: *slot, read })
            .collect(),
        _ => Vec::new(),
    }
}

/// Its write alone, and itself with one read or one edit less.
fn simpler_transactions(transaction: &Transaction) -> Vec<Operation> {
    let Transaction { reads, write } = transaction;
    let mut simpler = Vec::new();
    if !write.edits.is_empty() {
        simpler.push(Operation::Write(write.clone()));
    }
    for removed in 0..reads.len() {
        let mut reads = reads.clone();
        reads.remove(removed);
        simpler.push(Operation::Transaction(Transaction { reads, write: write.clone() }));
    }
    for removed in 0..write.edits.len() {
        let mut write = write.clone();
        write.edits.remove(removed);
        let before = |edits: usize| if edits > removed { edits - 1 } else { edits };
        let reads = reads.iter().map(|(edits, read)| (before(*edits), read.clone())).collect();
        simpler.push(Operation::Transaction(Transaction { reads, write }));
    }
    simpler
}

fn simpler_writes(write: &Write) -> Vec<Write> {
    let mut simpler = Vec::new();
    let Write { edits, durability } = write;
    if edits.len() > 1 {
        let half = edits.len() / 2;
        for kept in [&edits[..half], &edits[half..]] {
            simpler.push(Write { edits: kept.to_vec(), durability: *durability });
        }
        // Halves were tried; of a long batch, removing single edits one after another does the rest.
        for removed in 0..if edits.len() > 2 { edits.len() } else { 0 } {
            let mut edits = edits.clone();
            edits.remove(removed);
            simpler.push(Write { edits, durability: *durability });
        }
    }
    for (at, edit) in edits.iter().enumerate() {
        for edit in simpler_edits(edit) {
            let mut edits = edits.clone();
            edits[at] = edit;
            simpler.push(Write { edits, durability: *durability });
        }
    }
    simpler
}

fn simpler_edits(edit: &Edit) -> Vec<Edit> {
    match edit.clone() {
        Edit::Insert { key, field, value } => vec![Edit::Set { key, field, value }],
        Edit::Add { key, member } => vec![Edit::Put { key, member }],
        Edit::Take { key, name } => vec![Edit::Remove { key, name }],
        // A short value keeps its beginning, which tells it from all others, and still reads as a repeated word.
        Edit::Set { key, field, value } if value.len() > SHORT_VALUE_BYTES => shorter(value.len())
            .into_iter()
            .map(|len| Edit::Set { key: key.clone(), field: field.clone(), value: value[..len].to_vec() })
            .collect(),
        Edit::SetMany { key, fields, value } => {
            let mut simpler: Vec<Edit> = narrower(&fields)
                .into_iter()
                .map(|fields| Edit::SetMany { key: key.clone(), fields, value: value.clone() })
                .collect();
            if value.len.is_some() {
                let mut value = value;
                value.len = None;
                simpler.push(Edit::SetMany { key, fields, value });
            }
            simpler
        }
        Edit::PutMany { key, members } => narrower(&members)
            .into_iter()
            .map(|members| Edit::PutMany { key: key.clone(), members })
            .collect(),
        Edit::RemoveMany { key, names } => {
            narrower(&names).into_iter().map(|names| Edit::RemoveMany { key: key.clone(), names }).collect()
        }
        _ => Vec::new(),
    }
}

fn shorter(len: usize) -> Vec<usize> {
    let mut lengths = vec![SHORT_VALUE_BYTES, len / 2, len - len / 8];
    lengths.retain(|shorter| (SHORT_VALUE_BYTES..len).contains(shorter));
    lengths.dedup();
    lengths
}

/// Either half, or all but an eighth.
fn narrower(range: &NameRange) -> Vec<NameRange> {
    let len = range.to.saturating_sub(range.from);
    if len < 2 {
        return Vec::new();
    }
    let with = |from, to| NameRange { stem: range.stem.clone(), from, to };
    let half = range.from + len / 2;
    vec![
        with(range.from, half),
        with(half, range.to),
        with(range.from, range.to - (len / 8).max(1)),
        with(range.from + (len / 8).max(1), range.to),
    ]
}

fn simpler_reads(read: &Read) -> Vec<Read> {
    match read {
        Read::Scan { key, from, to, limit, is_reverse }
            if from.is_some() || limit.is_some() || *to != ScanEnd::Open || *is_reverse =>
        {
            let (key, to) = (key.clone(), ScanEnd::Open);
            vec![Read::Scan { key, from: None, to, limit: None, is_reverse: false }]
        }
        Read::Keys { prefix } if !prefix.is_empty() => vec![Read::Keys { prefix: Vec::new() }],
        _ => Vec::new(),
    }
}
