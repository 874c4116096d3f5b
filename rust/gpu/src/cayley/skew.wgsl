// The entries of I + A from the packed upper triangle of A and the imaginary parts of its diagonal.

@group(0) @binding(0) var<storage, read> upper: array<T>;       // (batch, n (n - 1) / 2)
@group(0) @binding(1) var<storage, read> diagonal: array<f32>;  // (batch, n)

// (I + A)_ij of matrix b
fn skew(b: u32, i: u32, j: u32, n: u32, with_diagonal: bool) -> T {
    let first = b * (n * (n - 1u) / 2u);
    if i < j {
        return upper[first + packed(i, j, n)];
    }
    if i > j {
        return -conj(upper[first + packed(j, i, n)]);
    }
    if with_diagonal {
        return ONE + imaginary(diagonal[b * n + i]);
    }
    return ONE;
}
