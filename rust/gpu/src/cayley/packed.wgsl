// The place of (i, j), i < j, in the packed upper triangle of an n x n matrix.
fn packed(i: u32, j: u32, n: u32) -> u32 {
    return i * (2u * n - i - 1u) / 2u + j - i - 1u;
}
