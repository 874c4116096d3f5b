// Products of keys with keys and queries where each row of the state has its gate,
//
//   G_ji = sum_d k_jd k_id e^(c_id - c_jd),
//
// the decays as products of those of the tokens between: a thread for each row j of a task, DEPTH columns of K at a time.

#import "elements"
#import "delta"

const DEPTH: u32 = 8;

@group(0) @binding(1) var<storage, read> decays: array<f32>;           // (3, task, tokens, K)
@group(0) @binding(2) var<storage, read> kq: array<f32>;               // (task, rows and queries, K)
@group(0) @binding(3) var<storage, read_write> gram: array<f32>;       // (task, rows, rows and queries)

fn element(at: u32) {
    let rows = rows_of_chunk();
    let all = all_of_chunk();
    let task = at / rows;
    let j = at % rows;
    for (var depth = 0u; depth < sizes.key; depth += DEPTH) {
        let live = min(DEPTH, sizes.key - depth);
        var own: array<f32, DEPTH>;
        for (var d = 0u; d < live; d++) {
            own[d] = kq[(task * all + j) * sizes.key + depth + d];
        }
        for (var i = j; i < rows; i++) {
            let t = i / sizes.m;
            if i > j && i % sizes.m == 0u {
                for (var d = 0u; d < live; d++) {
                    own[d] *= decays[place_of_decay(OWN, task, t, depth + d)];
                }
            }
            add(task, at, i, depth, live, own);
            if (i + 1u) % sizes.m == 0u {
                add(task, at, rows + t, depth, live, own);
            }
        }
    }
}

// To the product of a row with row or query i.
fn add(task: u32, row: u32, i: u32, depth: u32, live: u32, own: array<f32, DEPTH>) {
    let all = all_of_chunk();
    var by = own;
    var sum = 0.0;
    if depth > 0u {
        sum = gram[row * all + i];
    }
    for (var d = 0u; d < live; d++) {
        sum = fma(by[d], kq[(task * all + i) * sizes.key + depth + d], sum);
    }
    gram[row * all + i] = sum;
}
