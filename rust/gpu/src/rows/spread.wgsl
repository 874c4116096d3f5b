// One row written into all: out[i] = x.

#import "numbers"
#import "index"

struct Sizes {
    count: u32,     // numbers of out
    columns: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;           // (columns)
@group(0) @binding(1) var<storage, read_write> out: array<T>;   // (rows, columns)

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = element(group, groups, local);
    if at < sizes.count {
        out[at] = x[at % sizes.columns];
    }
}
