// The inverses of diagonal blocks of T = striu(S) + diag(S) / 2, S = U^H U: a workgroup for each block, a thread for each column,
//
//   X_ij = (delta_ij - sum_{i < k <= j} T_ik X_kj) / T_ii,   from i = j upwards.
//
// Outside the blocks zeros are written.

#import "numbers"
#import "workgroups"

const LANES: u32 = 32;   // rows of a block

struct Sizes {
    count: u32,   // of all blocks
    m: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> gram: array<T>;             // (batch, m, m)
@group(0) @binding(1) var<storage, read_write> out: array<T>;         // (batch, m, m)

var<workgroup> block: array<T, LANES * LANES>;

fn work(number: u32, local: u32) {
    let m = sizes.m;
    let each = (m + LANES - 1u) / LANES;
    if number >= sizes.count {
        return;
    }
    let base = number / each * m * m;
    let top = number % each * LANES;
    let width = min(LANES, m - top);
    for (var i = 0u; i < width; i++) {
        if local < width {
            block[i * LANES + local] = gram[base + (top + i) * m + top + local];
        }
    }
    // the rows of these blocks, outside of them
    for (var i = 0u; i < width; i++) {
        for (var j = local; j < m; j += LANES) {
            if j < top || j >= top + width {
                out[base + (top + i) * m + j] = ZERO;
            }
        }
    }
    workgroupBarrier();
    if local < width {
        var x: array<T, LANES>;
        for (var back = 0u; back < width; back++) {
            let i = width - 1u - back;
            var sum = ZERO;
            if i <= local {
                if i == local {
                    sum = ONE;
                }
                for (var k = i + 1u; k <= local; k++) {
                    sum -= mul(block[i * LANES + k], x[k]);
                }
                sum = quotient(2.0, real(block[i * LANES + i])) * sum;
            }
            x[i] = sum;
            out[base + (top + i) * m + top + local] = sum;
        }
    }
}
