// Keys and queries of the chunks, times what stands beside them: a workgroup for each row of a task, rows before queries.
//
// A choice of 1 divides them by sqrt(|x|^2 + 1e-6) first.

#import "numbers"
#import "delta"
#import "workgroups"

const LANES: u32 = 64;

@group(0) @binding(1) var<storage, read> q: array<f32>;              // (B, T, H, K)
@group(0) @binding(2) var<storage, read> k: array<f32>;              // (B, T m, H, K)
@group(0) @binding(3) var<storage, read> beta: array<f32>;           // (B, T m, HV)
@group(0) @binding(4) var<storage, read> decays: array<f32>;         // (3, task, tokens, width)
@group(0) @binding(5) var<storage, read_write> kq: array<f32>;       // (task, rows and queries, K)
@group(0) @binding(6) var<storage, read_write> sides: array<f32>;    // beta e^c k, e^(c_C - c) k, e^c k: (3, task, rows, K)
@group(0) @binding(7) var<storage, read_write> early: array<f32>;    // e^c q, in the rows of queries: (task, rows and queries, K)

var<workgroup> shares: array<f32, LANES>;

fn decay(which: u32, task: u32, t: u32, d: u32) -> f32 {
    if sizes.width == 0u {
        return 1.0;
    }
    return decays[place_of_decay(which, task, t, d)];
}

fn work(number: u32, local: u32) {
    let rows = rows_of_chunk();
    let all = all_of_chunk();
    if number >= sizes.tasks * all {
        return;
    }
    let task = number / all;
    let i = number % all;
    let query = i >= rows;
    let t = select(i / sizes.m, i - rows, query);
    let live = lives(task, t);
    let head = task % sizes.value_heads / (sizes.value_heads / sizes.heads);
    var first = chunks[sizes.first + task / sizes.value_heads].x;
    first = select(first * sizes.m + i, first + t, query);
    first = (first * sizes.heads + head) * sizes.key;
    var unit = 1.0;
    if sizes.choice == 1u {
        var sum = 0.0;
        for (var d = local; live && d < sizes.key; d += LANES) {
            let x = given(query, first + d);
            sum = fma(x, x, sum);
        }
        shares[local] = sum;
        workgroupBarrier();
        sum = 1e-6;
        for (var lane = 0u; lane < LANES; lane++) {
            sum += shares[lane];
        }
        unit = quotient(1.0, root(sum));
    }
    var rate = 0.0;
    if live && !query {
        rate = beta[row_of_head(task, i)];
    }
    for (var d = local; d < sizes.key; d += LANES) {
        var x = 0.0;
        if live {
            x = unit * given(query, first + d);
        }
        let at = number * sizes.key + d;
        kq[at] = x;
        let before = x * decay(BEFORE, task, t, d);
        if query {
            early[at] = before;
        } else {
            let side = (task * rows + i) * sizes.key + d;
            let each = sizes.tasks * rows * sizes.key;
            sides[side] = rate * before;
            sides[side + each] = x * decay(AFTER, task, t, d);
            sides[side + 2u * each] = before;
        }
    }
}

fn given(query: bool, at: u32) -> f32 {
    if query {
        return q[at];
    }
    return k[at];
}
