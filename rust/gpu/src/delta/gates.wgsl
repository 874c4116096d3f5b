// The gradient of the gate of a head at token l: a factor e^(c_i - c_j) gives its gradient to every gate from j, exclusive, to i. So
//
//   sum of e^c_i early_i (i from l on) + e^(c_C - c_i) late_i (i before l) + e^c_C <S, S'_bar> + X_ji G_ji (j before l, i from l on),
//
// where early and late are the products of e^c k, of e^c q and of e^(c_C - c) k with their gradients, without the factors. A gate of 0 does
// not change. A thread for each token of a task.

#import "elements"
#import "delta"

@group(0) @binding(1) var<storage, read> decays: array<f32>;         // (3, task, tokens)
@group(0) @binding(2) var<storage, read> early: array<f32>;          // (task, rows and queries)
@group(0) @binding(3) var<storage, read> late: array<f32>;           // (task, rows)
@group(0) @binding(4) var<storage, read> through: array<f32>;        // <S, S'_bar>, (task)
@group(0) @binding(5) var<storage, read> x: array<f32>;              // (task, rows, rows and queries)
@group(0) @binding(6) var<storage, read> gram: array<f32>;           // (task, rows, rows and queries)
@group(0) @binding(7) var<storage, read_write> g_bar: array<f32>;    // (B, T, HV)

fn element(at: u32) {
    let rows = rows_of_chunk();
    let all = all_of_chunk();
    let task = at / sizes.tokens;
    let l = at % sizes.tokens;
    if !lives(task, l) {
        return;
    }
    var sum = decays[place_of_decay(BEFORE, task, sizes.tokens - 1u, 0u)] * through[task];
    for (var t = 0u; t < sizes.tokens; t++) {
        let before = decays[place_of_decay(BEFORE, task, t, 0u)];
        let after = decays[place_of_decay(AFTER, task, t, 0u)];
        for (var i = t * sizes.m; i < (t + 1u) * sizes.m; i++) {
            if t >= l {
                sum = fma(before, early[task * all + i], sum);
            } else {
                sum = fma(after, late[task * rows + i], sum);
            }
        }
        if t >= l {
            sum = fma(before, early[task * all + rows + t], sum);
        }
    }
    for (var j = 0u; j < l * sizes.m; j++) {
        let row = (task * rows + j) * all;
        for (var i = l * sizes.m; i < rows; i++) {
            sum = fma(x[row + i], gram[row + i], sum);
        }
        for (var t = l; t < sizes.tokens; t++) {
            sum = fma(x[row + rows + t], gram[row + rows + t], sum);
        }
    }
    if decays[place_of_decay(OWN, task, l, 0u)] == 0.0 {
        sum = 0.0;
    }
    g_bar[of_head(task, l)] = sum;
}
