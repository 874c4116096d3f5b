// The gradients of values and rates from R_bar, and Z = U / beta without the division: a workgroup for each row of a task.
//
//   V_bar = beta R_bar,   beta_bar = R_bar . Z;   -V_bar is written beside the gradients of the outputs.

#import "delta"
#import "workgroups"

const LANES: u32 = 64;

@group(0) @binding(1) var<storage, read> beta: array<f32>;              // (B, T m, HV)
@group(0) @binding(2) var<storage, read> r_bar: array<f32>;             // (task, rows, V)
@group(0) @binding(3) var<storage, read> z: array<f32>;                 // (task, rows, V)
@group(0) @binding(4) var<storage, read_write> vo: array<f32>;          // (task, rows and queries, V)
@group(0) @binding(5) var<storage, read_write> v_bar: array<f32>;       // (B, T m, HV, V)
@group(0) @binding(6) var<storage, read_write> beta_bar: array<f32>;    // (B, T m, HV)

var<workgroup> shares: array<f32, LANES>;

fn work(number: u32, local: u32) {
    let rows = rows_of_chunk();
    if number >= sizes.tasks * rows {
        return;
    }
    let task = number / rows;
    let i = number % rows;
    let live = lives(task, i / sizes.m);
    let row = row_of_head(task, i);
    var rate = 0.0;
    if live {
        rate = beta[row];
    }
    var sum = 0.0;
    for (var v = local; v < sizes.value; v += LANES) {
        let x = r_bar[number * sizes.value + v];
        sum = fma(x, z[number * sizes.value + v], sum);
        vo[(task * all_of_chunk() + i) * sizes.value + v] = -(rate * x);
        if live {
            v_bar[row * sizes.value + v] = rate * x;
        }
    }
    shares[local] = sum;
    workgroupBarrier();
    if local == 0u && live {
        sum = 0.0;
        for (var lane = 0u; lane < LANES; lane++) {
            sum += shares[lane];
        }
        beta_bar[row] = sum;
    }
}
