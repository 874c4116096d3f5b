//! What unit tests share.

/// Whether a case of so many multiply-adds is to run: every case, but for `ISOMETRY_TEST_WORK`, which leaves out those that
/// take too long under valgrind.
pub fn within_work(sizes: &[usize]) -> bool {
    let most = std::env::var("ISOMETRY_TEST_WORK").ok().and_then(|most| most.parse().ok());
    crate::sizes::work(sizes) <= most.unwrap_or(usize::MAX)
}
