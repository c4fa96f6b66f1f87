//! A second disk in the same state, to try another outcome of the same crash on.

use super::operation::Operation;
use super::tree::{
    Directory, DirectoryState, EntryChange, EntryEvent, FileState, Inode, Node, OpenFile, Space,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Copies a tree of files and directories. What is one file in the original is one file in the copy; their contents
/// share their pages.
pub(super) struct Copier {
    space: Arc<Space>,
    files: BTreeMap<u64, Arc<Inode>>,
    directories: BTreeMap<u64, Arc<Directory>>,
}

impl Copier {
    pub(super) const fn new(space: Arc<Space>) -> Self {
        Self { space, files: BTreeMap::new(), directories: BTreeMap::new() }
    }

    pub(super) fn directory(&mut self, original: &Directory) -> Arc<Directory> {
        if let Some(copy) = self.directories.get(&original.id) {
            return Arc::clone(copy);
        }
        let state = original.lock();
        let pending = state.pending.iter().map(|event| EntryEvent {
            stamp: event.stamp,
            change: match &event.change {
                EntryChange::Create { name, node } => {
                    EntryChange::Create { name: Arc::clone(name), node: self.node(node) }
                }
                EntryChange::Remove { name } => EntryChange::Remove { name: Arc::clone(name) },
                EntryChange::Rename { from, to, node } => {
                    let (from, to) = (Arc::clone(from), Arc::clone(to));
                    EntryChange::Rename { from, to, node: self.node(node) }
                }
            },
        });
        let pending = pending.collect();
        let mut copied = |entries: &super::tree::Entries| {
            entries.iter().map(|(name, node)| (Arc::clone(name), self.node(node))).collect()
        };
        let state = DirectoryState {
            current: copied(&state.current),
            durable: copied(&state.durable),
            pending,
            lock: state.lock,
            in_flight: state.in_flight,
        };
        let copy = Directory::with_state(original.id, original.path.clone(), state);
        self.directories.insert(original.id, Arc::clone(&copy));
        copy
    }

    fn node(&mut self, original: &Node) -> Node {
        match original {
            Node::File(inode) => Node::File(self.file(inode)),
            Node::Directory(directory) => Node::Directory(self.directory(directory)),
        }
    }

    fn file(&mut self, original: &Inode) -> Arc<Inode> {
        let copied = self.files.entry(original.id).or_insert_with(|| {
            // The handles belong to tasks of the original; operations in flight bring their own.
            let state = FileState { handles: 0, ..original.lock().clone() };
            Inode::with_state(original.id, original.path.clone(), state)
        });
        Arc::clone(copied)
    }

    /// The same operation on the copy.
    pub(super) fn operation(&mut self, original: &Operation) -> Operation {
        original.on_files(|file| {
            let (inode, directory) = (self.file(&file.inode), self.directory(&file.directory));
            OpenFile::new(inode, directory, file.path.clone(), file.writable, Arc::clone(&self.space))
        })
    }
}
