// A workgroup of SIDE x SIDE threads for every piece of work, workgroups in two axes. The shader has `work`, which knows how many there are.
@compute @workgroup_size(SIDE, SIDE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    work(group.y * groups.x + group.x, local.xy);
}
