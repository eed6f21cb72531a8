//! Keeps the disk away from the thread that serves all connections: a folder of another machine, or
//! one that a program provides, may take any time to answer, and everybody would wait.

use std::cell::Cell;

thread_local! {
    static IS_PROMPT: Cell<bool> = const { Cell::new(false) };
}

/// Does work that must wait for nothing. In a debug build, [`note_disk`] panics within it.
#[cfg(feature = "program")]
pub fn promptly<T>(work: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            IS_PROMPT.set(false);
        }
    }
    IS_PROMPT.set(true);
    let _reset = Reset;
    work()
}

/// Marks a place that looks at the disk.
pub fn note_disk() {
    debug_assert!(!IS_PROMPT.get(), "the disk is looked at where everybody would wait for it");
}
