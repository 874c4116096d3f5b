// The gradients of gates for each row of the state, as of gates.wgsl: a thread for each column of K of a task. The first sum, over earlier rows,
// stands in g_bar until the others are added.

#import "elements"
#import "delta"

@group(0) @binding(1) var<storage, read> decays: array<f32>;         // (3, task, tokens, K)
@group(0) @binding(2) var<storage, read> kq: array<f32>;             // (task, rows and queries, K)
@group(0) @binding(3) var<storage, read> early_bar: array<f32>;      // (task, rows and queries, K)
@group(0) @binding(4) var<storage, read> late_bar: array<f32>;       // (task, rows, K)
@group(0) @binding(5) var<storage, read> through: array<f32>;        // rows of S times those of S'_bar, (task, K)
@group(0) @binding(6) var<storage, read> crossing: array<f32>;       // (task, tokens, K)
@group(0) @binding(7) var<storage, read_write> g_bar: array<f32>;    // (B, T, HV, K)

fn element(at: u32) {
    let rows = rows_of_chunk();
    let all = all_of_chunk();
    let key = sizes.key;
    let task = at / key;
    let d = at % key;
    let first = task * all * key + d;
    var sum = decays[place_of_decay(BEFORE, task, sizes.tokens - 1u, d)] * through[at];
    for (var t = 0u; t < sizes.tokens && lives(task, t); t++) {
        g_bar[of_head(task, t) * key + d] = sum;
        let after = decays[place_of_decay(AFTER, task, t, d)];
        for (var i = t * sizes.m; i < (t + 1u) * sizes.m; i++) {
            sum = fma(after * kq[first + i * key], late_bar[(task * rows + i) * key + d], sum);
        }
    }
    sum = 0.0;
    for (var back = 0u; back < sizes.tokens; back++) {
        let t = sizes.tokens - 1u - back;
        if !lives(task, t) {
            continue;
        }
        let before = decays[place_of_decay(BEFORE, task, t, d)];
        for (var i = t * sizes.m; i < (t + 1u) * sizes.m; i++) {
            sum = fma(before * kq[first + i * key], early_bar[first + i * key], sum);
        }
        sum = fma(before * kq[first + (rows + t) * key], early_bar[first + (rows + t) * key], sum);
        sum += crossing[(task * sizes.tokens + t) * key + d];
        let place = of_head(task, t) * key + d;
        if decays[place_of_decay(OWN, task, t, d)] == 0.0 {
            g_bar[place] = 0.0;
        } else {
            g_bar[place] += sum;
        }
    }
}
