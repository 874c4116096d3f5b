// out = Q X Q^T, or Q^T X Q, with Q = B E: E random signs, B butterflies (a, b) -> (a + b, a - b) / sqrt(2) of the rows i and
// i + reach in groups of 2 reach rows; rows without partner stay.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,     // of all entries
    n: u32,
    reach: u32,
    back: u32,      // 1: Q^T X Q
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;         // (batch, n, n)
@group(0) @binding(1) var<storage, read_write> out: array<T>; // (batch, n, n)

const HALF: f32 = 0.70710678;   // sqrt(1/2)

// E_ii
fn sign_of(i: u32) -> f32 {
    var h = i * 0x9e3779b9u + sizes.reach * 0x85ebca6bu;
    h = (h ^ (h >> 15u)) * 0x2c1b3c6du;
    return select(1.0, -1.0, ((h >> 16u) & 1u) == 1u);
}

// B_ii and B_ik with the partner k, itself where there is none
fn row_of(i: u32) -> vec2<f32> {
    let at = i % (2u * sizes.reach);
    let first = i - at;
    if first + 2u * sizes.reach > sizes.n {
        return vec2<f32>(1.0, 0.0);
    }
    return vec2<f32>(select(HALF, -HALF, at >= sizes.reach), HALF);
}

fn partner(i: u32, row: vec2<f32>) -> u32 {
    if row.y == 0.0 {
        return i;
    }
    return select(i + sizes.reach, i - sizes.reach, i % (2u * sizes.reach) >= sizes.reach);
}

fn element(at: u32) {
    let n = sizes.n;
    let first = at / (n * n) * n * n;
    let i = at / n % n;
    let j = at % n;
    var p = row_of(i);
    var q = row_of(j);
    let k = partner(i, p);
    let l = partner(j, q);
    if sizes.back == 1u {
        p *= sign_of(i);
        q *= sign_of(j);
    } else {
        p *= vec2<f32>(sign_of(i), sign_of(k));
        q *= vec2<f32>(sign_of(j), sign_of(l));
    }
    let above = q.x * x[first + i * n + j] + q.y * x[first + i * n + l];
    let below = q.x * x[first + k * n + j] + q.y * x[first + k * n + l];
    out[at] = p.x * above + p.y * below;
}
