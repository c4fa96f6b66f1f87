//! Records in files: the frame that the log and the manifest share, and a reader over it.

mod frame;
mod reader;

pub(crate) use frame::{Binding, Header, encode, record_bytes};
pub(crate) use reader::{RecordReader, is_unused_or_begins_with};
