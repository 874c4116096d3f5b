// h = phi(z) and z_bar = phi'(z)^H g of two features: neighbours (2p, 2p + 1), or (p, p + n/2) where phi acts on the halves of a
// row. phi' is computed from y, which is h, or z where h does not determine it. On complex numbers all
// nonlinearities but modReLU act on both parts separately. NaN passes through all.

const IDENTITY: u32 = 0;          // z                          y = h
const TANH: u32 = 1;              // tanh z                     h
const RELU: u32 = 2;              // max(z, 0)                  h
const LEAKY_RELU: u32 = 3;        // max(slope z, z)            h
const OPLU: u32 = 4;              // (max, min) of the pair     z
const MODRELU: u32 = 5;           // (|z| + b) z / |z|, real    h
const MODRELU_COMPLEX: u32 = 6;   // the same, complex          z
const MODRELU_REALREP: u32 = 7;   // the same of a + i b        z

struct RowActivation {
    code: u32,
    slope: f32,
    halves: u32,   // 1: pairs are (p, p + n/2)
}

struct Pair {
    a: T,
    b: T,
}

struct Pulled {
    bar: Pair,           // z_bar
    along: vec2<f32>,    // Re(conj(e) g), e = z / |z|, of modReLU: the summands of the gradient of its bias
}

fn pairs(n: u32) -> u32 {
    return (n + 1u) / 2u;
}

// The features of a pair; the second of the last is n where n is odd.
fn places(pair: u32, n: u32, phi: RowActivation) -> vec2<u32> {
    if phi.halves == 1u {
        return vec2<u32>(pair, pair + n / 2u);
    }
    return vec2<u32>(2u * pair, 2u * pair + 1u);
}

// Biases of a row.
fn units(n: u32, phi: RowActivation) -> u32 {
    return select(n, n / 2u, phi.code == MODRELU_REALREP);
}

// The places of the biases of a pair.
fn unit_places(pair: u32, n: u32, phi: RowActivation) -> vec2<u32> {
    if phi.code == MODRELU_REALREP {
        return vec2<u32>(pair);
    }
    return places(pair, n, phi);
}

fn biased(phi: RowActivation) -> bool {
    return phi.code >= MODRELU;
}

fn readable(phi: RowActivation) -> bool {
    return phi.code < OPLU || phi.code == MODRELU;
}

// tanh x: the polynomial is exact to rounding for |x| < 1/4, and from 10 on the value is 1.
fn hyperbolic(x: T) -> T {
    let size = min(abs(x), T(10.0));
    let q = size * size;
    var p = T(62.0 / 2835.0);
    p = fma(p, q, T(-17.0 / 315.0));
    p = fma(p, q, T(2.0 / 15.0));
    p = fma(p, q, T(-1.0 / 3.0));
    let near = fma(p * q, size, size);
    let far = T(1.0) - divide_parts(T(2.0), exp_parts(T(2.0) * size) + T(1.0));
    return keep_parts(x, sign(x) * select(far, near, size < T(0.25)));
}

const TINY: f32 = 1.1754944e-38;   // the least number that is not denormal

struct Polar {
    e: vec2<f32>,
    r: f32,
}

// z / |z| and |z| without overflow; 0 and 0 of 0 and of denormal numbers. WGSL divides by 2^-126 to 2^126 alone.
fn polar(z: vec2<f32>) -> Polar {
    let top = max(abs(z.x), abs(z.y));
    let by = power(top);
    let u = by * z;
    let s = root(dot(u, u));
    if !is_nan(s) && top < TINY {
        return Polar(vec2<f32>(0.0), 0.0);
    }
    return Polar(vec2<f32>(quotient(u.x, s), quotient(u.y, s)), quotient(s, by));
}

fn modrelu(z: vec2<f32>, b: f32) -> vec2<f32> {
    let p = polar(z);
    let t = p.r + b;
    if !is_nan(t) && (p.r == 0.0 || t <= 0.0) {
        return vec2<f32>(0.0);
    }
    return t * p.e;
}

