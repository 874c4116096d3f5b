// The element of a thread: 256 for each workgroup, workgroups in two axes.
fn element(group: vec3<u32>, groups: vec3<u32>, local: u32) -> u32 {
    return (group.y * groups.x + group.x) * 256u + local;
}
