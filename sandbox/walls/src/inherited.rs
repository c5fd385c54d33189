//! Closes descriptors that the minion passed on by mistake. This is the crate's only unsafe code.
#![allow(unsafe_code)]

/// Closes every descriptor except 0, 1 and 2. A program must call this first, because it would also close descriptors
/// that the program opened itself. On kernels before 5.9 the call fails; they have no landlock either, which is
/// reported.
pub fn close_inherited() {
    // SAFETY: the process has just started and owns no descriptors except the standard three, which stay open.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
    }
}
