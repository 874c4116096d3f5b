// The gradients of keys, or of queries if QUERIES, from those of the products they stand in, and from all value heads that read them: a workgroup
// for each row of a chunk and key head. A choice of 1: through x / sqrt(|x|^2 + 1e-6).

#import "numbers"
#import "delta"
#import "workgroups"

override QUERIES: bool = false;

const LANES: u32 = 64;

@group(0) @binding(1) var<storage, read> x: array<f32>;             // (B, T m, H, K), or (B, T, H, K)
@group(0) @binding(2) var<storage, read> decays: array<f32>;        // (3, task, tokens, width)
@group(0) @binding(3) var<storage, read> kq: array<f32>;            // (task, rows and queries, K)
@group(0) @binding(4) var<storage, read> early_bar: array<f32>;     // (task, rows and queries, K)
@group(0) @binding(5) var<storage, read> late_bar: array<f32>;      // (task, rows, K)
@group(0) @binding(6) var<storage, read> inside: array<f32>;        // (task, rows and queries, K)
@group(0) @binding(7) var<storage, read_write> x_bar: array<f32>;

var<workgroup> shares: array<vec2<f32>, LANES>;

fn decay(which: u32, task: u32, t: u32, d: u32) -> f32 {
    if sizes.width == 0u {
        return 1.0;
    }
    return decays[place_of_decay(which, task, t, d)];
}

fn work(number: u32, local: u32) {
    let each = select(sizes.m, 1u, QUERIES);
    let rows = sizes.tokens * each;
    let of_group = sizes.value_heads / sizes.heads;
    if number >= sizes.tasks / of_group * rows {
        return;
    }
    let i = number % rows;
    let t = i / each;
    let head = number / rows % sizes.heads;
    let task = number / rows * of_group;
    if !lives(task, t) {
        return;
    }
    let token = chunks[sizes.first + task / sizes.value_heads].x * each + i;
    let first = (token * sizes.heads + head) * sizes.key;
    let place = i + select(0u, rows_of_chunk(), QUERIES);
    let own = (task * all_of_chunk() + place) * sizes.key;
    var sums = vec2<f32>(0.0);
    for (var d = local; d < sizes.key; d += LANES) {
        var sum = 0.0;
        for (var other = task; other < task + of_group; other++) {
            let at = (other * all_of_chunk() + place) * sizes.key + d;
            sum += fma(decay(BEFORE, other, t, d), early_bar[at], inside[at]);
            if !QUERIES {
                let late = late_bar[(other * rows + i) * sizes.key + d];
                sum = fma(decay(AFTER, other, t, d), late, sum);
            }
        }
        x_bar[first + d] = sum;
        let given = x[first + d];
        sums += vec2<f32>(given * given, sum * kq[own + d]);
    }
    if sizes.choice == 0u {
        return;
    }
    shares[local] = sums;
    workgroupBarrier();
    sums = vec2<f32>(1e-6, 0.0);
    for (var lane = 0u; lane < LANES; lane++) {
        sums += shares[lane];
    }
    let unit = quotient(1.0, root(sums.x));
    for (var d = local; d < sizes.key; d += LANES) {
        x_bar[first + d] = unit * fma(-sums.y, kq[own + d], x_bar[first + d]);
    }
}
