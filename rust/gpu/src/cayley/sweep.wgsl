// M <- M^-1 in the registers of a team, by Gauss-Jordan elimination with row pivots: step k exchanges rows k and p, the one with
// the largest entry M_pk of those below, then
//
//     M_kj <- M_kj / M_kk,  M_ij <- M_ij - M_ik M_kj,  with 1 and 0 for the entries M_kk and M_ik of the results,
//
// which leaves (P M)^-1 in the place of M. M^-1 = (P M)^-1 P: column j belongs at the row that was moved to j.

var<workgroup> largest: array<atomic<u32>, MANY * 2>;  // of a column, by the parity of k
var<workgroup> moved: array<u32, MANY * WIDTH>;        // the row of M that is row j of P M

// Rows of a team in the left panel, for steps k by parity
const ROW: u32 = 0;
const COLUMN: u32 = 2;
const PIVOT: u32 = 4;

// |M_ik|^2 without its last 6 bits, with the number of the row in their place, the first of equals
fn key(size: f32, i: u32) -> u32 {
    return (bitcast<u32>(size) & 0xffffffc0u) | (63u - i);
}

fn sweep(m: ptr<function, Tile>, n: u32, team: Team) {
    if team.id < 2u {
        atomicStore(&largest[team.number * 2u + team.id], 0u);
    }
    for (var j = team.id; j < WIDTH; j += SIDE * SIDE) {
        moved[team.number * WIDTH + j] = j;
    }
    workgroupBarrier();
    for (var k = 0u; k < n; k++) {
        let row = team.first + (ROW + k % 2u) * WIDTH;
        let column = team.first + (COLUMN + k % 2u) * WIDTH;
        let pivot = team.first + PIVOT * WIDTH;
        let found = team.number * 2u + k % 2u;
        var own = 0u;
        for (var p = 0u; p < EACH; p++) {
            let i = team.row + p * SIDE;
            for (var q = 0u; q < EACH; q++) {
                let j = team.column + q * SIDE;
                if i == k {
                    left[row + j] = (*m)[p][q];
                }
                if j == k {
                    left[column + i] = (*m)[p][q];
                    if i >= k && i < n {
                        own = max(own, key(square((*m)[p][q]), i));
                    }
                }
            }
        }
        if own > 0u {
            atomicMax(&largest[found], own);
        }
        workgroupBarrier();
        let chosen = 63u - (atomicLoad(&largest[found]) & 63u);
        for (var p = 0u; p < EACH; p++) {
            if team.row + p * SIDE == chosen {
                for (var q = 0u; q < EACH; q++) {
                    left[pivot + team.column + q * SIDE] = (*m)[p][q];
                }
            }
        }
        if team.id == 0u {
            atomicStore(&largest[team.number * 2u + (k + 1u) % 2u], 0u);
            let at = team.number * WIDTH;
            let before = moved[at + k];
            moved[at + k] = moved[at + chosen];
            moved[at + chosen] = before;
        }
        workgroupBarrier();
        let reciprocal = inverse(left[column + chosen]);
        var scaled: array<T, MOST>;
        for (var q = 0u; q < EACH; q++) {
            let j = team.column + q * SIDE;
            scaled[q] = reciprocal;
            if j != k {
                scaled[q] = mul(left[pivot + j], reciprocal);
            }
        }
        for (var p = 0u; p < EACH; p++) {
            let i = team.row + p * SIDE;
            // row k lies at the place of the pivot now
            let exchanged = i == chosen;
            let factor = -left[column + select(i, k, exchanged)];
            for (var q = 0u; q < EACH; q++) {
                let j = team.column + q * SIDE;
                var before = (*m)[p][q];
                if exchanged {
                    before = left[row + j];
                }
                if j == k {
                    before = ZERO;
                }
                before = mul_add(factor, scaled[q], before);
                if i == k {
                    before = scaled[q];
                }
                (*m)[p][q] = before;
            }
        }
    }
    // columns to their places, DEPTH rows at a time
    for (var depth = 0u; depth < n; depth += DEPTH) {
        workgroupBarrier();
        for (var p = 0u; p < EACH; p++) {
            let i = team.row + p * SIDE;
            if i >= depth && i < depth + DEPTH {
                for (var q = 0u; q < EACH; q++) {
                    let to = moved[team.number * WIDTH + team.column + q * SIDE];
                    right[team.first + (i - depth) * WIDTH + to] = (*m)[p][q];
                }
            }
        }
        workgroupBarrier();
        for (var p = 0u; p < EACH; p++) {
            let i = team.row + p * SIDE;
            if i >= depth && i < depth + DEPTH {
                for (var q = 0u; q < EACH; q++) {
                    (*m)[p][q] = right[team.first + (i - depth) * WIDTH + team.column + q * SIDE];
                }
            }
        }
    }
}
