// A step of an LSTM, from its products with h, for a feature of a sequence:
//
//   c <- f c + i g,    h = o tanh(c),    i, f, o = sigma of their arguments, g = tanh of its.

#import "numbers"
#import "elements"
#import "activation"
#import "cell"

@group(0) @binding(1) var<storage, read> inputs: array<f32>;        // U x + b, (steps, batch, 4, n)
@group(0) @binding(2) var<storage, read> products: array<f32>;      // W h, (batch, 4, n)
@group(0) @binding(3) var<storage, read_write> state: array<f32>;   // h, c, (batch, 2, n)
@group(0) @binding(4) var<storage, read_write> states: array<f32>;  // (steps, batch, 2, n)

fn argument(gate: u32, here: u32, b: u32, j: u32) -> f32 {
    let n = sizes.n;
    return inputs[(here * 4u + gate) * n + j] + products[(b * 4u + gate) * n + j];
}

fn element(at: u32) {
    let n = sizes.n;
    let b = at / n;
    let j = at % n;
    let here = row(b, sizes.k);
    let out = here * 2u * n + j;
    if sizes.k >= steps_of(b) {
        states[out] = 0.0;
        states[out + n] = 0.0;
        return;
    }
    let own = b * 2u * n + j;
    let i = sigma(argument(0u, here, b, j));
    let f = sigma(argument(1u, here, b, j));
    let g = real(hyperbolic(number(argument(2u, here, b, j))));
    let o = sigma(argument(3u, here, b, j));
    let c = fma(f, state[own + n], i * g);
    let h = o * real(hyperbolic(number(c)));
    state[own] = h;
    state[own + n] = c;
    states[out] = h;
    states[out + n] = c;
}
