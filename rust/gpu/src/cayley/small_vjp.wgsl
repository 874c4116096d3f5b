// The gradients from W and its cotangent G, many matrices in a dispatch, each in the registers of a team:
//
//     C = W + D,  Z = C (G^H C),  U = Z D^* / 2,  upper_ij = U_ij - conj(U_ji),  diagonal_j = Im U_jj.

#import "numbers"
#import "team"
#import "packed"

struct Sizes {
    batch: u32,
    n: u32,
    diagonal: u32,   // 1: A has one
    last: u32,       // 1: D is not I
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> w: array<T>;                     // (batch, n, n)
@group(0) @binding(1) var<storage, read> ct: array<T>;                    // (batch, n, n)
@group(0) @binding(2) var<storage, read> factors: array<T>;               // (batch, n)
@group(0) @binding(3) var<storage, read_write> upper_bar: array<T>;       // (batch, n (n - 1) / 2)
@group(0) @binding(4) var<storage, read_write> diagonal_bar: array<f32>;  // (batch, n)

fn factor(b: u32, j: u32) -> T {
    if sizes.last == 1u {
        return factors[b * sizes.n + j];
    }
    return ONE;
}

// C_ij of matrix b
fn c(b: u32, i: u32, j: u32) -> T {
    let n = sizes.n;
    if b >= sizes.batch || i >= n || j >= n {
        return ZERO;
    }
    var entry = w[(b * n + i) * n + j];
    if i == j {
        entry += factor(b, j);
    }
    return entry;
}

// G_ij of matrix b
fn g(b: u32, i: u32, j: u32) -> T {
    let n = sizes.n;
    if b >= sizes.batch || i >= n || j >= n {
        return ZERO;
    }
    return ct[(b * n + i) * n + j];
}

fn work(b: u32, team: Team) {
    let n = sizes.n;
    // Y = G^H C
    var y: Tile;
    for (var depth = 0u; depth < n; depth += DEPTH) {
        workgroupBarrier();
        for (var at = team.id; at < PANEL; at += SIDE * SIDE) {
            let i = depth + at / WIDTH;
            left[team.first + at] = g(b, i, at % WIDTH);
            right[team.first + at] = c(b, i, at % WIDTH);
        }
        workgroupBarrier();
        add_panels(&y, true, team);
    }
    // Z = C Y
    var u: Tile;
    for (var depth = 0u; depth < n; depth += DEPTH) {
        workgroupBarrier();
        for (var at = team.id; at < PANEL; at += SIDE * SIDE) {
            let r = at % DEPTH;
            left[team.first + r * WIDTH + at / DEPTH] = c(b, at / DEPTH, depth + r);
        }
        rows_right(&y, depth, team);
        workgroupBarrier();
        add_panels(&u, false, team);
    }
    for (var q = 0u; q < EACH; q++) {
        let j = team.column + q * SIDE;
        var d = ZERO;
        if b < sizes.batch && j < n {
            d = 0.5 * conj(factor(b, j));
        }
        for (var p = 0u; p < EACH; p++) {
            u[p][q] = mul(u[p][q], d);
        }
    }
    for (var depth = 0u; depth < n; depth += DEPTH) {
        workgroupBarrier();
        rows_right(&u, depth, team);
        workgroupBarrier();
        for (var q = 0u; q < EACH; q++) {
            let j = team.column + q * SIDE;
            if b < sizes.batch && j < n && j >= depth && j < depth + DEPTH {
                for (var p = 0u; p < EACH; p++) {
                    let i = team.row + p * SIDE;
                    if i < j {
                        let other = right[team.first + (j - depth) * WIDTH + i];
                        upper_bar[b * (n * (n - 1u) / 2u) + packed(i, j, n)] = u[p][q] - conj(other);
                    }
                    if i == j && sizes.diagonal == 1u {
                        diagonal_bar[b * n + j] = imag(u[p][q]);
                    }
                }
            }
        }
    }
}
