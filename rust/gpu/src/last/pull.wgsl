// The gradient of the last factor E = diag(e) of W = V E from the columns of W and of its cotangent G, one thread for each
// column: d_j = sum_i G_ij conj(V_ij), with V_ij e_j = W_ij. Written is that of a sign, Re d_j, or of a phase, Im(conj(e_j) d_j);
// with W_ij in the place of V_ij that of a phase is Im d_j.

#import "numbers"

struct Sizes {
    count: u32,    // of all columns
    rows: u32,
    n: u32,
    phases: u32,   // 1: e = e^{i theta}; 2: the same, and V holds W; 0: real signs
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> v: array<T>;           // (batch, rows, n)
@group(0) @binding(1) var<storage, read> ct: array<T>;          // (batch, rows, n)
@group(0) @binding(2) var<storage, read> factors: array<T>;     // (batch, n)
@group(0) @binding(3) var<storage, read_write> out: array<f32>; // (batch, n)

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
        if sizes.phases == 1u {
            d = mul(conj(factors[at]), d);
        }
        out[at] = select(imag(d), real(d), sizes.phases == 0u);
    }
}
