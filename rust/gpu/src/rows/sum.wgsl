// Sums of EACH consecutive rows: out[s] = beta out[s] + sum x[s EACH + i] over i < EACH, one thread for each number of out.

#import "numbers"
#import "index"

override EACH: u32 = 64;

struct Sizes {
    count: u32,     // numbers of out
    rows: u32,      // of x
    columns: u32,
    beta: f32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;           // (rows, columns)
@group(0) @binding(1) var<storage, read_write> out: array<T>;   // (rows / EACH, rounded up, columns)

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = element(group, groups, local);
    if at < sizes.count {
        let first = at / sizes.columns * EACH;
        let end = min(first + EACH, sizes.rows);
        var sum = ZERO;
        for (var row = first; row < end; row++) {
            sum += x[row * sizes.columns + at % sizes.columns];
        }
        if sizes.beta != 0.0 {
            sum += sizes.beta * out[at];
        }
        out[at] = sum;
    }
}
