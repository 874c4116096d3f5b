// A step of the memory backward, R after the step to R before it, and with the cotangent S of R after the later steps, and k' of R h:
//
//   S <- S + k' h^T,   R <- R Q^T,   S <- S Q^T,   and sums over the rows r of R before the step and x of S:
//   s = - alpha r + alpha delta w - beta x + alpha beta a,   t = - gamma r - delta x + alpha delta a + gamma delta w,   R_after^T k'
//   alpha = 2 a.x,  delta = 2 w.r,  gamma = 2 (w.x - alpha w.a),  beta = 2 (a.r - delta w.a).
//
// A workgroup has SIDE rows of the memory of a sequence: first SIDE threads for each, for the inner products, then a thread for each column.

#import "numbers"
#import "activation"
#import "cell"
#import "rum"
#import "squares"

const SIDE: u32 = 16;

@group(0) @binding(1) var<storage, read> frames: array<f32>;             // (steps, batch, pitch)
@group(0) @binding(2) var<storage, read> now: array<f32>;                // u', tau', k', (batch, 3, n)
@group(0) @binding(3) var<storage, read_write> memory: array<f32>;       // R, (batch, n, n)
@group(0) @binding(4) var<storage, read_write> memory_bar: array<f32>;   // S, (batch, n, n)
@group(0) @binding(5) var<storage, read_write> sums: array<f32>;         // s, t, R^T k' of each workgroup, (batch, blocks, 3, n)

// What the columns need of a row.
struct Row {
    k: f32,
    f: f32,        // R before the step is r - f a - g w
    g: f32,
    alpha: f32,
    beta: f32,
    gamma: f32,
    delta: f32,
}

var<workgroup> shares: array<vec4<f32>, SIDE * SIDE>;
var<workgroup> rows: array<Row, SIDE>;

fn work(at: u32, local: vec2<u32>) {
    let n = sizes.n;
    let blocks = (n + SIDE - 1u) / SIDE;
    let b = at / blocks;
    if b >= sizes.batch {
        return;
    }
    let top = at % blocks * SIDE;
    let i = top + local.y;
    let own = (b * n + min(i, n - 1u)) * n;
    let here = row(b, sizes.k);
    let live = sizes.k < steps_of(b);
    let first = here * sizes.pitch;
    var found = vec4<f32>(0.0);
    for (var j = local.x; live && i < n && j < n; j += SIDE) {
        let a = frames[place_of(A, here, j)];
        let w = frames[place_of(W, here, j)];
        let r = memory[own + j];
        let x = memory_bar[own + j];
        found += vec4<f32>(a * r, w * r, a * x, w * x);
    }
    shares[local.y * SIDE + local.x] = found;
    workgroupBarrier();
    if local.x == 0u {
        found = vec4<f32>(0.0);
        for (var l = 0u; l < SIDE; l++) {
            found += shares[local.y * SIDE + l];
        }
        var own_row = Row(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        if live && i < n {
            let overlap = frames[first + OVERLAP];
            let k = now[(b * 3u + 2u) * n + i];
            let f = 2.0 * found.x;
            let g = 2.0 * (found.y - f * overlap);
            // a.r and w.r of r before the step, for unit vectors a and w; x has become x + k h
            let before = vec2<f32>(found.x - f - g * overlap, found.y - f * overlap - g);
            let alpha = 2.0 * (found.z + k * frames[first + A_H]);
            let delta = 2.0 * before.y;
            let gamma = 2.0 * (found.w + k * frames[first + W_H] - alpha * overlap);
            own_row = Row(k, f, g, alpha, 2.0 * (before.x - delta * overlap), gamma, delta);
        }
        rows[local.y] = own_row;
    }
    workgroupBarrier();
    storageBarrier();     // other threads write the memory that these have read
    if !live {
        return;
    }
    for (var j = local.y * SIDE + local.x; j < n; j += SIDE * SIDE) {
        let a = frames[place_of(A, here, j)];
        let w = frames[place_of(W, here, j)];
        let h = frames[place_of(H, here, j)];
        var s = 0.0;
        var t = 0.0;
        var turned = 0.0;
        for (var l = 0u; l < min(SIDE, n - top); l++) {
            let line = rows[l];
            let place = (b * n + top + l) * n + j;
            let after = memory[place];
            let x = fma(line.k, h, memory_bar[place]);
            let r = fma(-line.g, w, fma(-line.f, a, after));
            turned = fma(line.k, after, turned);
            s += line.alpha * (line.delta * w - r) + line.beta * (line.alpha * a - x);
            t += line.gamma * (line.delta * w - r) + line.delta * (line.alpha * a - x);
            memory[place] = r;
            memory_bar[place] = fma(-line.gamma, w, fma(-line.alpha, a, x));
        }
        let into = at * 3u * n + j;
        sums[into] = s;
        sums[into + n] = t;
        sums[into + 2u * n] = turned;
    }
}
