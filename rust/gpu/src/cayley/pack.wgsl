// The gradients from Z: U = Z D^* / 2, upper_ij = U_ij - conj(U_ji), diagonal_j = Im U_jj. A workgroup does a tile of 16 x 16 entries
// (i, j) of the upper triangle, and turns that of the entries (j, i) in its memory.

#import "numbers"
#import "packed"

struct Sizes {
    n: u32,
    diagonal: u32,   // 1: A has one
    last: u32,       // 1: D is not I
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> z: array<T>;                     // (batch, n, n)
@group(0) @binding(1) var<storage, read> factors: array<T>;               // (batch, n)
@group(0) @binding(2) var<storage, read_write> upper_bar: array<T>;       // (batch, n (n - 1) / 2)
@group(0) @binding(3) var<storage, read_write> diagonal_bar: array<f32>;  // (batch, n)

var<workgroup> lower: array<T, 272>;   // 16 rows of 17: no two of a column in one bank

// U_ij of matrix b
fn u(b: u32, i: u32, j: u32) -> T {
    let n = sizes.n;
    if i >= n || j >= n {
        return ZERO;
    }
    let entry = 0.5 * z[(b * n + i) * n + j];
    if sizes.last == 1u {
        return mul(entry, conj(factors[b * n + j]));
    }
    return entry;
}

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let n = sizes.n;
    let b = group.z;
    let some = group.y <= group.x;
    if some {
        lower[local.y * 17u + local.x] = u(b, group.x * 16u + local.y, group.y * 16u + local.x);
    }
    workgroupBarrier();
    let i = group.y * 16u + local.y;
    let j = group.x * 16u + local.x;
    if some && i <= j && j < n {
        let entry = u(b, i, j);
        if i < j {
            let other = lower[local.x * 17u + local.y];
            upper_bar[b * (n * (n - 1u) / 2u) + packed(i, j, n)] = entry - conj(other);
        } else if sizes.diagonal == 1u {
            diagonal_bar[b * n + j] = imag(entry);
        }
    }
}
