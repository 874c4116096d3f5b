// A matrix in the registers of a team of SIDE x SIDE threads: thread (row, column) holds the entries (row + p SIDE,
// column + q SIDE), p, q < EACH. A workgroup is MANY teams, each with a matrix of its own.
//
// Products go through panels of DEPTH rows or columns in workgroup memory; entries outside the matrix are 0.

override SIDE: u32 = 16;
override EACH: u32 = 4;
override MANY: u32 = 1;
const MOST: u32 = 4;   // of EACH: registers are of fixed number
const DEPTH: u32 = 8;
override WIDTH: u32 = SIDE * EACH;
override PANEL: u32 = DEPTH * WIDTH;

alias Tile = array<array<T, MOST>, MOST>;

struct Team {
    row: u32,      // of the thread
    column: u32,
    id: u32,       // row SIDE + column
    number: u32,   // of the team in the workgroup
    first: u32,    // of its panels
}

var<workgroup> left: array<T, MANY * PANEL>;    // entry c of row or column r of a panel: r WIDTH + c
var<workgroup> right: array<T, MANY * PANEL>;

// The shader has `work`, which knows how many matrices there are.
@compute @workgroup_size(SIDE, SIDE, MANY)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let team = Team(local.y, local.x, local.y * SIDE + local.x, local.z, local.z * PANEL);
    work((group.y * groups.x + group.x) * MANY + local.z, team);
}

// Rows `depth` and on of X into the right panel, or into the left one
fn rows_right(x: ptr<function, Tile>, depth: u32, team: Team) {
    for (var p = 0u; p < EACH; p++) {
        let i = team.row + p * SIDE;
        if i >= depth && i < depth + DEPTH {
            for (var q = 0u; q < EACH; q++) {
                right[team.first + (i - depth) * WIDTH + team.column + q * SIDE] = (*x)[p][q];
            }
        }
    }
}

fn rows_left(x: ptr<function, Tile>, depth: u32, team: Team) {
    for (var p = 0u; p < EACH; p++) {
        let i = team.row + p * SIDE;
        if i >= depth && i < depth + DEPTH {
            for (var q = 0u; q < EACH; q++) {
                left[team.first + (i - depth) * WIDTH + team.column + q * SIDE] = (*x)[p][q];
            }
        }
    }
}

// Columns `depth` and on of X into the left panel
fn columns_left(x: ptr<function, Tile>, depth: u32, team: Team) {
    for (var q = 0u; q < EACH; q++) {
        let j = team.column + q * SIDE;
        if j >= depth && j < depth + DEPTH {
            for (var p = 0u; p < EACH; p++) {
                left[team.first + (j - depth) * WIDTH + team.row + p * SIDE] = (*x)[p][q];
            }
        }
    }
}

// sum_ij += left_ri right_rj over the rows r of both panels, the left one conjugated or not
fn add_panels(sum: ptr<function, Tile>, conjugated: bool, team: Team) {
    for (var r = 0u; r < DEPTH; r++) {
        let at = team.first + r * WIDTH;
        for (var p = 0u; p < EACH; p++) {
            let x = conj_if(left[at + team.row + p * SIDE], conjugated);
            for (var q = 0u; q < EACH; q++) {
                (*sum)[p][q] = mul_add(x, right[at + team.column + q * SIDE], (*sum)[p][q]);
            }
        }
    }
}
