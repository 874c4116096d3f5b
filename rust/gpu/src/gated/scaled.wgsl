// r c' of all steps: the cotangents of W_h h + c_h, for the reset behind W_h.

#import "numbers"
#import "elements"
#import "activation"
#import "cell"

@group(0) @binding(1) var<storage, read> factors: array<f32>;     // (steps, batch, 5, n)
@group(0) @binding(2) var<storage, read> bars: array<f32>;        // (steps, batch, 3, n)
@group(0) @binding(3) var<storage, read_write> out: array<f32>;   // (steps, batch, n)

fn element(at: u32) {
    let n = sizes.n;
    let here = at / n;
    let j = at % n;
    out[at] = factors[(here * 5u + 2u) * n + j] * bars[(here * 3u + 2u) * n + j];
}
