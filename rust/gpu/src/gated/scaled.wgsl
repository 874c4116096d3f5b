// r c' of all steps: the cotangents of W_h h + c_h, for the reset behind W_h.

#import "numbers"
#import "index"
#import "activation"
#import "cell"

@group(0) @binding(1) var<storage, read> factors: array<f32>;     // (steps, batch, 5, n)
@group(0) @binding(2) var<storage, read> bars: array<f32>;        // (steps, batch, 3, n)
@group(0) @binding(3) var<storage, read_write> out: array<f32>;   // (steps, batch, n)

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = element(group, groups, local);
    if at < sizes.count {
        let n = sizes.n;
        let here = at / n;
        let j = at % n;
        out[at] = factors[(here * 5u + 2u) * n + j] * bars[(here * 3u + 2u) * n + j];
    }
}
