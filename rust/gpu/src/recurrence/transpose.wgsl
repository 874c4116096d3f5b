// out = X^T for X n x n.

#import "numbers"
#import "index"

struct Sizes {
    n: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = element(group, groups, local);
    let n = sizes.n;
    if at < n * n {
        out[at] = x[at % n * n + at / n];
    }
}
