// The identity, for every matrix of a batch.

#import "numbers"
#import "index"

struct Sizes {
    count: u32,   // batch n n
    n: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read_write> out: array<T>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = element(group, groups, local);
    if at < sizes.count {
        out[at] = select(ZERO, ONE, at % (sizes.n * sizes.n) % (sizes.n + 1u) == 0u);
    }
}
