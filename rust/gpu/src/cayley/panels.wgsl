// Before the update M <- M - P R of a step of elimination by blocks, of the rows and columns K: from the inverse S of M_KK and
// R = S M_K,
//
//     P = M_.K  with  P_K = -I,    R_K = S,    M_.K = 0,  M_K. = 0,
//
// so that one product gives all: M_K. = R, M_.K = -P S, M_KK = S, and M_ij - M_iK S M_Kj elsewhere.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,   // n size for each matrix
    n: u32,
    first: u32,   // of K
    size: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> inverted: array<T>;   // S, (batch, size, size)
@group(0) @binding(1) var<storage, read_write> m: array<T>;    // (batch, n, n)
@group(0) @binding(2) var<storage, read_write> p: array<T>;    // (batch, n, size)
@group(0) @binding(3) var<storage, read_write> r: array<T>;    // (batch, size, n)

fn element(at: u32) {
    // entry (i, k) of a column panel, and entry (k, i) of a row panel
    let n = sizes.n;
    let size = sizes.size;
    let b = at / (n * size);
    let i = at / size % n;
    let k = at % size;
    let inside = i >= sizes.first && i < sizes.first + size;
    if inside {
        let own = i - sizes.first;
        p[at] = number(-f32(u32(own == k)));
        r[(b * size + k) * n + i] = inverted[(b * size + k) * size + own];
    } else {
        let place = (b * n + i) * n + sizes.first + k;
        p[at] = m[place];
        m[place] = ZERO;
    }
    m[(b * n + sizes.first + k) * n + i] = ZERO;
}
