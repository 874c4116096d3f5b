// The states through the chunks of each sequence, a workgroup for each sequence, head and SIDE columns of V:
//
//   U <- U + A S,   S <- e^(c_C) S + B^T U.
//
// Forward, A = -(I + A)^-1 diag(beta) (e^c * K) and B = e^(c_C - c) * K. Reversed, S is the gradient of the state behind a chunk, A the late
// keys, B has A of forward and below it e^c * Q, and U below it the gradients of the outputs.

#import "squares"

const SIDE: u32 = 16;
const EACH: u32 = 4;
const TILE: u32 = SIDE * EACH;
const PITCH: u32 = SIDE + 1u;

struct Sizes {
    first: u32,         // the first chunk of the part
    chunks: u32,        // of the part
    sequences: u32,
    reversed: u32,
    value_heads: u32,
    key: u32,
    value: u32,
    rows: u32,          // of A
    depth: u32,         // rows of B
    first_a: u32,       // the first number of A and B, and numbers from task to task
    pitch_a: u32,
    first_b: u32,
    pitch_b: u32,
    pitch_u: u32,
    tokens: u32,        // of a chunk
    width: u32,         // numbers of a gate: 0 (none), 1 or key
    given: u32,         // 1: there are states to begin with
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> sequences: array<vec2<u32>>;   // the first chunk of each, and that behind its last
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> decays: array<f32>;            // (3, task, tokens, width)
@group(0) @binding(4) var<storage, read> given: array<f32>;             // (N, HV, K, V)
@group(0) @binding(5) var<storage, read_write> u: array<f32>;
@group(0) @binding(6) var<storage, read_write> states: array<f32>;      // before each chunk, or behind it: (task, K, V)
@group(0) @binding(7) var<storage, read_write> last: array<f32>;        // (N, HV, K, V)

var<workgroup> left: array<f32, TILE * PITCH>;
var<workgroup> right: array<f32, SIDE * SIDE>;

// Rows top + y + p SIDE of A S.
fn times_a(local: vec2<u32>, task: u32, v: u32, top: u32) -> vec4<f32> {
    var sum = vec4<f32>(0.0);
    let first = sizes.first_a + task * sizes.pitch_a;
    for (var depth = 0u; depth < sizes.key; depth += SIDE) {
        for (var p = 0u; p < EACH; p++) {
            let i = top + local.y + p * SIDE;
            let d = depth + local.x;
            var x = 0.0;
            if i < sizes.rows && d < sizes.key {
                x = a[first + i * sizes.key + d];
            }
            left[(local.y + p * SIDE) * PITCH + local.x] = x;
        }
        var y = 0.0;
        if depth + local.y < sizes.key && v < sizes.value {
            y = states[(task * sizes.key + depth + local.y) * sizes.value + v];
        }
        right[local.y * SIDE + local.x] = y;
        sum = multiplied(local, sum);
    }
    return sum;
}

// Rows top + y + p SIDE of B^T U.
fn times_b(local: vec2<u32>, task: u32, v: u32, top: u32) -> vec4<f32> {
    var sum = vec4<f32>(0.0);
    let first = sizes.first_b + task * sizes.pitch_b;
    for (var depth = 0u; depth < sizes.depth; depth += SIDE) {
        for (var p = 0u; p < EACH; p++) {
            let i = depth + local.y;
            let d = top + local.x + p * SIDE;
            var x = 0.0;
            if i < sizes.depth && d < sizes.key {
                x = b[first + i * sizes.key + d];
            }
            left[(local.x + p * SIDE) * PITCH + local.y] = x;
        }
        var y = 0.0;
        if depth + local.y < sizes.depth && v < sizes.value {
            y = u[task * sizes.pitch_u + (depth + local.y) * sizes.value + v];
        }
        right[local.y * SIDE + local.x] = y;
        sum = multiplied(local, sum);
    }
    return sum;
}

// The sums with a depth of SIDE more.
fn multiplied(local: vec2<u32>, before: vec4<f32>) -> vec4<f32> {
    var sum = before;
    workgroupBarrier();
    for (var j = 0u; j < SIDE; j++) {
        let y = right[j * SIDE + local.x];
        for (var p = 0u; p < EACH; p++) {
            sum[p] = fma(left[(local.y + p * SIDE) * PITCH + j], y, sum[p]);
        }
    }
    workgroupBarrier();
    return sum;
}

// The decay of row d of the state over a chunk.
fn total(task: u32, d: u32) -> f32 {
    if sizes.width == 0u {
        return 1.0;
    }
    return decays[(task * sizes.tokens + sizes.tokens - 1u) * sizes.width + min(d, sizes.width - 1u)];
}

// Of states and U a thread reads the rows = local.y mod SIDE of column v, all of which it wrote itself: no barrier is needed.
fn work(number: u32, local: vec2<u32>) {
    let blocks = (sizes.value + SIDE - 1u) / SIDE;
    let n = number / blocks / sizes.value_heads;
    if n >= sizes.sequences {
        return;
    }
    let head = number / blocks % sizes.value_heads;
    let v = number % blocks * SIDE + local.x;
    let own = ((n * sizes.value_heads + head) * sizes.key) * sizes.value + v;
    let whole = sequences[n];
    let start = max(whole.x, sizes.first);
    let end = max(min(whole.y, sizes.first + sizes.chunks), start);
    // a sequence that an earlier part has begun goes on from `last`
    let begins = select(start == whole.x, end == whole.y, sizes.reversed == 1u);
    if whole.x < whole.y && start == end {
        return;
    }
    let begin = select(start, end - 1u, sizes.reversed == 1u) - sizes.first;
    var task = begin * sizes.value_heads + head;
    for (var d = local.y; d < sizes.key && v < sizes.value; d += SIDE) {
        var s = 0.0;
        if !begins {
            s = last[own + d * sizes.value];
        } else if sizes.given == 1u {
            s = given[own + d * sizes.value];
        }
        put(start == end, task, own, d, v, s);
    }
    for (var left = end - start; left > 0u; left--) {
        let next = select(task + sizes.value_heads, task - sizes.value_heads, sizes.reversed == 1u);
        for (var top = 0u; top < sizes.rows; top += TILE) {
            let sum = times_a(local, task, v, top);
            for (var p = 0u; p < EACH; p++) {
                let i = top + local.y + p * SIDE;
                if i < sizes.rows && v < sizes.value {
                    u[task * sizes.pitch_u + i * sizes.value + v] += sum[p];
                }
            }
        }
        for (var top = 0u; top < sizes.key; top += TILE) {
            let sum = times_b(local, task, v, top);
            for (var p = 0u; p < EACH; p++) {
                let d = top + local.y + p * SIDE;
                if d < sizes.key && v < sizes.value {
                    let faded = total(task, d) * states[(task * sizes.key + d) * sizes.value + v];
                    put(left == 1u, next, own, d, v, faded + sum[p]);
                }
            }
        }
        task = next;
    }
}

// Row d of the state of a task, or behind all.
fn put(behind: bool, task: u32, own: u32, d: u32, v: u32, s: f32) {
    if behind {
        last[own + d * sizes.value] = s;
    } else {
        states[(task * sizes.key + d) * sizes.value + v] = s;
    }
}
