// inverted = M_kk^-1 of the diagonal block of size x size that begins at `first`, for a batch of n x n matrices M.

#import "numbers"
#import "team"
#import "sweep"

struct Sizes {
    batch: u32,
    n: u32,
    first: u32,
    size: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> m: array<T>;              // (batch, n, n)
@group(0) @binding(1) var<storage, read_write> inverted: array<T>; // (batch, size, size)

fn work(b: u32, team: Team) {
    let size = sizes.size;
    var block: Tile;
    for (var p = 0u; p < EACH; p++) {
        let i = team.row + p * SIDE;
        for (var q = 0u; q < EACH; q++) {
            let j = team.column + q * SIDE;
            if b < sizes.batch && i < size && j < size {
                block[p][q] = m[(b * sizes.n + sizes.first + i) * sizes.n + sizes.first + j];
            } else {
                block[p][q] = number(f32(u32(i == j)));
            }
        }
    }
    sweep(&block, size, team);
    for (var p = 0u; p < EACH; p++) {
        let i = team.row + p * SIDE;
        for (var q = 0u; q < EACH; q++) {
            let j = team.column + q * SIDE;
            if b < sizes.batch && i < size && j < size {
                inverted[(b * size + i) * size + j] = block[p][q];
            }
        }
    }
}
