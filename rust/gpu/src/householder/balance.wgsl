// Columns of U times powers of two that bring their norms to [1, 2): H(u) depends on the direction of u alone, and no square leaves
// the range of float32. A workgroup takes WIDTH columns, HEIGHT threads each.

#import "numbers"

const WIDTH: u32 = 32;
const HEIGHT: u32 = 8;

struct Sizes {
    count: u32,    // of all columns
    n: u32,
    m: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> vectors: array<T>;         // (batch, n, m)
@group(0) @binding(1) var<storage, read_write> balanced: array<T>;  // (batch, n, m)
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;  // (batch, m)

fn largest(x: T) -> f32 {
    return max(abs(real(x)), abs(imag(x)));
}

var<workgroup> parts: array<f32, WIDTH * HEIGHT>;

@compute @workgroup_size(WIDTH, HEIGHT)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let m = sizes.m;
    let at = (group.y * groups.x + group.x) * WIDTH + local.x;
    let there = at < sizes.count;
    let first = at / m * sizes.n * m + at % m;
    let own = local.y * WIDTH + local.x;
    var most = 0.0;
    if there {
        for (var i = local.y; i < sizes.n; i += HEIGHT) {
            most = max(most, largest(vectors[first + i * m]));
        }
    }
    parts[own] = most;
    workgroupBarrier();
    for (var r = 0u; r < HEIGHT; r++) {
        most = max(most, parts[r * WIDTH + local.x]);
    }
    workgroupBarrier();
    let rough = power(most);
    var sum = 0.0;
    if there {
        for (var i = local.y; i < sizes.n; i += HEIGHT) {
            sum += square(rough * vectors[first + i * m]);
        }
    }
    parts[own] = sum;
    workgroupBarrier();
    if !there {
        return;
    }
    sum = 0.0;
    for (var r = 0u; r < HEIGHT; r++) {
        sum += parts[r * WIDTH + local.x];
    }
    let fine = power(root(sum));
    for (var i = local.y; i < sizes.n; i += HEIGHT) {
        let place = first + i * m;
        balanced[place] = fine * (rough * vectors[place]);
    }
    if local.y == 0u {
        scales[at] = fine * rough;
    }
}
