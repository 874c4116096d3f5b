// W = (2 (I + A)^-1 - I) D, then a step W <- W (3 I - W^H W) / 2 towards the unitary matrices, many matrices in a dispatch: one for
// each team, in its registers.

#import "numbers"
#import "team"
#import "sweep"
#import "packed"
#import "skew"

struct Sizes {
    batch: u32,
    n: u32,
    diagonal: u32,   // 1: A has one
    last: u32,       // 1: D is not I
}

var<immediate> sizes: Sizes;

@group(0) @binding(2) var<storage, read> factors: array<T>;   // (batch, n)
@group(0) @binding(3) var<storage, read_write> w: array<T>;   // (batch, n, n)

// (I + A)_ij of matrix b
fn entry(b: u32, i: u32, j: u32) -> T {
    let n = sizes.n;
    if b >= sizes.batch || i >= n || j >= n {
        return number(f32(u32(i == j && i < n)));
    }
    return skew(b, i, j, n, sizes.diagonal == 1u);
}

fn work(b: u32, team: Team) {
    let n = sizes.n;
    var v: Tile;
    for (var p = 0u; p < EACH; p++) {
        for (var q = 0u; q < EACH; q++) {
            v[p][q] = entry(b, team.row + p * SIDE, team.column + q * SIDE);
        }
    }
    sweep(&v, n, team);
    for (var p = 0u; p < EACH; p++) {
        let i = team.row + p * SIDE;
        for (var q = 0u; q < EACH; q++) {
            let one = i == team.column + q * SIDE && i < n;
            v[p][q] = 2.0 * v[p][q] - number(f32(u32(one)));
        }
    }
    // E = (I - V^H V) / 2
    var e: Tile;
    for (var depth = 0u; depth < n; depth += DEPTH) {
        workgroupBarrier();
        rows_left(&v, depth, team);
        rows_right(&v, depth, team);
        workgroupBarrier();
        add_panels(&e, true, team);
    }
    for (var p = 0u; p < EACH; p++) {
        let i = team.row + p * SIDE;
        for (var q = 0u; q < EACH; q++) {
            let one = i == team.column + q * SIDE && i < n;
            e[p][q] = 0.5 * (number(f32(u32(one))) - e[p][q]);
        }
    }
    // V + V E
    var sum: Tile;
    for (var depth = 0u; depth < n; depth += DEPTH) {
        workgroupBarrier();
        columns_left(&v, depth, team);
        rows_right(&e, depth, team);
        workgroupBarrier();
        add_panels(&sum, false, team);
    }
    for (var q = 0u; q < EACH; q++) {
        let j = team.column + q * SIDE;
        if b < sizes.batch && j < n {
            var d = ONE;
            if sizes.last == 1u {
                d = factors[b * n + j];
            }
            for (var p = 0u; p < EACH; p++) {
                let i = team.row + p * SIDE;
                if i < n {
                    w[(b * n + i) * n + j] = mul(v[p][q] + sum[p][q], d);
                }
            }
        }
    }
}
