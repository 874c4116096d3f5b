// Columns of U times powers of two that bring their norms to [1, 2): H(u) depends on the direction of u alone, and no square leaves
// the range of float32. One thread for each column.

#import "numbers"

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

// 2^-e for x = f 2^e, 1 <= f < 2: exact, which exp2 need not be
fn power(x: f32) -> f32 {
    let e = (bitcast<u32>(x) >> 23u) & 255u;
    return bitcast<f32>(min(254u - min(e, 253u), 253u) << 23u);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let at = (group.y * groups.x + group.x) * 256u + local;
    if at < sizes.count {
        let first = at / sizes.m * sizes.n * sizes.m + at % sizes.m;
        var most = 0.0;
        for (var i = 0u; i < sizes.n; i++) {
            most = max(most, largest(vectors[first + i * sizes.m]));
        }
        let rough = power(most);
        var sum = 0.0;
        for (var i = 0u; i < sizes.n; i++) {
            sum += square(rough * vectors[first + i * sizes.m]);
        }
        let fine = power(sqrt(sum));
        for (var i = 0u; i < sizes.n; i++) {
            let place = first + i * sizes.m;
            balanced[place] = fine * (rough * vectors[place]);
        }
        scales[at] = fine * rough;
    }
}
