// A step of an LSTM backward, from the cotangents of h and c, for a feature of a sequence; primes are cotangents of the arguments of the
// gates, which they replace:
//
//   s = c_bar + h_bar o (1 - tanh(c)^2)
//   i' = s g i (1 - i),   f' = s c_before f (1 - f),   g' = s i (1 - g^2),   o' = h_bar tanh(c) o (1 - o)
//   c_bar <- s f,         h_bar <- 0, to which the caller adds W^T (i', f', g', o').
//
// A sequence that has no such step keeps both.

#import "numbers"
#import "elements"
#import "activation"
#import "cell"

@group(0) @binding(1) var<storage, read> states: array<f32>;        // h, c, (steps, batch, 2, n)
@group(0) @binding(2) var<storage, read> previous: array<f32>;      // those before the steps
@group(0) @binding(3) var<storage, read> ct: array<f32>;            // (steps, batch, 2, n)
@group(0) @binding(4) var<storage, read_write> gates: array<f32>;   // the arguments, then i', f', g', o', (steps, batch, 4, n)
@group(0) @binding(5) var<storage, read_write> g: array<f32>;       // h_bar, c_bar, (batch, 2, n)
@group(0) @binding(6) var<storage, read_write> now: array<f32>;     // i', f', g', o' of this step, (batch, 4, n)

fn put(gate: u32, here: u32, b: u32, j: u32, x: f32) {
    gates[(here * 4u + gate) * sizes.n + j] = x;
    now[(b * 4u + gate) * sizes.n + j] = x;
}

fn element(at: u32) {
    let n = sizes.n;
    let b = at / n;
    let j = at % n;
    let here = row(b, sizes.k);
    if sizes.k >= steps_of(b) {
        for (var gate = 0u; gate < 4u; gate++) {
            put(gate, here, b, j, 0.0);
        }
        return;
    }
    let own = b * 2u * n + j;
    let all = here * 2u * n + j;
    let first = here * 4u * n + j;
    let i = sigma(gates[first]);
    let f = sigma(gates[first + n]);
    let z = real(hyperbolic(number(gates[first + 2u * n])));
    let o = sigma(gates[first + 3u * n]);
    let c = real(hyperbolic(number(states[all + n])));
    let h_bar = g[own] + ct[all];
    let s = g[own + n] + ct[all + n] + h_bar * o * (1.0 - c * c);
    put(0u, here, b, j, s * z * i * (1.0 - i));
    put(1u, here, b, j, s * previous[all + n] * f * (1.0 - f));
    put(2u, here, b, j, s * i * (1.0 - z * z));
    put(3u, here, b, j, h_bar * c * o * (1.0 - o));
    g[own] = 0.0;
    g[own + n] = s * f;
}
