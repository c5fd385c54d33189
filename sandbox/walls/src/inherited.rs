//! Descriptors that the minion did not mean to pass on. The only unsafe code of this crate.
#![allow(unsafe_code)]

/// Closes every descriptor but 0, 1 and 2. To be called first thing: what a program has opened itself would be closed too. Where
/// the kernel is older than 5.9 and cannot, there is no landlock either, and that is said.
pub fn close_inherited() {
    // SAFETY: nothing in this process owns a descriptor yet: it has only just begun, and the standard three stay.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
    }
}
