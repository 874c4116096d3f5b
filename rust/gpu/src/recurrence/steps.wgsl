// The steps of a recurrence in place, every sequence in its own time k = 0 .. length - 1:
//
//   forward    s_k = phi(s_{k-1} M + a_k)             a the inputs, M = W^T, s_{-1} = h0
//   backward   s_k = phi'(y_k)^H (s_{k+1} M + a_k)    a the cotangents, M = conj(W), s_length = 0
//
// `rows` has a_k before its step and s_k after it; 0 past the end of a sequence.

override BACK: u32 = 0;   // 1: backward

struct Sizes {
    steps: u32,     // of the longest sequence
    batch: u32,
    n: u32,
    first: u32,     // the steps of this dispatch
    count: u32,
    reverse: u32,   // 1: k = 0 is the end of a sequence
    varied: u32,    // 1: there are lengths
    begun: u32,     // 1: there is h0
    summed: u32,    // backward, 1: the gradient of phi's bias is wanted
    phi: RowActivation,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> m: array<T>;               // W^T or W, (n, n)
@group(0) @binding(1) var<storage, read> start: array<T>;           // h0, (batch, n)
@group(0) @binding(2) var<storage, read> own: array<f32>;           // biases of modReLU
@group(0) @binding(3) var<storage, read> lengths: array<u32>;       // (batch)
@group(0) @binding(4) var<storage, read> y: array<T>;               // backward: from which phi' is read, (steps, batch, n)
@group(0) @binding(5) var<storage, read_write> rows: array<T>;      // (steps, batch, n)
@group(0) @binding(6) var<storage, read_write> along: array<f32>;   // backward: summands of that gradient, (steps, batch, biases)

// Feature j of the state that step k begins with.
fn before(b: u32, k: u32, j: u32) -> T {
    if BACK == 1u {
        if k + 1u >= sizes.steps {
            return ZERO;
        }
        return rows[row(b, k + 1u) * sizes.n + j];
    }
    if k > 0u {
        return rows[row(b, k - 1u) * sizes.n + j];
    }
    if sizes.begun == 1u {
        return start[b * sizes.n + j];
    }
    return ZERO;
}

// M_ij
fn entry(i: u32, j: u32) -> T {
    return conj_if(m[i * sizes.n + j], BACK == 1u);
}

// Ends step k for a pair of features from their s M; returns s_k.
fn finish(pair: u32, b: u32, k: u32, product: Pair) -> Pair {
    let n = sizes.n;
    let phi = sizes.phi;
    let place = places(pair, n, phi);
    let unit = unit_places(pair, n, phi);
    let two = place.y < n;
    let here = row(b, k);
    let at = here * n + place.x;
    let at_b = here * n + place.y;
    let live = k < steps_of(b);
    var s = Pair(ZERO, ZERO);
    var summand = vec2<f32>(0.0);
    if live {
        let bias = biases_of(pair, n, phi);
        var z = Pair(product.a + rows[at], ZERO);
        if two {
            z.b = product.b + rows[at_b];
        }
        if BACK == 1u {
            var read = Pair(y[at], ZERO);
            if two {
                read.b = y[at_b];
            }
            let pulled = pull(phi, read, z, bias);
            s = pulled.bar;
            summand = pulled.along;
        } else {
            s = value(phi, z, bias);
        }
    }
    if BACK == 1u && sizes.summed == 1u {
        let first = here * units(n, phi);
        along[first + unit.x] = summand.x;
        if two && unit.y != unit.x {
            along[first + unit.y] = summand.y;
        }
    }
    rows[at] = s.a;
    if two {
        rows[at_b] = s.b;
    }
    return s;
}
