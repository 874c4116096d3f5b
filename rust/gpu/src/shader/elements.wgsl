// A thread for every element, of which there are `sizes.count`: 256 for each workgroup, workgroups in two axes. The shader has `element`.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = (group.y * groups.x + group.x) * 256u + local;
    if at < sizes.count {
        element(at);
    }
}
