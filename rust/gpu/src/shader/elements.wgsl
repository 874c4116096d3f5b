// A thread for every element: 256 for each workgroup, workgroups in two axes. The shader has `element`, which knows how many there are.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    element((group.y * groups.x + group.x) * 256u + local);
}
