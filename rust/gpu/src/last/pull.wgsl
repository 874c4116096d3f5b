// The gradient of the last factor E = diag(e) of V E from the columns of V and of the cotangent G of V E,
// d_j = sum_i G_ij conj(V_ij). The output is the gradient of the phases, Im(conj(e_j) d_j), or that of one
// sign s, e = (1, ..., 1, s), Re d_{n-1}. With W = V E in place of V the gradient of the phases is Im d_j.
//
// A workgroup takes WIDTH columns and `each` rows, one part of the sum, in HEIGHT interleaved sets.

#import "numbers"

const WIDTH: u32 = 32;
const HEIGHT: u32 = 8;

struct Sizes {
    count: u32,    // of all columns
    rows: u32,
    n: u32,
    each: u32,
    mode: u32,     // 0: one sign; 1: phases; 2: phases, and V holds W
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> v: array<T>;           // (batch, rows, n)
@group(0) @binding(1) var<storage, read> ct: array<T>;          // (batch, rows, n)
@group(0) @binding(2) var<storage, read> factors: array<T>;     // (batch, n)
@group(0) @binding(3) var<storage, read_write> out: array<f32>; // (parts, batch, n), (parts, batch) of a sign

var<workgroup> sums: array<T, WIDTH * HEIGHT>;

@compute @workgroup_size(WIDTH, HEIGHT)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let n = sizes.n;
    let at = (group.y * groups.x + group.x) * WIDTH + local.x;
    let first = at / n * sizes.rows * n + at % n;
    let end = min((group.z + 1u) * sizes.each, sizes.rows);
    var d = ZERO;
    if at < sizes.count {
        for (var i = group.z * sizes.each + local.y; i < end; i += HEIGHT) {
            let place = first + i * n;
            d = mul_add(ct[place], conj(v[place]), d);
        }
    }
    sums[local.y * WIDTH + local.x] = d;
    workgroupBarrier();
    if local.y > 0u || at >= sizes.count {
        return;
    }
    for (var r = 1u; r < HEIGHT; r++) {
        d += sums[r * WIDTH + local.x];
    }
    if sizes.mode == 1u {
        out[group.z * sizes.count + at] = imag(mul(conj(factors[at]), d));
    } else if sizes.mode == 2u {
        out[group.z * sizes.count + at] = imag(d);
    } else if at % n + 1u == n {
        out[group.z * (sizes.count / n) + at / n] = real(d);
    }
}
