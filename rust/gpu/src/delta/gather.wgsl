// Outputs, (task, tokens, V), times scale, in the order of the call.

#import "index"
#import "delta"

@group(0) @binding(1) var<storage, read> x: array<f32>;           // (task, tokens, V)
@group(0) @binding(2) var<storage, read_write> o: array<f32>;     // (B, T, HV, V)

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = element(group, groups, local);
    if at >= sizes.tasks * sizes.tokens * sizes.value {
        return;
    }
    let task = at / sizes.value / sizes.tokens;
    let t = at / sizes.value % sizes.tokens;
    if lives(task, t) {
        o[of_head(task, t) * sizes.value + at % sizes.value] = sizes.scale * x[at];
    }
}
