//! Whole transfers out of system calls that may be short or interrupted.

use std::io;

/// Calls `read`, which appends what it got at an offset, until `data` holds `len` bytes.
pub(super) fn read_whole(
    data: &mut Vec<u8>,
    offset: u64,
    len: usize,
    mut read: impl FnMut(&mut Vec<u8>, u64) -> io::Result<usize>,
) -> io::Result<()> {
    while data.len() < len {
        let at = offset + data.len() as u64;
        match read(data, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // An allocator may hand out more than was asked for, and the read fills all of it.
    data.truncate(len);
    Ok(())
}

/// Calls `write` with what is left of `data`, and where it goes, until nothing is left.
pub(super) fn write_whole(
    data: &[u8],
    offset: u64,
    mut write: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut written = 0;
    while written < data.len() {
        match write(&data[written..], offset + written as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(part) => written += part,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupted() -> io::Error {
        io::ErrorKind::Interrupted.into()
    }

    #[test]
    fn short_and_interrupted_reads_are_continued() {
        let file: Vec<u8> = (0..100).collect();
        let mut data = Vec::new();
        let mut calls = 0;
        read_whole(&mut data, 10, 50, |data, at| {
            calls += 1;
            if calls % 3 == 0 {
                return Err(interrupted());
            }
            let at = usize::try_from(at).unwrap();
            data.extend_from_slice(&file[at..at + 7]);
            Ok(7)
        })
        .unwrap();
        assert_eq!(data, file[10..60]);
    }

    #[test]
    fn a_read_past_the_end_fails() {
        let mut data = Vec::new();
        let error = read_whole(&mut data, 0, 50, |data, at| {
            let part = usize::try_from(30 - at).unwrap().min(20);
            data.extend(std::iter::repeat_n(1, part));
            Ok(part)
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn short_and_interrupted_writes_are_continued() {
        let data: Vec<u8> = (0..100).collect();
        let mut file = [0xFF; 105];
        let mut calls = 0;
        write_whole(&data, 5, |part, at| {
            calls += 1;
            if calls % 3 == 0 {
                return Err(interrupted());
            }
            let (at, taken) = (usize::try_from(at).unwrap(), part.len().min(7));
            file[at..at + taken].copy_from_slice(&part[..taken]);
            Ok(taken)
        })
        .unwrap();
        assert_eq!(file[..5], [0xFF; 5]);
        assert_eq!(file[5..], data);
    }

    #[test]
    fn a_write_that_makes_no_progress_fails() {
        let error = write_whole(&[1; 10], 0, |_, _| Ok(0));
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::WriteZero);
    }

    #[test]
    fn other_errors_end_a_transfer() {
        let read = read_whole(&mut Vec::new(), 0, 1, |_, _| Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::StorageFull);
        let write = write_whole(&[1], 0, |_, _| Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(write.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
