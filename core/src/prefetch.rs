//! Asking the processor for memory ahead of its use.

/// Bytes that arrive together.
pub(crate) const LINE: usize = 64;

/// Starts to fetch what stands at `at` of `bytes`, if there is such a place and the target has an instruction for it.
#[inline]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    if at < bytes.len() {
        prefetch_address(bytes.as_ptr().wrapping_add(at));
    }
}

/// Starts to fetch what stands at `address`, if there is anything. Nothing needs to: a wrong address costs time.
#[inline]
pub(crate) fn prefetch_address(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(
            unsafe_code,
            reason = "has no safe form; a get takes a fifth and a scan of cold leaves a third less"
        )]
        // SAFETY: a prefetch is a hint. It reads nothing that the program could see, and never faults.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
