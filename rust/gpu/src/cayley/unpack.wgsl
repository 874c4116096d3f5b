// out = I + A, for a batch.

#import "numbers"
#import "index"
#import "packed"
#import "skew"

struct Sizes {
    count: u32,      // of all entries
    n: u32,
    diagonal: u32,   // 1: A has one
}

var<immediate> sizes: Sizes;

@group(0) @binding(2) var<storage, read_write> out: array<T>; // (batch, n, n)

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = element(group, groups, local);
    if at < sizes.count {
        let n = sizes.n;
        out[at] = skew(at / (n * n), at / n % n, at % n, n, sizes.diagonal == 1u);
    }
}