// z_bar = g + (b / r) (g - e along), and along behind it
fn modrelu_pull(z: vec2<f32>, b: f32, g: vec2<f32>) -> vec3<f32> {
    let p = polar(z);
    let t = p.r + b;
    if !is_nan(t) && (p.r == 0.0 || t <= 0.0) {
        return vec3<f32>(0.0);
    }
    let along = keep(t, dot(p.e, g));
    return vec3<f32>(g + quotient(b, p.r) * (g - along * p.e), along);
}

fn modrelu_real(z: f32, b: f32) -> f32 {
    let t = abs(z) + b;
    return keep(t, select(0.0, sign(z) * t, t > 0.0));
}

// w; NaN where the same part of z is
fn keep_each(z: Pair, w: Pair) -> Pair {
    return Pair(keep_parts(z.a, w.a), keep_parts(z.b, w.b));
}

// w; NaN in both where a part of either of z is
fn keep_both(z: Pair, w: Pair) -> Pair {
    return keep_each(z, keep_each(Pair(z.b, z.a), w));
}

fn complex_parts(x: T) -> vec2<f32> {
    return vec2<f32>(real(x), imag(x));
}

fn value(phi: RowActivation, z: Pair, b: vec2<f32>) -> Pair {
    switch phi.code {
        case TANH: {
            return Pair(hyperbolic(z.a), hyperbolic(z.b));
        }
        case RELU: {
            return keep_each(z, Pair(max(z.a, ZERO), max(z.b, ZERO)));
        }
        case LEAKY_RELU: {
            return keep_each(z, Pair(max(phi.slope * z.a, z.a), max(phi.slope * z.b, z.b)));
        }
        case OPLU: {
            return keep_both(z, Pair(max(z.a, z.b), min(z.a, z.b)));
        }
        case MODRELU: {
            return Pair(number(modrelu_real(real(z.a), b.x)), number(modrelu_real(real(z.b), b.y)));
        }
        case MODRELU_COMPLEX: {
            return Pair(
                from_parts(modrelu(complex_parts(z.a), b.x)),
                from_parts(modrelu(complex_parts(z.b), b.y)),
            );
        }
        case MODRELU_REALREP: {
            let h = modrelu(vec2<f32>(real(z.a), real(z.b)), b.x);
            return Pair(number(h.x), number(h.y));
        }
        default: {
            return z;
        }
    }
}

fn pull(phi: RowActivation, y: Pair, g: Pair, b: vec2<f32>) -> Pulled {
    let none = vec2<f32>(0.0);
    switch phi.code {
        case TANH: {
            return Pulled(Pair((T(1.0) - y.a * y.a) * g.a, (T(1.0) - y.b * y.b) * g.b), none);
        }
        case RELU: {
            return Pulled(keep_each(y, Pair(select(ZERO, g.a, y.a > ZERO), select(ZERO, g.b, y.b > ZERO))), none);
        }
        case LEAKY_RELU: {
            let a = select(phi.slope * g.a, g.a, y.a > ZERO);
            return Pulled(keep_each(y, Pair(a, select(phi.slope * g.b, g.b, y.b > ZERO))), none);
        }
        case OPLU: {
            return Pulled(keep_both(y, Pair(select(g.a, g.b, y.b > y.a), select(g.b, g.a, y.b > y.a))), none);
        }
        case MODRELU: {
            let e = keep_each(y, Pair(sign(y.a), sign(y.b)));
            let bar = keep_each(y, Pair(select(ZERO, g.a, y.a != ZERO), select(ZERO, g.b, y.b != ZERO)));
            return Pulled(bar, vec2<f32>(real(e.a) * real(g.a), real(e.b) * real(g.b)));
        }
        case MODRELU_COMPLEX: {
            let p = modrelu_pull(complex_parts(y.a), b.x, complex_parts(g.a));
            let q = modrelu_pull(complex_parts(y.b), b.y, complex_parts(g.b));
            return Pulled(Pair(from_parts(p.xy), from_parts(q.xy)), vec2<f32>(p.z, q.z));
        }
        case MODRELU_REALREP: {
            let p = modrelu_pull(vec2<f32>(real(y.a), real(y.b)), b.x, vec2<f32>(real(g.a), real(g.b)));
            return Pulled(Pair(number(p.x), number(p.y)), vec2<f32>(p.z));
        }
        default: {
            return Pulled(g, none);
        }
    }
}
