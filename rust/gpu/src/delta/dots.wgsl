// out = x . y of every row of every task: a workgroup for each.

#import "workgroups"

const LANES: u32 = 64;

struct Sizes {
    count: u32,      // of all rows
    rows: u32,       // of a task, of which an array may have more
    n: u32,          // numbers of a row
    pitch_x: u32,    // rows from task to task
    pitch_y: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;   // (task, rows)

var<workgroup> shares: array<f32, LANES>;

fn work(number: u32, local: u32) {
    if number >= sizes.count {
        return;
    }
    let task = number / sizes.rows;
    let row = number % sizes.rows;
    let first_x = (task * sizes.pitch_x + row) * sizes.n;
    let first_y = (task * sizes.pitch_y + row) * sizes.n;
    var sum = 0.0;
    for (var i = local; i < sizes.n; i += LANES) {
        sum = fma(x[first_x + i], y[first_y + i], sum);
    }
    shares[local] = sum;
    workgroupBarrier();
    if local == 0u {
        sum = 0.0;
        for (var lane = 0u; lane < LANES; lane++) {
            sum += shares[lane];
        }
        out[number] = sum;
    }
}
