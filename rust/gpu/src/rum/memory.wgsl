// R <- R Q at `count` steps from k on, and R h: every row of the memory is a recurrence of its own,
//
//   r <- Q^T r = H(a) H(w) r,    r.h = r_before.h - f w.h - s a.h,    f = 2 w.r,  s = 2 (a.r - f w.a).
//
// A workgroup has SIDE rows of the memory of a sequence, SIDE threads for each. Frames and R h are those of all steps, or (flag 0) of one.

#import "numbers"
#import "activation"
#import "cell"
#import "rum"
#import "squares"

const SIDE: u32 = 16;

@group(0) @binding(1) var<storage, read> frames: array<f32>;          // (steps, batch, pitch) or (batch, pitch)
@group(0) @binding(2) var<storage, read_write> memory: array<f32>;    // (batch, n, n)
@group(0) @binding(3) var<storage, read_write> heard: array<f32>;     // R h, (steps, batch, n) or (batch, n)

var<workgroup> shares: array<vec4<f32>, SIDE * SIDE>;

fn work(at: u32, local: vec2<u32>) {
    let n = sizes.n;
    let blocks = (n + SIDE - 1u) / SIDE;
    let b = at / blocks;
    if b >= sizes.batch {
        return;
    }
    let i = at % blocks * SIDE + local.y;
    let own = (b * n + min(i, n - 1u)) * n;
    for (var k = sizes.k; k < sizes.k + sizes.count; k++) {
        let live = i < n && k < steps_of(b);
        let here = select(b, row(b, k), sizes.flag == 1u);
        var sums = vec4<f32>(0.0);
        for (var j = local.x; live && j < n; j += SIDE) {
            let r = memory[own + j];
            let with_a = r * frames[place_of(A, here, j)];
            sums += vec4<f32>(with_a, r * frames[place_of(W, here, j)], r * frames[place_of(H, here, j)], 0.0);
        }
        shares[local.y * SIDE + local.x] = sums;
        workgroupBarrier();
        sums = vec4<f32>(0.0);
        for (var l = 0u; l < SIDE; l++) {
            sums += shares[local.y * SIDE + l];
        }
        workgroupBarrier();
        if live {
            let first = here * sizes.pitch;
            let f = 2.0 * sums.y;
            let s = 2.0 * (sums.x - f * frames[first + OVERLAP]);
            for (var j = local.x; j < n; j += SIDE) {
                let once = fma(-f, frames[place_of(W, here, j)], memory[own + j]);
                memory[own + j] = fma(-s, frames[place_of(A, here, j)], once);
            }
            if local.x == 0u {
                heard[here * n + i] = sums.z - f * frames[first + W_H] - s * frames[first + A_H];
            }
        }
    }
}
