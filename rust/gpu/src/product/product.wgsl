// C = alpha op(A) op(B) + base for a batch of matrices, op(X) one of X, X^T, conj(X), X^H: strides and a flag say which. The base is
// nothing, what C holds, op(D) (a row for all rows with strides of 0), or the identity.
//
// A product of great depth is split into a batch over parts of the depth, whose sum it is: the first has the base.
//
// A workgroup of SIDE x SIDE threads computes a tile of C, EACH x EACH numbers per thread, from tiles of A and B of depth SIDE in
// workgroup memory.

#import "numbers"

override SIDE: u32 = 16;
override EACH: u32 = 4;
const MOST: u32 = 4; // of EACH: registers are of fixed number
override TILE: u32 = SIDE * EACH;
// Threads that write down a column of a tile write to different banks. Large tiles of complex numbers fill the memory without it.
override PAD: u32 = 1u - PARTS * EACH / 8u;
override LEFT: u32 = SIDE + PAD;
override RIGHT: u32 = TILE + PAD;

struct Operand {
    first: u32,    // index of its first number
    batch: u32,    // distance of the matrices of a batch
    row: u32,      // distance of rows
    column: u32,   // distance of columns
    conj: u32,     // 1: conjugated
}

struct Sizes {
    m: u32,
    n: u32,
    k: u32,
    alpha: f32,
    split: u32,    // the whole depth, of which each part takes k; 0: no parts
    base: u32,
    a: Operand,
    b: Operand,
    c: Operand,
    d: Operand,
}

const NOTHING: u32 = 0;
const OWN: u32 = 1;
const ARRAY: u32 = 2;
const IDENTITY: u32 = 3;   // entry (i, j) of D is that at (i + row, j + column)

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read> d: array<T>;
@group(0) @binding(3) var<storage, read_write> c: array<T>;

var<workgroup> left: array<T, TILE * LEFT>;    // row by row
var<workgroup> right: array<T, SIDE * RIGHT>;

fn at_a(i: u32, j: u32, base: u32, k: u32) -> T {
    if i >= sizes.m || j >= k {
        return ZERO;
    }
    return conj_if(a[base + i * sizes.a.row + j * sizes.a.column], sizes.a.conj == 1u);
}

fn at_b(i: u32, j: u32, base: u32, k: u32) -> T {
    if i >= k || j >= sizes.n {
        return ZERO;
    }
    return conj_if(b[base + i * sizes.b.row + j * sizes.b.column], sizes.b.conj == 1u);
}

@compute @workgroup_size(SIDE, SIDE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let base_a = sizes.a.first + group.z * sizes.a.batch;
    let base_b = sizes.b.first + group.z * sizes.b.batch;
    let base_c = sizes.c.first + group.z * sizes.c.batch;
    let base_d = sizes.d.first + group.z * sizes.d.batch;
    var k = sizes.k;
    var base = sizes.base;
    if sizes.split > 0u {
        k = min(k, sizes.split - group.z * k);
        base = select(NOTHING, base, group.z == 0u);
    }
    let top = group.y * TILE;
    let start = group.x * TILE;
    let id = local.y * SIDE + local.x;
    // consecutive threads read consecutive numbers
    let along_a = sizes.a.column <= sizes.a.row;
    let along_b = sizes.b.column <= sizes.b.row;
    var sum: array<array<T, MOST>, MOST>;
    for (var p = 0u; p < EACH; p++) {
        for (var q = 0u; q < EACH; q++) {
            sum[p][q] = ZERO;
        }
    }
    for (var depth = 0u; depth < k; depth += SIDE) {
        for (var r = 0u; r < EACH; r++) {
            let at = id + r * SIDE * SIDE;
            var i = at / SIDE;
            var j = at % SIDE;
            if !along_a {
                i = at % TILE;
                j = at / TILE;
            }
            left[i * LEFT + j] = at_a(top + i, depth + j, base_a, k);
            i = at / TILE;
            j = at % TILE;
            if !along_b {
                i = at % SIDE;
                j = at / SIDE;
            }
            right[i * RIGHT + j] = at_b(depth + i, start + j, base_b, k);
        }
        workgroupBarrier();
        for (var j = 0u; j < SIDE; j++) {
            for (var p = 0u; p < EACH; p++) {
                let x = left[(local.y + p * SIDE) * LEFT + j];
                for (var q = 0u; q < EACH; q++) {
                    sum[p][q] = mul_add(x, right[j * RIGHT + local.x + q * SIDE], sum[p][q]);
                }
            }
        }
        workgroupBarrier();
    }
    for (var p = 0u; p < EACH; p++) {
        let i = top + local.y + p * SIDE;
        for (var q = 0u; q < EACH; q++) {
            let j = start + local.x + q * SIDE;
            if i < sizes.m && j < sizes.n {
                let at = base_c + i * sizes.c.row + j * sizes.c.column;
                var value = sizes.alpha * sum[p][q];
                switch base {
                    case OWN: {
                        value += c[at];
                    }
                    case ARRAY: {
                        value += conj_if(d[base_d + i * sizes.d.row + j * sizes.d.column], sizes.d.conj == 1u);
                    }
                    case IDENTITY: {
                        if i + sizes.d.row == j + sizes.d.column {
                            value += ONE;
                        }
                    }
                    default: {}
                }
                c[at] = value;
            }
        }
    }
}
