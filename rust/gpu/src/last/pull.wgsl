// The gradient of the last factor E = diag(e) of V E from the columns of V and of the cotangent G of V E, one thread for each
// column: d_j = sum_i G_ij conj(V_ij). Written is that of the phases, Im(conj(e_j) d_j), or of one sign s, e = (1, ..., 1, s),
// which is Re d_{n-1}. With W = V E in the place of V that of the phases is Im d_j.

#import "numbers"

struct Sizes {
    count: u32,    // of all columns
    rows: u32,
    n: u32,
    mode: u32,     // 0: one sign; 1: phases; 2: phases, and V holds W
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> v: array<T>;           // (batch, rows, n)
@group(0) @binding(1) var<storage, read> ct: array<T>;          // (batch, rows, n)
@group(0) @binding(2) var<storage, read> factors: array<T>;     // (batch, n)
@group(0) @binding(3) var<storage, read_write> out: array<f32>; // (batch, n), (batch) of a sign

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = (group.y * groups.x + group.x) * 256u + local;
    if at < sizes.count {
        let first = at / sizes.n * sizes.rows * sizes.n + at % sizes.n;
        var d = ZERO;
        for (var i = 0u; i < sizes.rows; i++) {
            let place = first + i * sizes.n;
            d = mul_add(ct[place], conj(v[place]), d);
        }
        if sizes.mode == 1u {
            out[at] = imag(mul(conj(factors[at]), d));
        } else if sizes.mode == 2u {
            out[at] = imag(d);
        } else if at % sizes.n + 1u == sizes.n {
            out[at / sizes.n] = real(d);
        }
    }
}
